"""The commands ``rag-eval gold signoff`` and ``gold check``: sign-offs of changes of the gold set in git."""

from __future__ import annotations

import os
import posixpath
import sys
import unicodedata
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path

from rag_eval import REPOSITORY, __version__
from rag_eval.cli._shared import now, option_words, person, print_lines, print_notes
from rag_eval.cli.parser import Parser
from rag_eval.common.escaping import one_line, quantity, quoted
from rag_eval.common.paths import GATES_FILES, WINDOWS, shell_line
from rag_eval.errors import GATE_FAILED, PASSED, Finding, InputError, UsageError
from rag_eval.git import NOTHING, IsFolder, Tree
from rag_eval.git.plumbing import Git, GitError
from rag_eval.gold import signoff, signoff_identity, signoff_repository
from rag_eval.gold.signoff_identity import NO_PROOF, SignoffPolicy
from rag_eval.gold.signoff_repository import GoldStates, Place
from rag_eval.readers.signoff_record import HashChange, Record
from rag_eval.run.authority import WorkTree

_STAGED = "check the staged changes, in a push the pushed ones; every item if no gold is staged (default)"
_INSTALL = f'pip install "rag-eval-action @ git+https://github.com/{REPOSITORY}@v{__version__.partition(".")[0]}"'
BASE_HELP = "compare the index with the commit where the branch left REF"
_SHOWN = 100


def _has_gold(states: GoldStates, golds: Sequence[str]) -> bool:
    """Return whether git has one of the gold sets in one of two states."""
    return any(tree.files(gold) for gold in golds for tree in (states.head, states.base))


def unstaged(git: Git, golds: Iterable[str], args: Namespace) -> list[str]:
    """Warn that the work tree has edits of the gold that are not staged, and so were not checked.

    The files are compared here: `git diff` runs filters and monitors that a repository configures.
    """
    if args.worktree or "GIT_INDEX_FILE" in os.environ:  # a hook checks only the index
        return []
    options = option_words(args, "base", *(["trace"] if args.nested == "diff" else []), "gold", "gates")
    look = shell_line("rag-eval", "gold", args.nested, "--worktree", *options)
    files, edited = WorkTree(git.top), []
    files.committed = git  # a checkout may use other line endings than git
    for path in dict.fromkeys(golds):
        try:
            current = files.files(path)
        except IsFolder:
            path = f"{path}/"
            current = files.files(path)
        except InputError:
            continue  # a link, or no file: reported by the check of the gold
        staged = git.files(path)
        edited += [name for name in staged if current.get(name) != staged[name]]
    return [f"{path} has unstaged edits, which were not checked. To check them: {look}" for path in edited]


def states_since(git: Git, base: str, *, worktree: bool = False) -> GoldStates:
    """Compare the index, or the work tree, with the last commit, or with the commit where the branch left ``base``."""
    head: Tree = WorkTree(git.top) if worktree else git
    if base:
        return signoff_repository.states_between(git, base, "HEAD", head)
    last = git.last()
    return GoldStates(git.at(last) if last else NOTHING, head, staged=True)


def counted(changes: Iterable[HashChange]) -> str:
    """Count the items that were added, changed and removed."""
    verbs = [change.verb for change in changes]
    parts = [f"{verbs.count(verb)} {verb}" for verb in ("added", "changed", "removed") if verb in verbs]
    return ", ".join(parts) or "no changes"


def capped(lines: Sequence[str], noun: str) -> list[str]:
    """Return the first hundred lines, and the number of the others."""
    more = len(lines) - _SHOWN
    return [*lines[:_SHOWN], *([f"… and {quantity(more, f'more {noun}')} not shown."] if more > 0 else [])]


def add_check_arguments(parser: Parser) -> None:
    against = parser.add_mutually_exclusive_group()
    parser.add_flag("--staged", _STAGED, group=against)  # the default; hooks state it for readability
    parser.add_flag("--all-files", "check every item of the index", group=against)
    parser.add_option("--base", "REF", BASE_HELP, group=against)
    parser.add_flag("--worktree", "check the files as they are, before they are staged")
    parser.add_gold()


