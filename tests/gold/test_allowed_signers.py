from __future__ import annotations

import base64
import re
import time

import pytest

from rag_eval.gold.signoff_identity import allowed_signers
from seams import NAMESPACE, HashChange, InputError, Record
from sshkeys import Keys, needs_ssh_keygen
from table import each_row

SPACE = f'namespaces="{NAMESPACE}"'
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGxVKlPZbOEzWS6n2rmYmbP4ELYyIr3y5r2U8FsEhVSd"
OTHER, THIRD = KEY[:-2] + "Sg", KEY[:-2] + "Sh"


def problems(text):
    with pytest.raises(InputError) as refused:
        allowed_signers(text if isinstance(text, bytes) else text.encode(), "signers")
    return refused.value.problems


@pytest.mark.parametrize("end", ["\n", "\r\n", "", "\n\n \n# bob\n"])
@each_row(
    "options",
    [
        SPACE,
        f'valid-before="20271231",{SPACE}',
        f'{SPACE},valid-after="20260101120000Z",valid-before="202712311200"',
        f'namespaces="git,{NAMESPACE}"',
        f'namespaces="{NAMESPACE},code_review@example.org"',
        SPACE.upper().split("=")[0] + f'="{NAMESPACE}"',
    ],
)
def test_a_named_person_with_a_key_is_allowed(options, end):
    text = f'# our signers\n  bob@example.org\t{options}  {KEY} a comment, "of any kind{end}'
    assert allowed_signers(text.encode(), "signers") == {"bob@example.org"}


@pytest.mark.parametrize(
    "kind",
    [
        "ssh-rsa",
        *(f"ecdsa-sha2-nistp{size}" for size in (256, 384, 521)),
        "sk-ssh-ed25519@openssh.com",
        "sk-ecdsa-sha2-nistp256@openssh.com",
    ],
)
def test_keys_of_other_kinds_are_allowed(kind):
    name = kind.encode()
    key = base64.b64encode(len(name).to_bytes(4, "big") + name + bytes(40)).decode()
    assert allowed_signers(f"bob@example.org {SPACE} {kind} {key}\n".encode(), "signers") == {"bob@example.org"}


@pytest.mark.parametrize(("count", "unlisted"), [(99, 0), (100, 0), (103, 3)])
def test_a_hundred_problems_are_listed_and_the_others_counted(count, unlisted):
    with pytest.raises(InputError) as refused:
        allowed_signers(b"bob\n" * count, "signers")
    assert (len(refused.value.problems), refused.value.more) == (min(count, 100), unlisted)


def test_several_persons_and_several_keys_of_one():
    text = f"a@x {SPACE} {KEY}\nb@x {SPACE} {OTHER}\nb@x {SPACE} {THIRD}\n"
    assert allowed_signers(text.encode(), "signers") == {"a@x", "b@x"}


EXAMPLE = f"bob@example.org {SPACE} ssh-ed25519 AAAA…"
KINDS = "ssh-ed25519, ssh-rsa, ecdsa-sha2-nistp256, ecdsa-sha2-nistp384, ecdsa-sha2-nistp521"
HARDWARE = "sk-ssh-ed25519@openssh.com, sk-ecdsa-sha2-nistp256@openssh.com"
FIXES = {
    "not a valid line of an allowed-signers file": f"Write it like: {EXAMPLE}. Types of keys: {KINDS}, {HARDWARE}",
    "'.*' is not one e-mail address": "Give every signer a line of its own: no wildcard, no '!', no comma, no quotes.",
    "'namespaces' is missing, so the key could sign for any purpose": f"Write it like: {EXAMPLE}",
    "'.*' does not limit the key to signing gold": f"Write {SPACE}; with a comma between, "
    "only valid-after and valid-before may be added.",
    "the key is not a valid ssh-(rsa|ed25519) key": "Copy the whole second word of the .pub file.",
    "the key is already on line 3, for 'bob@x'": "A key belongs to one person: give each their own, on one line.",
}


