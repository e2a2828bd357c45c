"""The straight line: files into rows, rows into cases, cases into a scorecard, a scorecard into a report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.common.digests import Digests, by_line_ends
from rag_eval.engines.options import USUAL
from rag_eval.errors import InputError, Problem, UsageError
from rag_eval.gates.partial_runs import narrowed
from rag_eval.readers.gold_file import item_hashes, read_gold
from rag_eval.readers.limits import Limits
from rag_eval.readers.problems import Ledger
from rag_eval.readers.source import Reader
from rag_eval.readers.trace_file import pair_finder, paired, read_traces

if TYPE_CHECKING:
    from rag_eval.analysis.report import Context, Earlier, Past, Report
    from rag_eval.cases.case import Case
    from rag_eval.cases.finding import Finding
    from rag_eval.contract import Gold, Settings, Trace
    from rag_eval.engines.options import How
    from rag_eval.gates.policy import Policy
    from rag_eval.gates.results import Question
    from rag_eval.gold.lint import Seen
    from rag_eval.governance.base_policy import Authority
    from rag_eval.metrics import Measure
    from rag_eval.readers.baseline import BaselineFile
    from rag_eval.readers.gold_set import GoldSet, StoredGold
    from rag_eval.scoring.scorecard import Scorecard

    Path = str | os.PathLike[str]

DEFAULT_CUTOFFS = (1, 3, 5, 10)
_MANY = 20_000  # cases from which tests take longer than to have further processes


class Options(NamedTuple):
    """What is to be scored. An empty path falls back on the gates file, then on the usual places."""

    gold: str = ""
    trace: str = ""
    gates: str = ""
    cutoffs: tuple[int, ...] = ()
    root: str | None = None  # no link may lead out of it; None: out of the folder of the named file
    folder: str = ""  # where the usual places are when there is no gates file
    baseline: str = ""  # in place of the gates file's
    perspectives: tuple[str, ...] = ()  # measure and judge these alone; none: all
    suite: str = "full"  # or smoke, smoke:N: a part of the questions
    how: How = USUAL  # what the report does not show
    by: tuple[str, ...] = ()  # fields to cut the metrics by, besides those of the gates file
    verdicts: str = ""  # in place of the gates file's


def score(
    gold: Path,
    trace: Path,
    gates: Path | None = None,
    baseline: Path | None = None,
    *,
    k: int | Sequence[int] | None = None,
    perspectives: str | Sequence[str] = (),
    suite: str = "full",
    by: str | Sequence[str] = (),
) -> Report:
    """Score a trace file against a gold file and judge the gates.

    ``gold`` and ``trace`` are paths as ``rag-eval score`` takes them; ``gates`` is the path of an eval-gates.yml,
    without which the reference scorer's defaults hold; ``baseline`` is the report.json of an earlier run, in place of
    the one that the gates file names. ``k`` gives the cutoffs of the retrieval metrics (1, 3, 5 and 10 if not said).
    ``perspectives`` (such as ``["retrieval"]``) and ``suite`` (``smoke``, ``smoke:30``) narrow the run to a part, which
    ``report.scope`` then tells. ``by`` names gold fields (such as ``["difficulty", "tags"]``) by which
    ``report.slices`` has every metric. Raises :class:`~rag_eval.errors.InputError` with every problem where the files
    cannot be judged, and :class:`~rag_eval.errors.UsageError` where an argument cannot be; a failed gate is no error:
    read ``report.passed``.

    >>> report = score("examples/quickstart/gold.jsonl", "examples/quickstart/good.jsonl")
    >>> report.verdict, report.metrics["precision"].exact
    ('passed', '1')
    """
    from rag_eval.engines.run_arguments import cutoffs, fields, name, names, path

    policy = "" if gates is None else path(gates, "gates")
    earlier = "" if baseline is None else path(baseline, "baseline")
    part = names(perspectives, "perspectives"), name(suite, "suite")
    return run(
        Options(
            path(gold, "gold"),
            path(trace, "trace"),
            policy,
            cutoffs(k),
            None,
            "",
            earlier,
            *part,
            by=fields(names(by, "by")),
        )
    )


def run(options: Options, authority: Authority | None = None) -> Report:
    """Read, score, judge; hold it against ``authority`` where there is one.

    InputError with all problems where the input cannot be judged.
    """
    reader, policy, digests = open_policy(options)
    base = _base(options, reader, policy, authority) if authority else None
    session = Session(options, reader, policy, base, digests)
    try:
        report = session.first(authority)
    except InputError as error:
        raise _of_another_tool(reader, policy, error) or error from None
    if authority is None:
        return report
    from rag_eval.governance.policy_review import review
    from rag_eval.governance.review_context import Named, Scene

    named = Named(options.gold, options.trace, options.gates, options.cutoffs, options.folder)
    return review(Scene(authority, named, policy, base, report, session))


def _of_another_tool(reader: Reader, policy: Policy, error: InputError) -> InputError | None:
    """One problem in place of hundreds if gold or traces are the export of another tool: the command that reads it."""
    from rag_eval.importers import IMPORTERS
    from rag_eval.importers.detect import detect

    found = []
    for kind, path in (("gold", policy.gold), ("trace", policy.trace)):
        source = (
            reader._replace(ledger=Ledger()).open(path) if any(one.file == path for one in error.problems) else None
        )
        if source is None:
            continue
        with source:
            form = detect(source.head)
        if form and (name := getattr(form, kind)) and IMPORTERS[name].function:  # others are read in place
            out = "eval/gold.jsonl" if kind == "gold" else "runs/trace.jsonl"
            hint = f"Convert it: rag-eval import {name} {path} --out {out}"
            found.append(Problem(path, 0, "", f"is an export of another tool ({name}: it has {form.why})", hint))
    return InputError(found) if found else None


class Session:
    """One run: scored once as its own policy has it, and again as other policies, or against other gold."""

    def __init__(self, options: Options, reader: Reader, policy: Policy, base: Policy | None, digests: Digests) -> None:
        self._options, self._reader, self._policy, self._base, self._digests = options, reader, policy, base, digests
        policies = [each for each in (policy, base) if each]
        self._wanted = wanted(options, *policies)
        self._fields = list(dict.fromkeys(field for each in policies for field in each.fields))
        self._path = options.baseline or next((each.baseline for each in (base, policy) if each and each.baseline), "")
        self._file: BaselineFile | None = None
        self._authority: Authority | None = None
        self._about: dict[str, Any] | None = None
        self._old_traces: tuple[str, bytes] | None = None
        self.earlier: Earlier | None = None
        self.card: Scorecard

    def first(self, authority: Authority | None) -> Report:
        """The report under the run's own policy; InputError with every problem of every file."""
        self._authority = authority
        if not self._path:
            return self._first()
        from rag_eval.readers.baseline import BaselineFile

        self._file = BaselineFile(self._reader, self._path, authority, self._limits_of_base)
        return self._first()

    def _first(self) -> Report:
        from rag_eval.analysis.notes import Input, Remark
        from rag_eval.analysis.report import Context, build, drawn
        from rag_eval.gates.scope import in_suite

        reader, policy, digests = self._reader, self._policy, self._digests
        self._golds = read_gold(reader, policy.gold, digests.of("gold", policy.gold))
        self._asked = in_suite(self._golds, policy.suite)
        terms = self._wanted, policy.settings, digests, self._asked, self._options.how
        self.card = score_traces(reader, self._golds, policy.trace, *terms)
        about = self._about = sidecar(reader, policy, digests)
        reader.ledger.stop_on_problems()
        self._hashes = item_hashes(reader, policy.gold, self._golds)
        found = [*self._provenance(reader, about, policy, digests.hex("gold")), *self._vacuous()]
        known = Context(about=about, hashes=self._hashes, fields=self._fields, cluster=policy.statistics.cluster)
        cases = drawn(self.card, known)  # while the baseline is being read
        known = known._replace(drawn=cases)
        self.earlier, said = self._baseline(policy)
        if self.earlier:
            from rag_eval.readers.baseline import without_run_json
            from rag_eval.readers.report_file import sidecar_of

            said += without_run_json(self.earlier, about, sidecar_of(policy.trace))
        notes = [Remark(*note[:4]) for note in reader.ledger.notes]
        inputs = [Input(*row) for row in digests.rows()]
        found += self._partly_measured(policy, self._golds, cases.questions)
        found += self._repeated(policy, self._golds, cases.questions, digests)
        found += self._unmatched(policy, cases.questions, digests)
        found += self._ids_changed(policy, cases.questions, digests)
        found += self._injected(policy, cases.questions)
        own = known._replace(notes=notes, inputs=inputs, findings=[*found, *said], earlier=self.earlier)
        return build(self.card, self._golds, policy, self._by_many(own))

    def _vacuous(self) -> list[Finding]:
        """Gold that says too little, where that is asked for which it matters to."""
        if all(one.name != "precision" for one in self._wanted):
            return []
        from rag_eval.analysis.report import levels
        from rag_eval.cases.integrity import vacuous

        policies = [each for each in (self._policy, self._base) if each]
        return vacuous(self._asked.values(), self._policy.gold, levels(*policies))

    def _partly_measured(
        self, policy: Policy, golds: Mapping[str, Gold], questions: Sequence[Question]
    ) -> list[Finding]:
        """Find the gated metrics that some cases are missing from, for their traces lack a field."""
        from rag_eval.analysis.report import levels
        from rag_eval.gates import missing_measurements

        policies = [each for each in (self._policy, self._base) if each]
        watched = missing_measurements.watched(policies, self.card.columns)
        columns = [one for one, _ in watched.values()]
        suspects = missing_measurements.suspects(questions, golds, columns, policy.settings)
        if not suspects:
            return []
        before = self.earlier.questions if self.earlier else ()
        found = missing_measurements.partly_measured(
            questions, self._read_again(policy, golds, suspects), columns, before
        )
        severities = {name: severity for name, (_, severity) in watched.items()}
        return missing_measurements.findings(found, severities, levels(*policies))

    def _repeated(
        self, policy: Policy, golds: Mapping[str, Gold], questions: Sequence[Question], digests: Digests
    ) -> list[Finding]:
        """Find right answers that are the same for many questions, in a sample that the content of the files draws."""
        from rag_eval.analysis.report import levels
        from rag_eval.cases.integrity import SAMPLE, Answer, drawn_at, repeated

        policies = [each for each in (self._policy, self._base) if each]
        if not {"precision", "containment"} & {gate.name for each in policies for gate in each.gates}:
            return []
        right = [question for question in questions if question.label == "OK" and question.answerable]
        seed = f"{digests.hex('trace')} {len(golds)}"
        sample = [right[place] for place in drawn_at(len(right), SAMPLE, seed)]
        answers = [Answer(case.gold, case.claim) for _, case in self._read_again(policy, golds, sample)]
        return repeated(answers, list(golds.values()), seed, levels(*policies))

    def _unmatched(self, policy: Policy, questions: Sequence[Question], digests: Digests) -> list[Finding]:
        """Find that gold and traces name chunks otherwise, if for most questions nothing of the gold was retrieved."""
        from rag_eval.cases.case import evidence_level
        from rag_eval.cases.integrity import SAMPLE, drawn_at, unmatched
        from rag_eval.cases.labels import UNRETRIEVED

        lost = sum(question.label in UNRETRIEVED for question in questions)
        if 2 * lost <= sum(question.answerable and question.trace_line > 0 for question in questions):
            return []
        asked = [
            question
            for question in questions
            if question.trace_line and question.answerable and evidence_level(self._golds[question.qid])
        ]
        places = drawn_at(len(asked), SAMPLE, digests.hex("trace"))
        sample = self._read_again(policy, self._golds, [asked[place] for place in places])
        return unmatched((case for _, case in sample if case.in_a), policy.gold)

    def _ids_changed(self, policy: Policy, questions: Sequence[Question], digests: Digests) -> list[Finding]:
        """Find that chunks have other ids than in the baseline's traces, in a sample of the questions of both."""
        from rag_eval.analysis.report import levels
        from rag_eval.cases.case import evidence_level
        from rag_eval.cases.integrity import SAMPLE, drawn_at, ids_changed
        from rag_eval.gates.policy import MARGINS
        from rag_eval.metrics import measure

        if self.earlier is None or self._old_traces is None:
            return []
        before = {case.qid: case for case in self.earlier.questions if case.trace_line}
        both = [case for case in questions if case.trace_line and case.answerable and case.qid in before]
        both = [case for case in both if evidence_level(self._golds[case.qid]) == "chunk"]
        both = [both[place] for place in drawn_at(len(both), SAMPLE, digests.hex("trace"))]
        old_policy, data = policy._replace(trace=self._old_traces[0]), self._old_traces[1]
        asked = [before[case.qid] for case in both]
        old = {case.qid: one for case, one in self._read_again(old_policy, self._golds, asked, data)}
        pairs = [(old[case.qid], one) for case, one in self._read_again(policy, self._golds, both) if case.qid in old]
        policies = [each for each in (self._policy, self._base) if each]
        margins = [gate for each in policies for gate in each.gates if gate.direction in MARGINS]
        names = [measure(gate.name).metric for gate in margins if gate.severity == "error"]
        by_id = any(one.perspective in ("retrieval", "citations") or "precision" in one.name for one in names)
        return ids_changed(pairs, by_id, levels(*policies))

    def _injected(self, policy: Policy, questions: Sequence[Question]) -> list[Finding]:
        """Find instructions to a language model in the retrieved chunks, if a gates file asks for it."""
        from rag_eval.analysis.report import levels
        from rag_eval.cases.integrity import injected

        wanted = levels(*[each for each in (self._policy, self._base) if each])
        if wanted["injected-instructions"] == "off":
            return []
        read = self._read_again(policy, self._golds, [question for question in questions if question.trace_line])
        return injected((case.trace for _, case in read), policy.trace, wanted)

    def _read_again(
        self, policy: Policy, golds: Mapping[str, Gold], wanted: Sequence[Question], data: bytes | None = None
    ) -> Iterator[tuple[Question, Case]]:
        """Read the traces of some cases again, from the file of the policy or from its bytes."""
        import json

        from rag_eval.cases.case import Case
        from rag_eval.contract import Trace

        by_line = {question.trace_line: question for question in wanted}
        held = {} if data is None else {policy.trace: data}
        source = self._reader._replace(ledger=Ledger(), held=held).open(policy.trace) if by_line else None
        if source is None:
            return
        with source:
            for number, line in source.lines():
                if (question := by_line.pop(number, None)) is not None:
                    # It was held against its contract already.
                    trace = Trace.from_row(json.loads(line), question.qid, number)
                    yield question, Case(golds[question.qid], trace, policy.settings)
                    if not by_line:
                        return

    def _by_many(self, context: Context) -> Context:
        """With as many processes for the tests as may work, where there are many cases."""
        if self.earlier is None or len(self.card.cases) < _MANY:
            return context
        from rag_eval.engines.forked import processes, spread

        return context._replace(each=partial(spread, jobs=processes(self._options.how.jobs)))

    def again(self, policy: Policy) -> Report:
        """The report under another policy, with what is found under both."""
        return self._scored(policy, None, None, self._earlier_under(policy))

    @property
    def gold(self) -> GoldSet:
        """The gold set that was scored."""
        from rag_eval.readers.gold_set import GoldSet, form_of

        return GoldSet(self._golds, self._hashes, form_of(self._reader, self._policy.gold))

    @property
    def gold_sha256(self) -> str:
        """The sha256, in hex, of the gold file that was scored."""
        return self._digests.hex("gold")

    def answers(self, most: int) -> Seen:
        """What the first ``most`` traces answered."""
        from itertools import islice

        from rag_eval.gold.lint import watch

        quiet = self._reader._replace(ledger=Ledger())
        found = traces(quiet, self._golds, self._policy.trace, Digests())
        return watch(self._golds, islice(found, most), self._policy.settings)

    def other_questions(self) -> list[str]:
        """The qids under which traces say that another question was asked than the gold asks, sorted."""
        from rag_eval.cases.pairing import asks_another

        found = chain.from_iterable(read_traces(self._reader._replace(ledger=Ledger()), self._policy.trace))
        others = {asks_another(trace, self._golds) for trace in found if trace.q or trace.question}
        return sorted(qid for qid in others if qid is not None)

    def stored(self, gold: StoredGold) -> GoldSet:
        """Read the gold set of another commit; InputError when it cannot be read."""
        from rag_eval.readers.gold_set import stored_gold_set

        return stored_gold_set(self._reader, gold)

    def before(self, gold: GoldSet) -> Past:
        """The report on the gold as it was, beside the baseline on that gold.

        Traces that answer none of its questions are left out, and so are questions that this gold does not have any
        more and no trace answers: what the system would say to those is not known.
        """
        from rag_eval.analysis.report import Past

        earlier = self._baseline(self._policy, gold)[0] if self.earlier else None
        return Past(self._scored(self._policy, gold, None, earlier), earlier)

    def _scored(self, policy: Policy, gold: GoldSet | None, trace: bytes | None, earlier: Earlier | None) -> Report:
        from rag_eval.analysis.report import Context, build, drawn, habits

        held = {} if trace is None else {policy.trace: trace}
        quiet, digests = self._reader._replace(ledger=Ledger(), held=held), Digests()
        same = gold is None and policy.gold == self._policy.gold
        if gold is None:
            digest = digests.of("gold", policy.gold)
            golds = self._golds if same else read_gold(quiet, policy.gold, digest)
            hashes = self._hashes if same else item_hashes(quiet, policy.gold, golds)  # of all that the file holds
        else:
            golds, hashes = dict(gold.golds), dict(gold.hashes)
        traces = quiet if trace is None else quiet._replace(limits=self._limits_of_base)
        card = self._card(traces, golds, policy, digests)
        if gold is not None and trace is None and (unknown := self._unanswered(golds, card)):
            golds = {qid: item for qid, item in golds.items() if qid not in unknown}
            card = self._card(traces, golds, policy, digests)
        known = Context(fields=self._fields, earlier=earlier)
        if trace is None:  # the baseline's traces are of another run, which its own report tells of
            digest = "" if gold is not None else (self._digests if same else digests).hex("gold")
            about, found = self._told(quiet, policy, digest)
            known = known._replace(about=about, findings=[*found, *habits(card, policy, self._policy)])
        if policy.trace != self._policy.trace and trace is None:
            known = known._replace(drawn=(cases := drawn(card, known._replace(hashes=hashes))))
            lacking = self._partly_measured(policy, golds, cases.questions)
            twice = self._repeated(policy, golds, cases.questions, digests)
            known = known._replace(findings=[*known.findings, *lacking, *twice])
        if gold is None and trace is None:  # other gold may not know every question that the traces answer
            quiet.ledger.stop_on_problems()
        return build(card, golds, policy, known._replace(hashes=hashes))

    @property
    def _limits_of_base(self) -> Limits:
        return Limits(**self._base.limits) if self._base else self._reader.limits

    def _card(self, reader: Reader, golds: dict[str, Gold], policy: Policy, digests: Digests) -> Scorecard:
        terms = self._wanted, policy.settings, digests, self._asked_of(golds), self._options.how
        return score_traces(reader, golds, policy.trace, *terms)

    def _unanswered(self, golds: Mapping[str, Gold], card: Scorecard) -> set[str]:
        """The questions of other gold that this one does not have, and that no trace answers."""
        gone = golds.keys() - self._golds.keys()
        return gone - {case.qid for case in card.cases if case.label != "MISSING"} if gone else gone

    def _told(self, reader: Reader, policy: Policy, gold: str) -> tuple[dict[str, Any] | None, list[Finding]]:
        """What run.json says of the traces of a policy, and what is found by that where it is not the run's own."""
        if policy.trace == self._policy.trace:
            return self._about, []
        about = sidecar(reader, policy, Digests())
        return about, self._provenance(reader, about, policy, gold)

    def _provenance(self, reader: Reader, about: dict[str, Any] | None, policy: Policy, gold: str) -> list[Finding]:
        """Whether a policy's traces are of this commit and of the gold of this sha256, as far as run.json tells."""
        from rag_eval.analysis.report import levels
        from rag_eval.cases.integrity import Origin, provenance
        from rag_eval.readers.report_file import sidecar_of

        authority = self._authority
        commits = authority.commits if authority else frozenset[str]()
        about = about or {}
        origin = Origin(sidecar_of(policy.trace), about, _names_of(reader, policy.gold, gold, about), commits)
        wanted = levels(*(each for each in (self._policy, self._base) if each))
        if not (authority and authority.ci):  # at work on a laptop, the gold is ahead of the traces all the time
            wanted = {code: "warning" if level == "error" else level for code, level in wanted.items()}
        return provenance(origin, wanted)

    def _asked_of(self, golds: Mapping[str, Gold]) -> Mapping[str, Gold]:
        """The items of the suite in another state of the gold: those of this one, and those that it lacks."""
        if len(self._asked) == len(self._golds):
            return golds
        return {qid: gold for qid, gold in golds.items() if qid in self._asked or qid not in self._golds}

    def _earlier_under(self, policy: Policy) -> Earlier | None:
        """The baseline; where values mean something else under ``policy``, its traces are scored as that has it."""
        same = (policy.settings, policy.gold) == (self._policy.settings, self._policy.gold)
        return self.earlier if same or self.earlier is None else self._baseline(policy)[0]

    def _baseline(self, under: Policy, gold: GoldSet | None = None) -> tuple[Earlier | None, list[Finding]]:
        """The baseline that the base's policy names, else the head's; the caller's own above both.

        Its traces are scored on other ``gold`` if some is given.
        """
        policies = [each for each in (self._base, self._policy) if each]
        if self._file is None:
            return None, []
        from rag_eval.gates.partial_runs import of_suite
        from rag_eval.readers.baseline import overridden, read_baseline, read_rerun

        trace = next((each.baseline_trace for each in policies if each.baseline_trace), "")

        def rescored(trace: str, data: bytes) -> Report:
            self._old_traces = trace, data
            return self._scored(under._replace(trace=trace), gold, data, None)

        asked = bool(self._options.baseline)
        earlier, said = read_baseline(self._file, trace, rescored, asked=asked)
        said += overridden(self._file, self._base.baseline if self._base and asked else "")
        rerun = next((each.baseline_rerun for each in policies if each.baseline_rerun), "")
        if earlier and rerun:
            again, missing = read_rerun(self._file, rerun)
            earlier = earlier._replace(rerun=again)
            said += missing
        return earlier and of_suite(earlier, self._golds.keys() - self._asked.keys()), said


