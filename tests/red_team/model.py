"""The promise as plainly as it can be written: what the base's gates say of answers to the base's questions.

Shares no code with the package. Everything is looked up by qid in the base's gold, under the base's gates, in the
traces of the run: a missing answer is wrong, a refused one is refused, an answer that lacks a measurement that a gate
needs counts as the worst one. Several runs are several cases of each question.
"""

from __future__ import annotations

from fractions import Fraction

LONGEST_PHRASE = 200


def verdict(gates, golds, traces, earlier=None):
    """Return what of the base's gates the answers break, by name; empty if the run may pass.

    ``earlier`` are the answers of the base's baseline, if its gates name one.
    """
    now, before = measured(gates, golds, traces), measured(gates, golds, earlier or [])
    broken = {}
    for name, bounds in gates["gates"].items():
        value = _mean(now[name])
        low, high = (Fraction(str(bounds[side])) if side in bounds else None for side in ("min", "max"))
        if value is None or (low is not None and value < low) or (high is not None and value > high):
            broken[name] = value and float(value)
        if earlier and "max_drop" in bounds and (value or 0) < _mean(before[name]) - Fraction(str(bounds["max_drop"])):
            broken[f"drop of {name}"] = value and float(value)
    if earlier:
        wrong = {qid for qid, right in _right(gates, golds, traces) if not right}
        broken |= dict.fromkeys(wrong.intersection(gates.get("must_pass", ())), "must pass")
    counts = completeness(golds, traces)
    return broken | {name: count for name, count in counts.items() if count > gates["completeness"][name]}


def _mean(scores):
    values = [Fraction(score) for score in scores if score is not None]
    return sum(values) / len(values) if values else None


def _right(gates, golds, traces):
    for case in _cases(gates, golds, traces):
        yield (
            case.gold["qid"],
            case.precision() if case.answerable and not case.refused else case.refused is not case.answerable,
        )


def completeness(golds, traces):
    """Count the questions of the base without an answer, and the answers that are given more than once.

    Answers to other questions are no business of the base: the pull request may add questions.
    """
    cases = [(row.get("run"), row.get("qid")) for row in traces]
    missing = sum((run, gold["qid"]) not in cases for run in {run for run, _ in cases} or {None} for gold in golds)
    known = {gold["qid"] for gold in golds}
    ours = [case for case in cases if case[1] in known]
    return {"missing": missing, "duplicate": len(ours) - len(set(ours))}


def measured(gates, golds, traces):
    """Return the scores of every case by metric; None where the metric does not apply."""
    cases = _cases(gates, golds, traces)
    plain = {name: name.partition("@")[0].partition(".")[0] for name in gates["gates"]}
    return {name: [getattr(case, plain[name])() for case in cases] for name in plain}


def _cases(gates, golds, traces):
    last = {(row.get("run"), row.get("qid")): row for row in traces}
    runs = sorted({run for run, _ in last}, key=str) or [None]
    return [_Case(gates, gold, last.get((run, gold["qid"]))) for run in runs for gold in golds]


class _Case:
    def __init__(self, gates, gold, trace):
        self.gold, self.answerable, self.attack = gold, gold["answerable"], gold.get("attack")
        self.trace = trace or {}
        answer = self.trace.get("answer_json") or {}
        self.claim = (answer.get("claim") or "").strip().lower()
        self.cited, self.retrieved = answer.get("citations") or [], self.trace.get("retrieved_ids") or []
        blocked = bool((self.trace.get("guardrail") or {}).get("blocked"))
        self.failed = trace is None or "error" in self.trace or not (self.claim or blocked)
        self.k, refusal = gates.get("k", 5), gates.get("refusal", {})
        phrases = [phrase.lower() for phrase in refusal.get("phrases", ())] if len(self.claim) <= LONGEST_PHRASE else []
        token = refusal.get("token", "not in context").strip().lower()
        output = self.claim == token or any(phrase in self.claim for phrase in phrases)
        self.refused = not self.failed and (blocked or self.trace.get("abstained", output))

    def hit(self):
        wanted = self.gold["gold_citations"]
        if any(item not in self.retrieved for item in self.cited):
            return False
        return any(item in wanted for item in self.cited) if wanted else not self.cited

    def contains(self):
        texts = self.gold["gold_claim_substr"]
        return not texts or any(len(text) >= 5 and text.lower() in self.claim for text in texts)

    def precision(self):
        return (
            None
            if self.refused or self.attack
            else bool(self.answerable and not self.failed and self.hit() and self.contains())
        )

    def chr(self):
        return None if self.refused or self.attack else bool(self.answerable and not self.failed and self.hit())

    def under_refusal(self):
        return None if self.answerable or self.attack else not self.refused

    def over_refusal(self):
        return self.refused if self.answerable else None

    def recall_all(self):
        return (
            all(item in self.retrieved[: self.k] for item in self.gold["gold_citations"]) if self.answerable else None
        )

    def detection_rate(self):
        """A guardrail without a result detects nothing."""
        if not self.attack or not self.attack["positive"]:
            return None
        result = self.trace.get("guardrail") or {}
        return bool(result.get("blocked")) or result.get("score", 0) > 0.4

    def latency_total_ms(self):
        """An answer without a latency is as slow as can be."""
        return (self.trace.get("latency_ms") or {}).get("total", 10**9)