def run_check(args: Namespace) -> int:
    """Check that every change of the gold is signed off; the hook runs this.

    Examples:
      rag-eval gold check --base origin/main
    """
    git = Git()
    pushed = [os.environ.get(f"PRE_COMMIT_{end}_REF") for end in ("FROM", "TO")]
    if args.all_files:
        states = GoldStates(NOTHING, git, has_no_base=True)
    elif not args.base and pushed[0] and pushed[1]:
        states = signoff_repository.states_between(git, pushed[0], pushed[1])
    else:
        states = states_since(git, args.base, worktree=args.worktree)
    place = Place(args.gold, args.gates, git.prefix)
    policies = signoff_repository.policies(states, place)
    golds = [policy.gold for policy in policies]
    signoff_repository.check_signers(states, place, policies)
    violations = [violation for policy in policies for violation in _violations(states, policy, args)]
    if not violations:
        if not _has_gold(states, golds):
            refuse_elsewhere(git.names(), golds, place)
        if "GIT_INDEX_FILE" not in os.environ:  # a passing commit prints nothing
            for gold in dict.fromkeys(golds):
                is_there = states.head.files(gold)
                print_lines(f"{gold}: {'every change is signed off' if is_there else 'not in git, so not checked'}.")
        print_notes(*unstaged(git, golds, args))
        return PASSED
    print_notes(*capped([str(violation) for violation in violations], "finding"))
    fixes = dict.fromkeys(violation.fix for violation in violations)
    print_notes("To fix it:", *(f"  {'# ' if fix[:1].isupper() else ''}{fix}" for fix in fixes))
    if _program() != "rag-eval":
        print_notes(f"rag-eval is installed only for the hook. To install it for yourself: {_INSTALL}")
    if _has_temporary_index():
        print_notes("Then commit again without file names, so that the commit includes the record.")
    return GATE_FAILED


def _violations(states: GoldStates, policy: SignoffPolicy, args: Namespace) -> list[Finding]:
    if not states.has_no_base and signoff_repository.is_untouched(states, policy):
        # Inside a commit, where git names the index, and against a requested base, the check is complete. A run by hand
        # (`pre-commit run --all-files`) has no change to check: it checks every item.
        if "GIT_INDEX_FILE" in os.environ or not states.staged:
            return []
        states = GoldStates(NOTHING, states.head, has_no_base=True)
    if unchecked := signoff_identity.unchecked(policy, NO_PROOF):
        print_lines(f"Checked only by the GitHub Action: {', '.join(unchecked)}.")
    # The command that signs the unsigned changes.
    words = [_program(), "gold", "signoff"]
    words += ["--baseline"] if states.has_no_base else []
    words += ["--base", states.name] if states.name != "HEAD" else []
    words += option_words(args, "gold", "gates")
    # `git commit -a` and `git commit FILE` use a temporary index that no longer exists after the hook fails.
    add = f"{shell_line('git', 'add', '--', f':/{policy.gold}')} && " if _has_temporary_index() else ""
    key = " --key ~/.ssh/id_ed25519" if policy.require == "signature" else ""
    reason = '"…"' if WINDOWS else "'…'"
    return signoff_repository.findings(states, policy, f"{add}{shell_line(*words)}{key} --reason {reason}")


def _program() -> str:
    """Return the command name of this program: its path if it is on the PATH only inside a hook's environment."""
    folder_of_program = os.path.dirname(os.path.abspath(sys.argv[0]))  # noqa: PTH100, PTH120 - Path.absolute keeps ".."
    if os.environ.get("PRE_COMMIT") != "1":
        return "rag-eval"
    from shutil import which

    elsewhere = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder != folder_of_program]
    if which("rag-eval", path=os.pathsep.join(elsewhere)):
        return "rag-eval"
    return which("rag-eval", path=folder_of_program) or "rag-eval"


def _has_temporary_index() -> bool:
    return Path(os.environ.get("GIT_INDEX_FILE", "index")).name != "index"


def refuse_elsewhere(names: Sequence[str], golds: Sequence[str], paths: Place) -> None:
    """Raise UsageError if none of ``golds`` is in git, but the ``names`` in git show that other files are meant.

    If git has no gold at all, there is nothing to check yet.
    """
    _refuse_other_spelling(names, golds)
    if paths.gold:
        raise UsageError(f"{quoted(golds[0])} is not in git. Correct the path, or add the file first.")
    gates = sorted(name for name in names if posixpath.basename(name) in GATES_FILES)
    above = [name for name in gates if paths.prefix.startswith(f"{posixpath.dirname(name)}/".removeprefix("/"))]
    if not paths.gates and gates and not above:
        more = f" and {len(gates) - 1} more" if gates[1:] else ""
        reason = f"this folder has no gates file and no gold set, but folders below have {quoted(gates[0])}{more}"
        raise UsageError(f"{reason}. Choose one: --gates {one_line(gates[0], 200)}")


def _refuse_other_spelling(names: Sequence[str], golds: Sequence[str]) -> None:
    """Raise UsageError if git has one of ``golds`` under another spelling."""
    for gold in golds:
        # `git add -N` lists a file that no commit would contain.
        if variants := [name for name in names if name != gold and _normalised(name) == _normalised(gold)]:
            reason = f"{quoted(gold)} is not in git, but {quoted(variants[0])} is"
            raise UsageError(f"{reason}. Write the path as git has it, in the gates file too, with forward slashes.")