def wanted(options: Options, *policies: Policy | None) -> tuple[Measure, ...]:
    """What is to be measured: for the cutoffs asked for, for the gates, and for the labels."""
    from rag_eval.gates.partial_runs import within
    from rag_eval.metrics import measures

    gates = [gate.name for policy in policies if policy for gate in policy.gates]
    labels = [f"recall_all@{policy.k}" for policy in policies if policy]
    found = measures(options.cutoffs or DEFAULT_CUTOFFS, gates + labels)
    if not any(policy.verdicts for policy in policies if policy):
        found = tuple([one for one in found if one.metric.perspective != "judge" or one.name in gates])
    return within(found, next(policy for policy in policies if policy))


def _base(options: Options, reader: Reader, head: Policy, authority: Authority) -> Policy | None:
    """The base's policy, with the options laid over it as over the head's.

    Files that it names and that are not there any more are the head's: their going is a change of its own. So is gold
    that the change edits where the base has it, and scores from elsewhere.
    """
    from rag_eval.governance.base_gates import base_policy
    from rag_eval.governance.base_gold import is_unchanged

    def scored() -> dict[str, Gold]:
        return read_gold(reader._replace(ledger=Ledger()), head.gold)

    policy = base_policy(authority, head.file, options.folder, head.gold, scored)
    if policy is None:
        return None
    gold, trace = options.gold or policy.gold, options.trace or policy.trace
    own = gold == head.gold or (os.path.lexists(gold) and is_unchanged(authority, gold))
    policy = narrowed(policy, options.perspectives, options.suite)._replace(
        k=headline(options.cutoffs, policy.k),
        gold=gold if own else head.gold,
        trace=trace if os.path.lexists(trace) else head.trace,
    )
    verdicts = options.verdicts or policy.verdicts
    verdicts = verdicts if os.path.lexists(verdicts) else head.verdicts
    return with_verdicts(policy._replace(verdicts=verdicts), reader._replace(ledger=Ledger()), Digests())


