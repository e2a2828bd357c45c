"""Sign-off of the repository's files: the compared states of the gold, and the policy that applies.

The command, the hook and CI share it; they differ only in the :class:`GoldStates`. Signatures of records are made and
checked by ssh-keygen. A signature is checked at the current time, never at the date that the record gives. So a key
that has expired, or was removed from the list, signs nothing any more.
"""

from __future__ import annotations

import os
import posixpath
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rag_eval.common.escaping import one_line, quoted
from rag_eval.common.paths import GATES_FILES, PROJECT_FILE, gates_of_project, only_file, trust_no_program_here
from rag_eval.errors import Finding, InputError, Problem, RagEvalError, UsageError
from rag_eval.git import NOTHING, Irregular, IsFolder, Tree, is_folder, path_inside, read, read_regular
from rag_eval.git.plumbing import Git
from rag_eval.gold import signoff
from rag_eval.gold.signoff import Advice, Side
from rag_eval.gold.signoff_identity import NO_PROOF, Author, Proof, SignoffPolicy, allowed_signers, signoff_policy
from rag_eval.readers import strict_json
from rag_eval.readers.gold_file import is_array, sources
from rag_eval.readers.signoff_record import NAMESPACE, Record
from rag_eval.readers.source import PACKED

People = Callable[[SignoffPolicy], tuple[Collection[str], Collection[Author]]]
MOST_PROBLEMS = 100
_DAY = 86_400.0


class GoldStates(NamedTuple):
    """The two states that are compared."""

    base: Tree
    head: Tree
    name: str = "HEAD"  # the base as requested
    used_records: Tree = NOTHING  # a state beyond the base whose records do not count either
    has_no_base: bool = False  # without a base every live item must be signed
    restore: str = "HEAD"  # the commit with the records of the base
    rules: Tree | None = None  # where the deciding policy is, if not on the base
    staged: bool = False  # the head is the index since the last commit


class Place(NamedTuple):
    """The caller's paths of gold and gates, relative to a folder; None if not given."""

    gold: str | None = None
    gates: str | None = None
    prefix: str = ""  # the folder, from the root of the repository, empty or ending in a slash


def states_between(git: Git, base: str, tip: str, head: Tree | None = None) -> GoldStates:
    """Return the states from the fork of ``tip`` and ``base`` to ``tip``, or to ``head``, which is based on it.

    Later changes on ``base`` are not this branch's change, but its rules apply and its records are used up. So an old
    branch cannot use a key that was removed from the list since, or repeat a change under its first record.
    """
    ids = [git.commit_named(base), git.commit_named(tip)]
    fork = git.merge_base(*ids)
    rules = git.at(ids[0])
    used_records = NOTHING if fork == ids[0] else rules
    return GoldStates(git.at(fork), head or git.at(ids[1]), base, used_records, restore=fork, rules=rules)


def policies(states: GoldStates, paths: Place) -> list[SignoffPolicy]:
    """Return the policies for the gold, usually one.

    The base's policy decides. The head's applies too if it has another path for the gold. If the base has no policy
    yet, the head's data set applies. A base policy without a data set has the default one: otherwise a change could
    name another data set and reuse its signatures.
    """
    head, base = _policy(states.head, paths, one=True), _policy(states.rules or states.base, paths)
    if paths.gates and not (head or base):
        raise UsageError(f"{quoted(paths.gates)} is not in git. Correct the path, or add the file first.")
    first = states.base is NOTHING and states.rules is None
    return policies_in_force(None if first else base, head, _named_gold(paths), first=first)


def policies_in_force(
    base: SignoffPolicy | None, head: SignoffPolicy | None, gold: str | None, *, first: bool
) -> list[SignoffPolicy]:
    """Return the policies that apply, of base and head; ``gold`` is the path that the caller named.

    ``first``: there is nothing to change yet, and the head's is the only one.
    """
    ahead = head or SignoffPolicy().for_gold(gold)
    if first:
        return [ahead]
    now = base or SignoffPolicy().for_gold(gold)
    now = now if now.stated else now._replace(dataset=ahead.dataset)
    if (now.gold, now.records) == (ahead.gold, ahead.records):
        return [now if base else ahead]
    ahead = ahead._replace(was=now.gold) if now.gold != ahead.gold else ahead
    return [now, ahead.at_least_as_strict_as(now) if base else ahead]