@each_row(
    ("line", "says"),
    [
        (f"*@example.org {SPACE} {KEY}", "not one e-mail address"),
        (f"b?b@example.org {SPACE} {KEY}", "not one e-mail address"),
        (f"!eve@x,bob@x {SPACE} {KEY}", "not one e-mail address"),
        (f"bob@x,eve@x {SPACE} {KEY}", "not one e-mail address"),
        (f'"bob@x" {SPACE} {KEY}', "not one e-mail address"),
        (f"bob {SPACE} {KEY}", "not one e-mail address"),
        (f"bob@x {KEY}", "'namespaces' is missing"),
        (f"bob@x {KEY} ssh-rsa AAAA", "'namespaces' is missing"),
        (f'bob@x valid-before="20271231" {KEY}', "does not limit"),
        (f'bob@x namespaces="git" {KEY}', "does not limit"),
        (f'bob@x namespaces="*" {KEY}', "does not limit"),
        (f'bob@x namespaces="{NAMESPACE},!git" {KEY}', "does not limit"),
        (f'bob@x namespaces="{NAMESPACE}2" {KEY}', "does not limit"),
        (f"bob@x namespaces={NAMESPACE} {KEY}", "does not limit"),
        (f"bob@x namespaces {KEY}", "does not limit"),
        (f"bob@x {SPACE},{SPACE} {KEY}", "does not limit"),
        (f"bob@x cert-authority,{SPACE} {KEY}", "does not limit"),
        (f"bob@x CERT-AUTHORITY,{SPACE} {KEY}", "does not limit"),
        (f"bob@x {SPACE},verify-required {KEY}", "does not limit"),
        *(
            (f'bob@x {SPACE},valid-before="{time}" {KEY}', "does not limit")
            for time in ("soon", "2027123", "202712311")
        ),
        *((f'bob@x {SPACE},valid-after="{time}" {KEY}', "does not limit") for time in ("", "2027123112", "20271231ZZ")),
        (f"bob@x {SPACE}", "not a valid line"),
        (f"bob@x {SPACE} ssh-dss AAAA", "not a valid line"),
        (f"bob@x {SPACE} ssh-ed25519", "not a valid line"),
        (f"bob@x {SPACE} ssh-ed25519 ????", "not a valid line"),
        (f"bob@x {SPACE} {KEY[:-3]}", "not a valid ssh-ed25519 key"),
        (f"bob@x {SPACE} {KEY.replace('ssh-ed25519', 'ssh-rsa', 1)}", "not a valid ssh-rsa key"),
        (f"bob@x {SPACE} {KEY[:-4]}", "not a valid ssh-ed25519 key"),
        (f"bob@x {SPACE} {KEY}AAAA", "not a valid ssh-ed25519 key"),
        (f"bob@x {SPACE} ssh-ed25519 AAAAC3NzaC1lZDI1NTE5", "not a valid ssh-ed25519 key"),
        (f'bob@x "{SPACE} {KEY}', "not a valid line"),
        (f"bob@x {SPACE} {KEY}\0", "not a valid line"),
        ('"', "not a valid line"),
        (f"bob@x {SPACE} {KEY}\neve@x {SPACE} {KEY}", "is already on line 1"),
        (f"bob@x {SPACE} {KEY} one\nbob@x {SPACE} {KEY} two", "is already on line 1"),
    ],
)
def test_what_is_refused(line, says):
    result = problems(f"# comment\n\n{line}\n".replace("line 1", "line 3"))
    assert says.replace("line 1", "line 3") in result[0].message, result
    assert (result[0].file, result[0].line) == ("signers", 3 + line.count("\n"))
    assert [fix for message, fix in FIXES.items() if re.fullmatch(message, result[0].message)] == [result[0].hint]


def test_all_problems_come_at_once_and_an_empty_file_names_nobody():
    assert [problem.line for problem in problems(f"*@x {SPACE} {KEY}\nbob@x {SPACE} {OTHER}\nx\n")] == [1, 3]
    says = {b"# none\n": "lists no signers", b"\xff": "is not UTF-8 text"}
    for data, message in says.items():
        (problem,) = problems(data)
        assert problem == ("signers", 0, "", message, f"Write lines like: {EXAMPLE}")


@needs_ssh_keygen
@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_what_is_taken_is_what_ssh_keygen_takes(tmp_path, kind):
    from seams import sign, verify

    keys = Keys(tmp_path)
    record = Record(
        "d", "g", "bob@example.org", "2026-11-21T10:00:00Z", "r", (HashChange("A", None, "sha256:" + "1" * 64),)
    )
    for options in (SPACE, f'valid-before="20991231",{SPACE}', f'{SPACE},valid-after="20200101120000"'):
        data = f"# x\n\n \t{keys.line('bob', kind, options)}".replace("\n", "\r\n").encode()
        assert allowed_signers(data, "signers") == {"bob@example.org"}
        assert verify(sign(record, str(keys.file("bob", kind))), data, time.time()) is None