def open_policy(options: Options) -> tuple[Reader, Policy, Digests]:
    """The reader, the policy in force with the options laid over it, and the digests begun."""
    digests, reader = Digests(), Reader(Ledger(), root=options.root, urls=options.how.engine == "dask")
    policy = policy_in(reader, options, digests)
    reader = reader._replace(limits=Limits(**policy.limits))
    k, gold, trace = headline(options.cutoffs, policy.k), options.gold or policy.gold, options.trace or policy.trace
    policy = narrowed(policy, options.perspectives, options.suite)
    slices = policy.slices._replace(by=tuple(dict.fromkeys([*policy.slices.by, *options.by])))
    policy = policy._replace(k=k, gold=gold, trace=trace, slices=slices, verdicts=options.verdicts or policy.verdicts)
    return reader, with_verdicts(policy, reader, digests), digests


def with_verdicts(policy: Policy, reader: Reader, digests: Digests) -> Policy:
    """The policy with the recorded verdicts of its judge, or of the only judge in the file if it names none."""
    if not policy.verdicts:
        return policy
    from rag_eval.readers.verdict_file import read_replay

    judge, replay = read_replay(reader, policy.verdicts, policy.judge, digests)
    return policy._replace(judge=judge, replay=replay)


def score_traces(
    reader: Reader,
    golds: dict[str, Gold],
    path: str,
    wanted: Sequence[Any],
    settings: Settings,
    digests: Digests,
    asked: Mapping[str, Gold] | None = None,
    how: How = USUAL,
) -> Scorecard:
    """The scorecard of a trace file, by an engine. Where items are ``asked``, it is about these alone."""
    from rag_eval import engines
    from rag_eval.cases.pairing import Questions
    from rag_eval.scoring.scorer import Scorer

    part = golds if asked is None else asked
    scorer = Scorer(part, wanted, settings, () if part is golds else golds)
    work = engines.Work(golds, scorer, Questions(golds), reader.limits, is_complete=not reader.ledger.problems)
    card: Scorecard = engines.score(engines.Task(work, reader, path, digests, how)).close()
    return card