def _normalised(path: str) -> str:
    """Return a path without differences of case, slashes and Unicode form, which some file systems ignore."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold()).replace("\\", "/")


def add_signoff_arguments(parser: Parser) -> None:
    parser.add_option("--reason", "TEXT", "why the gold changed, for reviewers", required=True)
    parser.add_option("--signer", "EMAIL", "email of the signer (default: git's user.email)")
    parser.add_flag("--baseline", "also sign every item that no record signs yet")
    parser.add_flag("--mutates", "allow that a qid asks another question than before")
    parser.add_option("--key", "FILE", "SSH key to sign with; for a public key, the agent signs")
    parser.add_option("--base", "REF", BASE_HELP)
    parser.add_gold()


def run_signoff(args: Namespace) -> int:
    """Record and stage a sign-off of the staged changes of the gold.

    Examples:
      rag-eval gold signoff --reason 'the new manual says 31 days'
      rag-eval gold signoff --key ~/.ssh/id_ed25519 --reason 'the new manual says 31 days'
      rag-eval gold signoff --baseline --reason 'reviewed by two of us'
    """
    git = Git()
    states = states_since(git, args.base)
    signer = person(args.signer, "signer")
    if not any(letter.isalnum() for letter in args.reason):
        raise UsageError("--reason is empty. Tell the reviewers why the gold changed: --reason TEXT")
    policies = signoff_repository.policies(states, Place(args.gold, args.gates, git.prefix))
    golds = [policy.gold for policy in policies]
    # All are drafted before the first is written, so that an error leaves no files.
    drafts = [(policy, _draft(states, policy, args, signer)) for policy in policies]
    for policy, record in drafts:
        if record:
            _write_and_stage(git, policy, record)
    if any(record for _, record in drafts):
        return PASSED
    if not _has_gold(states, golds):
        _refuse_other_spelling(git.names(), golds)
        stage = one_line(shell_line("git", "add", "--", f":/{golds[0]}"), 200)
        missing = f"{quoted(golds[0])} is not staged, so there is nothing to sign."
        raise UsageError(f"{missing} Stage it first, with the gates file that names it, if any: {stage}")
    as_before = "" if states.base is NOTHING else f"the same as in {states.name}, or "
    nothing = f"Nothing to sign: the staged gold set is {as_before}already signed off"
    committed = "" if args.base else ". To sign what is committed: add --base origin/main"
    print_lines(f"{nothing}. To stage more: git add -- FILE{committed}")
    return PASSED


def _draft(states: GoldStates, policy: SignoffPolicy, args: Namespace, signer: str) -> Record | None:
    """Return the missing record, None if none is missing."""
    base, head = signoff_repository.sides(states, policy)
    mine = head
    if policy.four_eyes:  # items signed by others can be signed once more
        fresh = signoff.new_records(base, head, policy)
        others = {path for path, record in fresh.items() if record.signer != signer}
        mine = head._replace(records={path: record for path, record in head.records.items() if path not in others})
    changes = [change for change, _ in signoff.uncovered_changes(base, mine, policy)]
    moved = [qid for qid, *_ in changes if signoff.question_changes(base.named(qid), head.items.get(qid))]
    if moved and not args.mutates:
        more = f", and so {'do' if moved[2:] else 'does'} {len(moved) - 1} more" if moved[1:] else ""
        fix = "Give the new question a new qid, or add --mutates"
        raise UsageError(f"{quoted(moved[0])} asks another question than before{more}. {fix}")
    if args.baseline:
        drafted = {change.qid for change in changes}
        changes += [change for change in signoff.unsigned(head, policy) if change.qid not in drafted]
    if not changes:
        return None
    record = Record(policy.dataset, policy.gold, signer, now(), args.reason, tuple(changes), bool(moved))
    read: Record | str
    try:
        read = signoff_repository.read_record(record.file.encode())
    except UnicodeEncodeError:  # bytes of a terminal, or of git's configuration, that are not UTF-8
        read = "the reason or the signer is not UTF-8 text"
    if isinstance(read, str):
        raise UsageError(f"the record would be invalid: {read}. Correct the option.")
    if args.key:
        return signoff_repository.sign(read, os.path.expanduser(args.key))  # noqa: PTH111 - shells of Windows leave the tilde; Path raises without a home
    if policy.require == "signature":
        raise UsageError("the sign-off policy requires signed records. Add your SSH key: --key ~/.ssh/id_ed25519")
    return read


def _write_and_stage(git: Git, policy: SignoffPolicy, record: Record) -> None:
    """Write the record into the work tree, and stage it: otherwise the next commit would fail again."""
    path, data = f"{policy.records}/{record.name}", record.file.encode()
    folder = Path(git.top, policy.records)
    if os.path.realpath(folder) != str(Path(os.path.realpath(git.top), policy.records)):
        raise UsageError(f"{quoted(policy.records)} is a symbolic link. Replace it with a folder.")
    file = folder / record.name
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    except OSError as error:
        why = (error.strerror or "unknown reason").lower()
        advice = f"Make {quoted(policy.records)} a folder that you can write to."
        raise UsageError(f"{quoted(path)} cannot be written: {why}. {advice}") from None
    try:
        git.stage(path, data)
    except GitError:
        file.unlink()
        raise
    print_lines(f"Signed by {record.signer}: {counted(record.changes)}. Wrote and staged {path}")