def _policy(tree: Tree, paths: Place, *, one: bool = False) -> SignoffPolicy | None:
    """Return the policy of the gates file that is nearest to the place, None if there is no gates file.

    Of two in a folder the first decides, so that a change can fix it; if there must be ``one``, they are refused.
    """
    names = [_path(paths, paths.gates)] if paths.gates else _nearest(tree, paths.prefix)
    ids = tree.files(*names)
    present = [name for name in names if name in ids]
    if not present:
        return None
    folder, name = posixpath.split(present[0])
    if one and name in GATES_FILES:
        only_file([path for path in present if path in [posixpath.join(folder, usual) for usual in GATES_FILES]])
    data = tree.contents([ids[present[0]]])[ids[present[0]]]
    return signoff_policy(data, present[0]).for_gold(_named_gold(paths))


def _named_gold(paths: Place) -> str | None:
    return _path(paths, paths.gold) if paths.gold else None


def _nearest(tree: Tree, prefix: str) -> list[str]:
    """Return the possible paths of the gates file, nearest first: in the current folder or above it."""
    folders, folder = [""], ""
    for part in prefix.split("/")[:-1]:
        folder += f"{part}/"
        folders.insert(0, folder)
    names = []
    for folder in folders:
        project = folder + PROJECT_FILE
        data = read_regular(tree, project)
        named = gates_of_project(data, project) if data is not None else ""
        path = posixpath.normpath(posixpath.join(folder, named)) if named else ""
        names += [path] if path and not path.startswith("../") else []
        names += [folder + name for name in GATES_FILES]
    return names


def _path(paths: Place, path: str) -> str:
    """Return a path of the caller, relative to the root of the repository as git has it."""
    joined = path_inside(paths.prefix, path.replace(os.sep, "/"))
    if joined is None:
        fix = "Write it relative to the current folder."
        raise UsageError(f"{quoted(path)} is not a path inside the repository. {fix}")
    return joined


def findings(states: GoldStates, policy: SignoffPolicy, command: str, people: People | None = None) -> list[Finding]:
    """Return the violations of sign-off in the head of ``states``; ``command`` is the sign-off that fixes them.

    ``people`` returns who approved and who wrote the change. It is called only if the policy requires it and the gold
    changed. Without it, that is not checked.
    """
    base, head = sides(states, policy)
    advice = Advice(command, states.restore)
    if states.has_no_base:
        return signoff.check(None, head, policy, advice)
    proof = NO_PROOF
    if new := signoff.new_records(base, head, policy):
        # Keys come from the policy's side: new ones do not count.
        rules = next((tree for tree in (states.rules, states.base) if tree and tree is not NOTHING), states.head)
        allowed = read(rules, policy.allowed_signers) if policy.require == "signature" else None
        proof = signature_proof(new, policy, allowed, time.time())
    needs_people = policy.require == "review" or policy.four_eyes  # git alone cannot prove who approved or wrote it
    if people and needs_people and signoff.changes(base.items, head.items):
        approvals, authors = people(policy)
        proof = proof._replace(approvals=approvals, authors=authors)
    return _read_otherwise(states, policy, base, head) + signoff.check(base, head, policy, advice, proof)


def check_signers(states: GoldStates, paths: Place, policies: Iterable[SignoffPolicy]) -> None:
    """Raise InputError with the problems of the allowed-signers files as the change leaves them.

    The keys of the base decide, but only a new record needs them: a broken file would be noticed after its merge. The
    head's is checked, so that a change can fix the file of the base.
    """
    head = _policy(states.head, paths)
    for policy in [*policies, *([head] if head else [])]:
        keys = read_regular(states.head, policy.allowed_signers) if policy.require == "signature" else None
        if keys is not None:
            allowed_signers(keys, policy.allowed_signers)


def is_untouched(states: GoldStates, policy: SignoffPolicy) -> bool:
    """Return whether gold and records are byte for byte the same on both sides."""
    return _files(states.base, policy) == _files(states.head, policy)


