"""The words of a scenario: what a pull request, a workflow or a step of the job can do, each a small function.

A move takes the stage and its argument, as scenario.yml gives them. Moves on files act on the folder at once, and are
committed with the pull request; moves of the job act after the checkout, before the action starts.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from contextlib import chdir
from dataclasses import dataclass, field

import seams
from gaming import answers, honest
from gaming.honest import GATES, GOLD, RECORDS, Repository, named
from seams import render, score_files
from verdicts import JUDGE, judge_hash, verdict_row

MOVES = {}


@dataclass
class Stage:
    """What a scenario has set up so far: the repository, and what the job will do."""

    repository: Repository
    scenario: str
    gold: str = GOLD
    before: bytes = b""  # the gold of the base
    edits: list = field(default_factory=list)  # of the traces, in order
    about: dict | None = None
    inputs: dict = field(default_factory=dict)
    event: dict = field(default_factory=dict)
    faults: list = field(default_factory=list)
    job: list = field(default_factory=list)  # what steps of the job do before the action
    reviews: list = field(default_factory=list)
    checkout: str = "merge"
    on_main: list = field(default_factory=list)  # what somebody else does on main
    below: str = ""  # the folder of the workspace that the workflow checks out into
    keys: object = None

    def play(self, steps):
        """Make the moves of a list, in order."""
        for step in steps or ():
            ((word, argument),) = step.items()
            MOVES[word](self, argument)


def move(function):
    """Name a move by its function."""
    MOVES[function.__name__] = function
    return function


# --- files -----------------------------------------------------------------------------------------------------------


@move
def write(stage, files):
    """Texts by path."""
    for path, text in files.items():
        stage.repository.write(path, text)


@move
def manifests(stage, count):
    """YAML files of another kind, in a folder."""
    write(stage, {f"deploy/{number:03}.yml": f"replicas: {number}\n" for number in range(count)})


@move
def folders(stage, count):
    """Folders without gates, which a search for gates passes."""
    write(stage, {f"apps/{number:03}/notes.md": "nothing of ours\n" for number in range(count)})


@move
def rename(stage, files):
    """New paths by the old ones."""
    for old, new in files.items():
        (stage.repository.path / new).parent.mkdir(parents=True, exist_ok=True)
        (stage.repository.path / old).rename(stage.repository.path / new)
        if f"{stage.gold}/".startswith(f"{old}/"):
            stage.gold = new + stage.gold.removeprefix(old)


@move
def duplicate(stage, files):
    """Copies, by the path of what is copied."""
    for old, new in files.items():
        stage.repository.write(new, stage.repository.read(old))


@move
def remove(stage, paths):
    """Files and folders that go."""
    for path in paths:
        result = stage.repository.path / path
        shutil.rmtree(result) if result.is_dir() and not result.is_symlink() else result.unlink()


@move
def link(stage, links):
    """Symbolic links by path, in place of what stands there; what it leads to is relative to the link."""
    for path, target in links.items():
        result = stage.repository.path / path
        if result.exists():
            shutil.rmtree(result) if result.is_dir() else result.unlink()
        result.parent.mkdir(parents=True, exist_ok=True)
        result.symlink_to(target)


@move
def submodule(stage, path):
    """The folder becomes a repository of its own, as a submodule of this one."""
    inner = Repository(stage.repository.path / path)
    inner.git("init", "--quiet", "--template=")
    inner.commit("the same files")
    stage.repository.git("rm", "--quiet", "-r", "--cached", "--ignore-unmatch", path)


@move
def gates(stage, texts):
    """New texts in eval-gates.yml by the old ones, each of which stands there once."""
    text = stage.repository.read(GATES).decode()
    for old, new in texts.items():
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {GATES}"
        text = text.replace(old, new)
    stage.repository.write(GATES, text)


@move
def commit(stage, who):
    """All that was done so far, as a commit of its own by somebody; records are for what is done after it."""
    stage.repository.commit("a step", who=who)
    stage.before = stage.repository.read(stage.gold)


@move
def on_main(stage, steps):
    """What is merged into main after the pull request left it."""
    stage.on_main += steps


@move
def step(stage, who):
    """All that was done so far, as a commit of its own by somebody; records are still for changes since the base."""
    stage.repository.commit("a step", who=who)


# --- the gold and its records ----------------------------------------------------------------------------------------


@move
def gold(stage, edits):
    """Edits of the gold file, line by line: what is not named keeps its bytes."""
    data = stage.repository.read(stage.gold)
    for word, argument in edits.items():
        data = _GOLD[word](data, argument)
    stage.repository.write(stage.gold, data)


def _rows(data):
    return [line for line in data.split(b"\n") if line.strip()]


def _qid(line):
    return json.loads(line)["qid"]


def _dropped(data, qids):
    return b"".join(line + b"\n" for line in _rows(data) if _qid(line) not in named(qids))


def _edited(data, fields):
    rows = [json.loads(line) for line in _rows(data)]
    assert {row["qid"] for row in rows} >= fields.keys()
    new = [honest.lines([{**row, **fields[row["qid"]]}]) for row in rows if row["qid"] in fields]
    result = iter(new)
    return b"".join(next(result) if _qid(line) in fields else line + b"\n" for line in _rows(data))


def _repeated(data, qid):
    return data + next(line + b"\n" for line in _rows(data) if _qid(line) == qid)


def _added(data, row):
    return data + honest.lines([row])


def _text(data, texts):
    for old, new in texts.items():
        assert data.count(old.encode()) == 1, old
        data = data.replace(old.encode(), new.encode())
    return data


def _as(data, form):
    rows = [json.loads(line) for line in _rows(data)]
    array = [
        {
            "qid": row["qid"],
            "q": row["question"],
            "answerable": row["answerable"],
            "gold_ids": row["gold_citations"],
            "gold_claim": "".join(row["gold_claim_substr"]),
        }
        for row in rows
    ]
    return {
        "array": lambda: json.dumps(array, indent=1).encode(),
        "crlf": lambda: data.replace(b"\n", b"\r\n"),
        "bom": lambda: b"\xef\xbb\xbf" + data,
        "empty": lambda: b"",
        "blank": lambda: b"\n\n\n",
        "gzip": lambda: gzip.compress(data, mtime=0),
    }[form]()


def _swapped(data, texts):
    """Other texts throughout the gold, by the old ones."""
    for old, new in texts.items():
        assert old.encode() in data, old
        data = data.replace(old.encode(), new.encode())
    return data


def _without(data, fields):
    """The items without some fields."""
    rows = [json.loads(line) for line in _rows(data)]
    return honest.lines([{name: value for name, value in row.items() if name not in fields} for row in rows])


_GOLD = {
    "without": _without,
    "swap": _swapped,
    "drop": _dropped,
    "edit": _edited,
    "repeat": _repeated,
    "add": _added,
    "text": _text,
    "as": _as,
}


@move
def sign(stage, terms):
    """A record for what the gold became since the base, under the name that its content gives it."""
    terms = dict(terms or {})
    file, moved = terms.pop("file", None), terms.pop("signature_of", None)
    made = _record(stage, terms)
    made = made._replace(sig=_record(stage, moved).sig) if moved else made
    stage.repository.write(f"{RECORDS}/{file or made.name}", made.file)


def _record(stage, terms):
    key, plain = terms.get("key"), {name: value for name, value in terms.items() if name != "key"}
    made = honest.record(stage.before, stage.repository.read(stage.gold), **plain)
    return seams.sign(made, str(stage.keys.file(key))) if key else made


@move
def move_gold(stage, to):
    """The gold file under another name, which the gates file comes to name; its records stay."""
    rename(stage, {stage.gold: to})
    text = stage.repository.read(GATES).decode().replace(f"gold: {GOLD}", f"gold: {to}")
    stage.repository.write(GATES, text)


@move
def sign_move(stage, terms):
    """Records for the move of the gold: all items leave the old file, and all come into the new one.

    ``added`` are the terms of the second record, if they differ.
    """
    now, terms = stage.repository.read(stage.gold), dict(terms or {})
    added = {**terms, **terms.pop("added", {})}
    added.pop("added", None)
    for made in (
        honest.record(stage.before, b"", gold=GOLD, **terms),
        honest.record(b"", now, gold=stage.gold, **added),
    ):
        stage.repository.write(f"{RECORDS}/{made.name}", made.file)


@move
def label_folder(stage, path):
    """The gold file as a folder of label files, which the gates file comes to name."""
    rows = [json.loads(line) for line in _rows(stage.repository.read(stage.gold))]
    cases = [{"case_id": row["qid"], "query": row["question"]} for row in rows]
    outcomes = [{"case_id": row["qid"], "expected_outcome": "no_results"} for row in rows if not row["answerable"]]
    chunks = [{"case_id": row["qid"], "relevant_chunks": row["gold_citations"]} for row in rows if row["answerable"]]
    for name, labels in (("cases", cases), ("pipeline_labels", outcomes), ("retrieval_labels", chunks)):
        stage.repository.write(f"{path}/{name}.jsonl", honest.lines(labels))
    stage.repository.write(GATES, stage.repository.read(GATES).decode().replace(f"gold: {GOLD}", f"gold: {path}"))


@move
def ungoverned(stage, _):
    """A base whose gates ask for no sign-off."""
    text = stage.repository.read(GATES).decode()
    remaining = [line for line in text.splitlines(keepends=True) if not line.startswith("signoff:")]
    stage.repository.write(GATES, "".join(remaining))


@move
def judge(stage, model):
    """A judge that people agree with, and a gate on what it says of the answers."""
    text = stage.repository.read(GATES).decode()
    if "\njudge:" not in text:
        text = text.replace("gates:\n", "gates:\n  judge_correctness: {min: 4.6}\n") + "verdicts: eval/verdicts.jsonl\n"
    named = {**JUDGE, "model": model}
    calibration = {"judge": judge_hash(named), "scores": {"correctness": {"n": 150, "low": {"kappa": 0.7}}}}
    block = json.dumps({**named, "floor": {"kappa": 0.6}, "calibration": calibration})
    stage.repository.write(GATES, text.partition("judge: {")[0] + f"judge: {block}\n")


@move
def verdicts(stage, how):
    """What a judge says of the answers to the answerable questions: 5, but for those that it finds wrong.

    ``rewrite`` replaces its rows, else they come at the end.
    """
    judge, wrong = {**JUDGE, "model": how["model"]}, named(how.get("wrong", []))
    result = {row["qid"]: row for row in _asked(stage.repository.read(stage.gold)) if row["answerable"]}
    made = []
    for trace in map(json.loads, run_traces(stage).splitlines()):
        if trace["qid"] in result:
            grade = 1 if trace["qid"] in wrong else 5
            shown = {**trace, "chunks": []}
            made.append(verdict_row(result[trace["qid"]], shown, judge, groundedness=None, correctness=grade))
    path = stage.repository.path / "eval/verdicts.jsonl"
    before = path.read_bytes() if path.exists() and not how.get("rewrite") else b""
    stage.repository.write("eval/verdicts.jsonl", before + honest.lines(made))


@move
def in_lfs(stage, path):
    """The file becomes a pointer of Git LFS, and the checkout of the job has its content."""
    data = stage.repository.read(path)
    digest = hashlib.sha256(data).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(data)}\n"
    stage.repository.write(path, pointer)
    stage.job.append({"write": {path: data.decode()}})


@move
def commit_traces(stage, path):
    """What the honest system says to every question, in a file of the pull request."""
    honest_traces(stage, path)


@move
def copy_record(stage, day):
    """The records of the base once more, under the name of another day."""
    for path in sorted((stage.repository.path / RECORDS).glob("*.json")):
        path.with_name(f"{day}{path.name[10:]}").write_bytes(path.read_bytes())


@move
def records(stage, edits):
    """The records of the base: new texts by old ones in each, or ``remove``."""
    for path in sorted((stage.repository.path / RECORDS).glob("*.json")):
        if edits == "remove":
            path.unlink()
        else:
            text = path.read_text()
            for old, new in edits.items():
                assert old in text, old
                text = text.replace(old, new)
            path.write_text(text)


_SIGNERS = "signers: {ann@example.org: {github: ann}, bob@example.org: {github: bob}, eve@example.org: {github: eve}}"


@move
def four_eyes(stage, _):
    """A policy under which nobody signs what they wrote."""
    gates(stage, {"require: record": f"require: record, four_eyes: true, {_SIGNERS}"})


@move
def reviewed(stage, _):
    """A policy under which a signer approves."""
    gates(stage, {"require: record": f"require: review, {_SIGNERS}"})


@move
def signed(stage, terms):
    """A policy under which Bob signs with his key; ``options`` of his line in the file of keys."""
    gates(stage, {"require: record": "require: signature, allowed_signers: .github/gold-signers"})
    options = terms.get("options", {})
    line = stage.keys.line("bob", options=options["bob"]) if options else stage.keys.line("bob")
    stage.repository.write(".github/gold-signers", line)


@move
def allow(stage, names):
    """Whose keys may sign."""
    stage.repository.write(".github/gold-signers", stage.keys.allowed(*names))


# --- the traces ------------------------------------------------------------------------------------------------------


@move
def traces(stage, edits):
    """Edits of the traces that the system of the base gives to the gold at hand; done in the job."""
    stage.edits += [(word, argument) for word, argument in edits.items()]


def run_traces(stage):
    """The bytes of the trace file: what the system says to each question of the gold, with the edits made."""
    try:
        asked = _asked(stage.repository.read(stage.gold))
        rows = [honest.answer(item) for item in asked]
    except (OSError, ValueError, TypeError, KeyError):
        rows = [honest.answer(item) for item in honest.items()]
    return answers.edited(rows, stage.edits)


def _asked(data):
    """The items of a gold file in any of its forms."""
    data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    return json.loads(data) if data.startswith(b"[") else [json.loads(line) for line in _rows(data)]


@move
def honest_traces(stage, path):
    """What the honest system says to every question, in a file of its own."""
    stage.repository.write(path, answers.edited([honest.answer(item) for item in honest.items()], []))


@move
def baseline(stage, path):
    """The report of the run as it stands becomes the baseline at ``path``."""
    trace = stage.repository.path / honest.TRACE
    trace.parent.mkdir(parents=True, exist_ok=True)
    trace.write_bytes(run_traces(stage))
    if stage.about is not None:
        stage.repository.write(honest.RUN, json.dumps(stage.about))
    with chdir(stage.repository.path):
        report = score_files(gates=GATES)
    shutil.rmtree(trace.parent)
    stage.repository.write(path, render(report, "json"))


@move
def worse_baseline(stage, message):
    """The report of a run that also fails questions, at a path."""
    output, stage.edits = stage.edits, [*stage.edits, ("say", {"to": message["failing"], "claim": "Nobody knows."})]
    baseline(stage, message["path"])
    stage.edits = output


@move
def cut_baseline(stage, message):
    """The report of the baseline at a path loses questions, and keeps its values."""
    report = json.loads(stage.repository.read(message["path"]))
    report["questions"] = [case for case in report["questions"] if case["qid"] not in message["without"]]
    stage.repository.write(message["path"], json.dumps(report))


@move
def baseline_of_runs(stage, message):
    """The report of several runs becomes the baseline at a path."""
    output, stage.edits = stage.edits, [*stage.edits, ("runs", message["runs"])]
    baseline(stage, message["path"])
    stage.edits = output


@move
def run_json(stage, about):
    """What run.json says of the run; ``head``, ``base`` and ``gold`` stand for what is so called."""
    stage.about = about


# --- the job ---------------------------------------------------------------------------------------------------------


@move
def inputs(stage, given):
    """Inputs of the action in the workflow."""
    stage.inputs |= given


@move
def event(stage, message):
    """What the runner and the event file say: ``name``, ``ref``, and ``file`` with what a step wrote into it."""
    stage.event |= message


@move
def api(stage, faults):
    """What GitHub answers instead: a status by a pattern of "METHOD path"."""
    stage.faults += list(faults.items())


@move
def job(stage, steps):
    """What an earlier step of the job does in the checkout."""
    stage.job += steps


@move
def checkout(stage, which):
    """What the workflow checks out: ``merge`` (the usual), ``head``, each with ``shallow`` behind it."""
    stage.checkout = which


@move
def checkout_into(stage, folder):
    """The folder of the workspace that the workflow checks out into, and that the action works in."""
    stage.below = folder
    stage.inputs["working-directory"] = folder


@move
def review(stage, approvals):
    """Who approves which commit: ``head`` or ``first``, by login."""
    stage.reviews += list(approvals.items())


# --- an earlier step of the job that writes into .git -----------------------------------------------------------------


@move
def bomb(stage, path):
    """A file of a few kilobytes that expands to one line of 20 MiB."""
    stage.repository.write(path, gzip.compress(b"x" * (20 << 20)))


@move
def nested_git(stage, path):
    """A second repository inside of the checkout."""
    Repository(stage.repository.path / path).git("init", "--quiet", "--template=")


@move
def move_branch(stage, names):
    """Refs of the checkout, moved to where another one stands."""
    for ref, to in names.items():
        stage.repository.git("update-ref", ref, stage.repository.git("rev-parse", to))


@move
def tag(stage, name):
    """A tag on the last commit."""
    stage.repository.git("tag", name)


@move
def detach(stage, to):
    """HEAD at another commit, the files as they are."""
    stage.repository.git("update-ref", "--no-deref", "HEAD", stage.repository.git("rev-parse", to))


@move
def forge_object(stage, forged):
    """In place of a loose object, the bytes of another: the name stays, the content does not."""
    name, other = (stage.repository.git("rev-parse", forged[end]) for end in ("in_place_of", "stands"))
    folder = stage.repository.path / ".git/objects"
    paths = [folder / item[:2] / item[2:] for item in (name, other)]
    paths[0].chmod(0o644)
    paths[0].write_bytes(paths[1].read_bytes())


@move
def replace_object(stage, forged):
    """git's own way to show one object in place of another."""
    stage.repository.git("replace", "--force", forged["in_place_of"], forged["stands"])


@move
def git(stage, words):
    """A command of git in the checkout."""
    stage.repository.git(*words)


@move
def graft(stage, parents):
    """Other parents than a commit has, as git's info/grafts says them."""
    names = [stage.repository.git("rev-parse", name) for name in (parents["commit"], *parents["parents"])]
    stage.repository.write(".git/info/grafts", " ".join(names) + "\n")
