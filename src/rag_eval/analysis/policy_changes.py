"""Changes of eval-gates.yml in a pull request: each looser, stricter or neutral, with its effect on this run.

Changes that cannot be classified count as looser.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from operator import gt, lt
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict

from rag_eval.contract import DEFAULT_GOLD, DEFAULT_TRACE, Limits, Settings
from rag_eval.gates import COMPLETENESS, LEVELS, MARGINS, REFERENCE_GATES, GateResult, Slices, Statistics

Key = tuple[str, ...]
Rule = Callable[[Any, Any], "Kind"]
Kind = Literal["looser", "stricter", "neutral"]


class PolicyChange(NamedTuple):
    """One key with its old and its new value, as JSON; None if it is absent.

    ``lets_through`` names the gates and findings that stop this run under the old value and not under the new one.
    """

    key: str
    kind: Kind
    old: str | None
    new: str | None
    lets_through: tuple[str, ...] = ()


class PolicyEffects(Struct, frozen=True):
    """The results of this run under either policy, to show what a change would let through.

    ``base`` are the base branch's gates over the values as the base branch defines them, ``redefined`` the same gates
    over the values as the pull request defines them (other k, token, phrases, gold or traces), ``head`` the pull
    request's gates. ``meaning`` are the codes that stop this run only if the base branch defines the values,
    ``guarded`` those that gates of the pull request turn into warnings.
    """

    base: Sequence[GateResult] = ()
    redefined: Sequence[GateResult] = ()
    head: Sequence[GateResult] = ()
    findings: Mapping[str, Sequence[str]] = {}  # by the first word of the key: codes only under the base's rule
    meaning: Sequence[str] = ()
    guarded: Sequence[str] = ()


def changes(
    base: Mapping[str, Any], head: Mapping[str, Any], effects: PolicyEffects | None = None
) -> list[PolicyChange]:
    """Return the differences between two gates files by key and value, loosest first, then by key."""
    effects, results = effects or PolicyEffects(), []
    files = _complete(base), _complete(head)
    for key, old, new in _differing((), *files):
        kind = _kind(key, old, new, *files)
        # Only changes that may loosen have effects: a gate may have changed its outcome because of another key.
        stopped = _lets_through(key, effects) if kind == "looser" else _weakened(key, new, effects)
        through = tuple(sorted(set(stopped)))
        kind = "looser" if through else kind
        results.append(PolicyChange(".".join(key), kind, _text(_stated(old)), _text(_stated(new)), through))
    results = _explaining(results, effects)
    order = ("looser", "stricter", "neutral")
    return sorted(results, key=lambda change: (not change.lets_through, order.index(change.kind), change.key))


def _explaining(results: list[PolicyChange], effects: PolicyEffects) -> list[PolicyChange]:
    """Return the changes; those of tests and guards are looser if no other explains why this run is let through.

    A change that is stricter for most runs may let this one pass: a baseline for gates without data, one more test
    among many, or a gate that turns an integrity error into a warning.
    """
    known = {name for change in results for name in change.lets_through}
    gates = set(loosened_gates(effects.base, effects.head)) - known
    explained = []
    for change in results:
        section = change.key.partition(".")[0]
        is_test = section in _JUDGING and (section not in ("gates", "slices") or _is_test(change.key, change.new))
        through = {*(gates if is_test else ()), *(effects.guarded if section == "gates" and not change.old else ())}
        if through and change.kind != "looser":
            change = change._replace(kind="looser", lets_through=tuple(sorted({*change.lets_through, *through})))
        explained.append(change)
    return explained


def _is_test(key: str, new: str | None) -> bool:
    """Return whether a change concerns regression tests, which are corrected together."""
    return any(margin in f"{key}: {new}" for margin in (*MARGINS, "slices.min_n"))


def _kind(key: Key, old: Any, new: Any, base: Mapping[str, Any], head: Mapping[str, Any]) -> Kind:
    """Return the kind of a change in its two files: some keys mean the opposite under the value of another key."""
    files = base, head
    if key[-1] == "test" and key[0] in ("gates", "slices"):
        old, new = (stated or file["statistics"]["test"] for stated, file in zip((old, new), files, strict=True))
        return classify(key, old, new) if old != new else "neutral"
    if key == ("statistics", "alpha") and any(map(_asks_non_inferiority, files)):
        return "looser"  # a higher alpha finds more regressions, but the interval of a drop gets narrower
    if key == ("slices", "min_n") and "fail" in [file["statistics"]["inconclusive"] for file in files]:
        return "looser"  # a slice of fewer questions fails
    return classify(key, old, new)


def _asks_non_inferiority(file: Mapping[str, Any]) -> bool:
    sections = [file["gates"], *file.get("slices", {}).get("gates", {}).values()]
    tests = [gate.get("test") for gates in sections for gate in gates.values()]
    return "non_inferiority" in (file["statistics"]["test"], *tests)


def _weakened(key: Key, new: Any, effects: PolicyEffects) -> Iterator[str]:
    """Yield the gates that fail the run among fewer tests, and at the same margin are not significant among more.

    Tests are corrected together, so a change that adds tests weakens those of other gates.
    """
    if key[0] not in ("gates", "slices") or not _is_test(".".join(key), _text(new)):
        return
    now = {(entry.label, entry.direction, entry.threshold): entry for entry in effects.head}
    for item in effects.base:
        other = now.get((item.label, item.direction, item.threshold))
        if item.direction in MARGINS and item.blocks and other and other.outcome == "inconclusive" and not other.blocks:
            yield item.label


def _stated(value: Any) -> Any:
    """Return a gate, or gates by name, as written: without keys that have their default value."""
    if not isinstance(value, dict):
        return value
    return {name: _stated(entry) for name, entry in value.items() if _USUAL.get(name) != entry}


def classify(key: Key, old: Any, new: Any) -> Kind:
    """Return whether a key's new value is looser (or unknown), stricter or neutral."""
    if key[:2] == ("slices", "gates") and len(key) > _SLICED:
        key = ("gates", *key[_SLICED:])  # a gate on a slice is treated as a gate
    rule = next((rule for pattern, rule in RULES.items() if _matches(pattern.split("/"), key)), _always("looser"))
    return rule(old, new)


