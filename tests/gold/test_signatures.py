"""Signatures made and checked by the real ssh-keygen: what holds, and every way of forging one."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rag_eval.gold import signoff_repository
from rag_eval.gold.signoff_repository import SignatureError
from seams import NAMESPACE, HashChange, Record, sign, verify
from sshkeys import needs_ssh_keygen

pytestmark = needs_ssh_keygen

RECORD = Record(
    "7b0c4e",
    "eval/gold.jsonl",
    "bob@example.org",
    "2026-11-21T10:00:00Z",
    "manual v3: “p. 12”\n",
    (HashChange("A1", None, "sha256:" + "1" * 64),),
)
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()


NAMED = r"Name the file of your key: --key ~/\.ssh/id_ed25519"
TEMPORARY = r"A temporary folder for the signature cannot be created \(No usable temporary directory found\)"
INSTALL = "Install OpenSSH and put it on the PATH, on Debian: apt-get install openssh-client"


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Where temporary files go, to see that none is left."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


def signed(keys, name="bob", record=RECORD, kind="ed25519"):
    return sign(record, str(keys.file(name, kind)))


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_what_the_signer_signed_holds(keys, kind):
    record = signed(keys, kind=kind)
    assert (record._replace(sig=None), record.name) == (RECORD, RECORD.name)
    assert record.sig.startswith("-----BEGIN SSH SIGNATURE-----\n")
    assert verify(record, keys.line("bob", kind).encode(), NOW) is None


def test_the_form_of_the_file_does_not_matter_and_the_record_goes_through_it(keys):
    import json

    again = Record.read(json.loads(json.dumps(json.loads(signed(keys).file), indent=1, sort_keys=True)))
    assert verify(again, keys.allowed("bob"), NOW) is None


@pytest.mark.parametrize(
    "field",
    [
        {"signer": "eve@example.org"},
        {"reason": "another"},
        {"dataset": "other"},
        {"gold": "other"},
        {"date": "2026-11-22T10:00:00Z"},
        {"mutates": True},
        {"changes": (HashChange("A1", None, "sha256:" + "2" * 64),)},
    ],
    ids=lambda field: next(iter(field)),
)
def test_a_text_that_was_changed_after_signing_does_not(keys, field):
    record = signed(keys)._replace(**field)
    assert verify(record, keys.allowed("bob") + keys.allowed("eve"), NOW) is not None


def test_another_s_key_in_the_signers_name_does_not(keys):
    reason = "it is not by a key that the base branch lists for the signer, or not for this text"
    assert verify(signed(keys, "eve"), keys.allowed("bob"), NOW) == reason
    # Eve may sign for herself: that does not make hers Bob's.
    assert verify(signed(keys, "eve"), keys.allowed("bob", "eve"), NOW) is not None
    assert verify(signed(keys, "eve"), keys.allowed("eve"), NOW) is not None


def test_a_signature_for_something_else_does_not(keys, tmp_path_factory):
    message = tmp_path_factory.mktemp("other") / "message"
    message.write_text(RECORD.text)
    key = str(keys.file("bob"))
    for namespace, condition in (("git", False), ("file", False), (NAMESPACE, True)):
        command = ["ssh-keygen", "-Y", "sign", "-n", namespace, "-f", key]
        made = subprocess.run(command, input=message.read_bytes(), capture_output=True, check=True).stdout.decode()
        record = RECORD._replace(sig=made)
        assert (verify(record, keys.allowed("bob"), NOW) is None) == condition
        # Not even where the list would let the key sign for that.
        both = keys.line("bob", options=f'namespaces="git,{NAMESPACE}"').encode()
        assert (verify(record, both, NOW) is None) == condition


@pytest.mark.parametrize("sig", [None, "", "x", "-----BEGIN SSH SIGNATURE-----\n", "\0", "\ud800", "-" * 10_000])
def test_what_is_no_signature_does_not(keys, sig):
    reason = verify(RECORD._replace(sig=sig), keys.allowed("bob"), NOW)
    assert reason.startswith("ssh-keygen reports: '") if sig else reason == "it has none"


def test_a_key_that_has_expired_signs_nothing_however_old_the_record_says_it_is(keys):
    record = signed(keys, record=RECORD._replace(date="2026-01-01T00:00:00Z"))
    until = keys.line("bob", options=f'namespaces="{NAMESPACE}",valid-before="20260601"').encode()
    assert "expired" in verify(record, until, NOW)
    assert verify(record, until, datetime(2026, 5, 31, tzinfo=UTC).timestamp()) is None
    newer = keys.line("bob", options=f'namespaces="{NAMESPACE}",valid-after="20270101"').encode()
    assert verify(record, newer, NOW)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_times_are_the_same_in_every_zone(keys, monkeypatch, zone):
    monkeypatch.setenv("TZ", zone)
    until = keys.line("bob", options=f'namespaces="{NAMESPACE}",valid-before="20261121120000"').encode()
    assert verify(signed(keys), until, NOW - 1) is None
    assert verify(signed(keys), until, NOW + 1)


def test_a_reason_names_no_temporary_file(keys, temporary):
    until = keys.line("bob", options=f'namespaces="{NAMESPACE}",valid-before="20200101"').encode()
    assert str(temporary) not in verify(signed(keys), until, NOW)


def test_the_agent_signs_with_a_public_key(keys, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("agent")
    public = folder / "only.pub"
    public.write_text(keys.public("bob") + "\n")
    socket = str(folder / "s")
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE)
    try:
        agent.stdout.readline()
        monkeypatch.setenv("SSH_AUTH_SOCK", socket)
        subprocess.run(["ssh-add", "-q", str(keys.file("bob"))], check=True)
        assert verify(sign(RECORD, str(public)), keys.allowed("bob"), NOW) is None
    finally:
        agent.terminate()
        agent.wait()
        agent.stdout.close()


@pytest.mark.parametrize("name", ["gone", "", "-f", "$(touch x)", "sshkeys.py"])
def test_a_key_that_is_none_is_said(keys, tmp_path_factory, monkeypatch, name):
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))
    Path("sshkeys.py").write_text("no key")
    Path("sshkeys.py").chmod(0o600)
    with pytest.raises(SignatureError, match=rf"^ssh-keygen cannot sign with '{re.escape(name)}': '.+'\. {NAMED}$"):
        sign(RECORD, name)
    assert [path.name for path in Path().iterdir()] == ["sshkeys.py"]


def test_temporary_files_are_for_this_user_alone(keys, monkeypatch):
    seen = []
    run = subprocess.run

    def watching(command, **more):
        folder = Path(command[-1] if "sign" in command else command[command.index("-f") + 1]).parent
        seen.append(stat.S_IMODE(folder.stat().st_mode))
        return run(command, **more)

    key, allowed = keys.file("bob"), keys.allowed("bob")
    monkeypatch.setattr(signoff_repository.subprocess, "run", watching)
    verify(sign(RECORD, str(key)), allowed, NOW)
    assert seen == [0o700, 0o700]


def test_without_a_folder_for_temporary_files_it_is_said_what_is_wanted(keys, monkeypatch):
    def nowhere():
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    for ask in (lambda: verify(signed(keys), b"", NOW), lambda: sign(RECORD, "key")):
        with pytest.raises(SignatureError, match=rf"^{TEMPORARY}\. Set TMPDIR to a folder that you can write to\.$"):
            ask()


def test_without_ssh_keygen_its_package_is_named(keys, monkeypatch):
    record, allowed = signed(keys), keys.allowed("bob")
    monkeypatch.setenv("PATH", os.devnull)
    for ask in (lambda: verify(record, allowed, NOW), lambda: sign(RECORD, "key")):
        with pytest.raises(SignatureError, match=rf"^ssh-keygen cannot be run \(Not a directory\)\. {INSTALL}$"):
            ask()