def sides(states: GoldStates, policy: SignoffPolicy) -> tuple[Side, Side]:
    """Return base and head; problems of the head's gold are an :class:`InputError`.

    Unreadable lines on the base are no items: fixing them adds items, which must be signed. Items that the base's tip
    has by now in the head's form need no signature and count as items of the base: they come from an earlier part of
    the change that was merged already, as with stacked pull requests.
    """
    parsed: dict[bytes, Any] = {}
    # The head first: files of the work tree are not requested from an API again.
    head_files, base_files = (_files(tree, policy) for tree in (states.head, states.base))
    base_items, _ = _items(states.base, base_files, policy, parsed)
    head_items, problems = _items(states.head, head_files, policy, parsed)
    if problems:
        raise InputError(problems[:MOST_PROBLEMS], max(0, len(problems) - MOST_PROBLEMS))
    tip_files = _files(states.used_records, policy)
    changed = signoff.changes(base_items, head_items) if states.used_records is not NOTHING else []
    if changed:
        tip = _items(states.used_records, tip_files, policy, parsed)[0]
        same = {qid for qid, _, after in changed if after == (tip[qid].hash if qid in tip else None)}
        base_items = {qid: item for qid, item in base_items.items() if qid not in same}
        base_items |= {qid: head_items[qid] for qid in same & head_items.keys()}
    moved: Mapping[str, signoff.SignoffItem] = {}
    if policy.was:  # the change moves the gold to the policy's path, where its qids are known
        before = policy._replace(gold=policy.was)
        with suppress(UsageError):  # a folder, which was never signed
            moved = _items(states.base, _files(states.base, before), before, parsed)[0]
    used = _records(states.used_records, tip_files, policy)
    base = Side(base_items, _records(states.base, base_files, policy), moved, used)
    return base, Side(head_items, _records(states.head, head_files, policy))


def _read_otherwise(states: GoldStates, policy: SignoffPolicy, base: Side, head: Side) -> list[Finding]:
    """Return the items with unchanged bytes but other fields, because the gold became an array, or lines again."""
    blobs = [read(tree, policy.gold) for tree in (states.base, states.head)]
    if None in blobs or len({is_array(blob) for blob in blobs if blob is not None}) == 1:
        return []
    same = [item for qid, item in head.items.items() if qid in base.items and base.items[qid].hash == item.hash]
    what = "is unchanged, but in this form of the gold file other fields of it count"
    fix = "Remove the fields of the other form."
    return [
        Finding("unsigned-change", "error", f"item {quoted(item.row['qid'])} {what}", fix, policy.gold, item.line)
        for item in same[:MOST_PROBLEMS]
    ]


def _files(tree: Tree, policy: SignoffPolicy) -> dict[str, str]:
    try:
        ids = tree.files(policy.gold, f"{policy.records}/")
    except (Irregular, IsFolder) as error:
        if is_folder(error, policy.gold):
            raise UsageError(no_items(policy.gold)) from None
        raise
    return {path: name for path, name in ids.items() if path == policy.gold or path.endswith(".json")}


def no_items(gold: str) -> str:
    """Explain why a gold set that is a folder cannot be signed off, and what can be."""
    reason = f"{quoted(gold)} is a folder, but sign-off needs one file"
    return f"{reason}. Convert it: rag-eval import labels {one_line(gold, 200)} --out eval/gold.jsonl"


def packed(gold: str) -> str:
    """Explain why a packed gold set cannot be signed off, and what can be."""
    return f"{quoted(gold)} is compressed, but sign-off needs plain lines. Keep the gold set uncompressed in git."


def _items(
    tree: Tree, files: Mapping[str, str], policy: SignoffPolicy, parsed: dict[bytes, Any]
) -> tuple[dict[str, signoff.SignoffItem], list[Problem]]:
    """Return the items of a gold file; ``parsed`` caches rows by their bytes, because base and head share most."""
    gold = policy.gold
    if gold not in files:
        return {}, []
    blob = tree.contents([files[gold]])[files[gold]]
    if blob.startswith(b"version https://git-lfs"):
        hint = "Sign-off needs the content in git: keep the gold set out of LFS."
        return {}, [Problem(gold, 0, "", "is a Git LFS pointer, not the gold set", hint)]
    rows, unread = [], []
    for line, source in sources(blob):
        try:
            if source not in parsed:
                parsed[source] = strict_json.parse(source)
            rows.append((line, source, parsed[source]))
        except strict_json.JsonError as error:
            where = f"column {error.column}" if error.column else ""
            unread.append(Problem(gold, line, where, error.message, error.hint))
    if unread and blob.startswith(PACKED):
        what = "is compressed, but sign-off needs plain lines"
        return {}, [Problem(gold, 0, "", what, "Keep it uncompressed in git.")]
    items, problems = signoff.read_items(rows, gold, is_array(blob))
    if not (items or unread or problems):
        problems = [Problem(gold, 0, "", "has no gold items", "Add an item, or delete the file.")]
    return items, unread + problems


def _records(tree: Tree, files: Mapping[str, str], policy: SignoffPolicy) -> dict[str, Record | str]:
    names = {path: name for path, name in files.items() if path != policy.gold}
    blobs = tree.contents(names.values())
    return {path: read_record(blobs[name]) for path, name in names.items()}


def read_record(blob: bytes) -> Record | str:
    """Return the record in a file's bytes, or the reason why it is none."""
    try:
        return Record.read(strict_json.parse(blob))
    except strict_json.JsonError as error:
        return error.message