def _lets_through(key: Key, effects: PolicyEffects) -> Iterator[str]:
    if key[0] in effects.findings:
        yield from (code for code in effects.findings[key[0]] if key[0] != "integrity" or code == key[1])
    elif key[0] in _MEANING:
        yield from loosened_gates(effects.base, effects.redefined)
        yield from loosened_gates(effects.base, effects.head) if key[0] == "judge" else ()
        yield from effects.meaning
    elif key[0] in _JUDGING:
        wanted = {"gates": key[1:2], "completeness": (".".join(key),)}.get(key[0])
        loosened = loosened_gates(effects.base, effects.head)
        yield from (label for label in loosened if wanted is None or label in wanted)


def loosened_gates(before: Sequence[GateResult], after: Sequence[GateResult]) -> Iterator[str]:
    """Yield the gates that fail the run before the change and not after it."""
    still = {(item.label, item.direction) for item in after if item.blocks}
    yield from (item.label for item in before if item.blocks and (item.label, item.direction) not in still)


_SLICED = 3  # number of key parts before a slice gate's own: slices, gates, the slice
_USUAL = {"severity": "error", "when_no_data": "fail"}


def _complete(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return a gates file with defaults for absent keys."""

    def with_defaults(gates: Mapping[str, Any]) -> dict[str, Any]:
        return {name: {**_USUAL, **entry} for name, entry in gates.items()}

    gates = stated.get("gates") or {gate.name: {gate.direction: Decimal(gate.threshold)} for gate in REFERENCE_GATES}
    levels = {name: level or "off" for name, level in stated.get("integrity", {}).items()}
    full = {
        "gold": DEFAULT_GOLD,
        "trace": DEFAULT_TRACE,
        "k": Settings().k,
        "version": 1,
        **stated,
        "limits": {**asdict(Limits()), **stated.get("limits", {})},
        "gates": with_defaults(gates),
        "refusal": {"token": Settings().token, "phrases": [], "builtin": False, **stated.get("refusal", {})},
        "completeness": {**dict.fromkeys(COMPLETENESS, 0), **stated.get("completeness", {})},
        "integrity": {**LEVELS, **levels},
        "statistics": {**asdict(Statistics()), "alpha": Decimal(Statistics().alpha), **stated.get("statistics", {})},
    }
    if "slices" in stated:
        sliced = {part: with_defaults(gates) for part, gates in stated["slices"].get("gates", {}).items()}
        full["slices"] = {"by": [], "min_n": Slices().min_n, **stated["slices"], "gates": sliced}
    return full


def _differing(key: Key, old: Any, new: Any) -> Iterator[tuple[Key, Any, Any]]:
    """Yield the keys whose values differ; a mapping on only one side is one change."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            yield from _differing((*key, str(name)), old.get(name), new.get(name))
    elif old != new or isinstance(old, bool) != isinstance(new, bool):
        yield key, old, new


def _matches(pattern: Sequence[str], key: Key) -> bool:
    if pattern[-1] == "**":
        return len(key) >= len(pattern) and _matches(pattern[:-1], key[: len(pattern) - 1])
    return len(pattern) == len(key) and all(want in ("*", part) for want, part in zip(pattern, key, strict=True))


def _text(value: Any) -> str | None:
    """Return JSON with sorted keys and decimals as written: floats could make two close numbers equal."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(name)}: {_text(value[name]) or 'null'}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_text(item) or "null" for item in value) + "]"
    if value is None:
        return None
    return f"{value:f}" if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


def _always(kind: Kind) -> Rule:
    return lambda _old, _new: kind


def _by_size(stricter: Callable[[Any, Any], bool], absent: Kind = "stricter") -> Rule:
    """Return a rule for a number: it is looser to remove it, ``absent`` to add it."""

    def rule(old: Any, new: Any) -> Kind:
        if old is None or new is None:
            return absent if old is None else "looser"
        return "stricter" if stricter(new, old) else "looser"

    return rule


def _ordered(*levels: Any, same: Kind = "neutral") -> Rule:
    """Return a rule for values listed from the loosest to the strictest; an absent value is the loosest."""

    def rule(old: Any, new: Any) -> Kind:
        before, after = (levels.index(value) if value in levels else 0 for value in (old, new))
        return same if before == after else "stricter" if after > before else "looser"

    return rule


def _among(old: Any, new: Any) -> Kind:
    """Classify a list of what is checked: removing an entry is looser."""
    before, after = set(old or ()), set(new or ())
    return "looser" if before - after else "stricter" if after - before else "neutral"


_JUDGING = ("gates", "completeness", "slices", "baseline", "statistics")
"""Keys that change what is asked of the values."""

_MEANING = ("k", "refusal", "gold", "trace", "groundedness", "safety", "retrieval", "prices", "judge", "verdicts")
"""Keys that change what a value means rather than what is asked of it."""

_UNCLEAR = """
gold trace k refusal/** gates/*/confidence baseline/* statistics/cluster groundedness groundedness/** safety safety/*
retrieval retrieval/* verdicts judge judge/** prices prices/** score score/** limits
"""
_RISING = "gates/* gates/*/min slices slices/gates slices/gates/* baseline statistics/alpha signoff signoff/signers"
_FALLING = "gates/*/max gates/*/max_drop gates/*/max_rise completeness/* slices/min_n"

RULES: Mapping[str, Rule] = {
    "version": _always("neutral"),
    **dict.fromkeys(_UNCLEAR.split(), _always("looser")),
    **dict.fromkeys(_RISING.split(), _by_size(gt)),
    **dict.fromkeys(_FALLING.split(), _by_size(lt)),
    "slices/by": _among,
    "must_pass": _among,
    "gates/*/severity": _ordered("warning", "error"),
    "gates/*/when_no_data": _ordered("skip", "fail"),
    # Without a kind ``statistics.test`` decides, which is unknown here.
    "gates/*/test": _ordered("regression", "none", "non_inferiority", same="looser"),
    "statistics/correction": _ordered("holm", "none"),
    "statistics/inconclusive": _ordered("pass", "warn", "fail"),
    "statistics/test": _ordered("regression", "none", "non_inferiority"),
    "integrity/*": _ordered("off", "warning", "error"),
    "signoff/require": _ordered("record", "review", "signature"),
    "signoff/four_eyes": _ordered(False, True),
    "signoff/signers/**": lambda _old, new: "stricter" if new is None else "looser",
    "signoff/*": _always("looser"),
    "limits/*": _by_size(gt, absent="looser"),  # an absent limit has its default value; a lower one reads less
}
"""The direction of each key: ``*`` is any one name, ``**`` any names below."""