def traces(reader: Reader, golds: dict[str, Gold], path: str, digests: Digests) -> Iterator[Trace]:
    """The traces of a file, each under the qid of the gold item that it answers."""
    found = chain.from_iterable(read_traces(reader, path, digests.of("trace", path)))
    return paired(found, pair_finder(golds, reader.ledger, path, is_complete=not reader.ledger.problems))


def sidecar(reader: Reader, policy: Policy, digests: Digests) -> dict[str, Any] | None:
    """What run.json says of the run, None where there is none."""
    from rag_eval.readers.report_file import read_sidecar, sidecar_of

    path = sidecar_of(policy.trace)
    if not reader.has(path):
        return None
    return read_sidecar(reader, path, digests.of("run", path))


def _names_of(reader: Reader, path: str, gold: str, about: dict[str, Any]) -> list[str]:
    """The sha256 by which run.json may name a gold file: that of its bytes, and of the same with other line ends."""
    answered = about.get("gold_sha256") or gold
    source = None if answered.lower() == gold else reader._replace(ledger=Ledger()).open(path)
    if source is None:
        return [gold]
    with source:
        data = source.whole()
    return [gold, *by_line_ends(data)] if data else [gold]


def policy_in(reader: Reader, options: Options, digests: Digests) -> Policy:
    """The policy of the gates file that is meant; the reference gates where there is none."""
    from rag_eval.gates.policy import REFERENCE_GATES, Policy

    path, usual = options.gates, Policy(gates=REFERENCE_GATES)
    if not path:
        gold, trace = (os.path.join(options.folder, name) for name in (usual.gold, usual.trace))  # noqa: PTH118
        return usual._replace(gold=gold, trace=trace)
    from rag_eval.readers.gates_file import read_policy

    policy = read_policy(reader, path, digests.of("gates", path))
    reader.ledger.stop_on_problems()
    if policy is None:
        raise UsageError(f"{path} could not be read")
    return policy if policy.gates else policy._replace(gates=REFERENCE_GATES)


def headline(cutoffs: Sequence[int], own: int) -> int:
    """The k of labels and diagnosis: the policy's, unless cutoffs are asked for that leave it out."""
    return own if not cutoffs or own in cutoffs else max(cutoffs)