class SignatureError(RagEvalError):
    """A signature that cannot be made or checked here; the message ends with the fix."""


def signature_proof(
    new_records: Mapping[str, Record], policy: SignoffPolicy, allowed: bytes | None, now: float
) -> Proof:
    """Return the evidence in the records at ``now`` in seconds since 1970, without approvals and authors.

    ``new_records`` are by path, ``allowed`` the bytes of the policy's allowed-signers file on the base, None if it is
    missing. InputError is raised if that file is missing or has problems, SignatureError if ssh-keygen cannot be run.
    Only the level ``signature`` needs either.
    """
    latest = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + _DAY))
    if policy.require != "signature":
        return Proof(latest=latest)
    if allowed is None:
        hint = "Merge it first, or correct 'allowed_signers'. The file of the base branch applies."
        raise InputError([Problem(policy.allowed_signers, 0, "", "is not on the base branch", hint)])
    principals = allowed_signers(allowed, policy.allowed_signers)
    asked = {path: record for path, record in new_records.items() if record.signer in principals}
    return Proof(principals, {path: verify(record, allowed, now) for path, record in asked.items()}, latest)


def sign(record: Record, key: str) -> Record:
    """Sign ``record`` with ``key``, the file of a private key, or of a public key that an agent can use.

    ssh-keygen may ask for a passphrase at the terminal. Raises SignatureError if it does not sign.
    """
    with _folder() as folder:
        message = folder / "record"
        message.write_bytes(record.text.encode())
        # From a file: with the text at its stdin ssh-keygen could not ask for a passphrase.
        done = _keygen("sign", "-n", NAMESPACE, "-f", key, str(message))
        made = folder / "record.sig"
        if done.returncode or not made.exists():
            what = f"ssh-keygen cannot sign with {quoted(key)}: {_output_of(done, folder)}"
            raise SignatureError(f"{what}. Name the file of your key: --key ~/.ssh/id_ed25519")
        return record._replace(sig=made.read_text("ascii"))


def verify(record: Record, allowed: bytes, now: float) -> str | None:
    """Return why the signature of ``record`` is invalid, None if it is valid.

    It must be the signer's, by a key that the allowed-signers file ``allowed`` gives them at ``now``, in seconds since
    1970. Times without a zone in that file are read as UTC. Raises SignatureError if ssh-keygen cannot be run.
    """
    if not record.sig:
        return "it has none"
    with _folder() as folder:
        signers, signature = folder / "allowed", folder / "sig"
        signers.write_bytes(allowed)
        signature.write_bytes(record.sig.encode("utf-8", "replace"))
        at = f"-Overify-time={time.strftime('%Y%m%d%H%M%S', time.gmtime(now))}"
        files = ("-f", str(signers), "-I", record.signer, "-n", NAMESPACE, "-s", str(signature))
        done = _keygen("verify", *files, at, data=record.text.encode())
        if not done.returncode:
            return None
        output = _output_of(done, folder)
        if output == "'Could not verify signature.'":
            return "it is not by a key that the base branch lists for the signer, or not for this text"
        return f"ssh-keygen reports: {output}"


@contextmanager
def _folder() -> Iterator[Path]:
    """Yield a temporary folder that only this user can read."""
    try:
        made = TemporaryDirectory(prefix="rag-eval-")
    except OSError as error:
        why = f"A temporary folder for the signature cannot be created ({error.strerror})"
        raise SignatureError(f"{why}. Set TMPDIR to a folder that you can write to.") from None
    with made as name:
        yield Path(name)


def _keygen(verb: str, *words: str, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    trust_no_program_here()
    try:
        return subprocess.run(  # noqa: S603 - a list, no shell; each value follows its option
            ["ssh-keygen", "-Y", verb, *words],  # noqa: S607 - the ssh-keygen of the PATH is the user's own
            env=os.environ | {"LC_ALL": "C", "TZ": "UTC"},
            input=data,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        fix = "Install OpenSSH and put it on the PATH, on Debian: apt-get install openssh-client"
        raise SignatureError(f"ssh-keygen cannot be run ({error.strerror}). {fix}") from None


def _output_of(done: subprocess.CompletedProcess[bytes], folder: Path) -> str:
    """Return the first line with content, without the name of the temporary folder."""
    lines = (done.stderr + done.stdout).decode("utf-8", "replace").replace(f"{folder}{os.sep}", "").splitlines()
    first = next((line for line in lines if any(letter.isalpha() for letter in line)), "nothing")
    return quoted(one_line(first, 200), 200)
