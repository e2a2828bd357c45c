"""What can be done to the traces of a run: each edit takes the rows, its argument and raw bytes behind the rows."""

from __future__ import annotations

import json

from gaming import honest
from gaming.honest import REFUSAL, named


def edited(rows, edits):
    """The bytes of the trace file after some edits, each a word and its argument."""
    tail = b""
    for word, argument in edits:
        rows, tail = _EDITS[word](rows, argument, tail)
    return honest.lines(rows) + tail


def _chosen(row, qids):
    answerable = honest.QUESTIONS.get(row["qid"], {"answerable": True})["answerable"]
    by_word = {"all": True, "answerable": answerable, "unanswerable": not answerable}
    return by_word[qids] if isinstance(qids, str) and qids in by_word else row["qid"] in named(qids)


def _drop(rows, qids, tail):
    return [row for row in rows if not _chosen(row, qids)], tail


def _repeat(rows, qids, tail):
    return rows + [row for row in rows if _chosen(row, qids)], tail


def _say(rows, changes, tail):
    return [_said(row, changes) if _chosen(row, changes["to"]) else row for row in rows], tail


def _said(row, changes):
    """A trace with other words: ``claim``, ``cites`` or ``retrieves`` as they are given or by a word."""
    answered, retrieved = dict(row["answer_json"]), row["retrieved_ids"]
    if changes.get("retrieves") == "corpus":
        retrieved = retrieved + [chunk for chunk in honest.CORPUS if chunk not in retrieved]
    elif changes.get("retrieves") == "corpus and one more":
        retrieved = [f"{row['qid']}#0", *honest.CORPUS]
    elif changes.get("retrieves") == "late":
        retrieved = [chunk for chunk in honest.CORPUS if chunk not in retrieved][:10] + retrieved
    elif "retrieves" in changes:
        retrieved = changes["retrieves"]
    if "claim" in changes:
        answered["claim"] = {"refusal": REFUSAL}.get(changes["claim"], changes["claim"])
    if "cites" in changes:
        by_word = {"retrieved": retrieved, "all but one": retrieved[:-1]}
        answered["citations"] = by_word[changes["cites"]] if isinstance(changes["cites"], str) else changes["cites"]
    more = {
        name: value
        for name, value in changes.items()
        if name in ("run", "error", "abstained", "qid", "answer", "usage")
    }
    return {**row, "retrieved_ids": retrieved, "answer_json": answered, **more}


def _again(rows, changes, tail):
    """The chosen traces once more, said otherwise, behind the first ones."""
    return rows + [_said(row, changes) for row in rows if _chosen(row, changes["to"])], tail


def _runs(rows, names, tail):
    """Every trace once for each run."""
    return [{**row, "run": name} for name in names for row in rows], tail


def _asked(rows, texts, tail):
    """Each trace has the question that was put to the system as ``q``, and other texts by field."""
    return [{**row, "q": honest.QUESTIONS[row["qid"]]["question"], **texts} for row in rows], tail


def _raw(rows, text, tail):
    return rows, tail + text.encode()


def _swap(rows, texts, tail):
    """Other texts in the bytes of the traces, by the old ones."""
    data = honest.lines(rows)
    for old, new in texts.items():
        assert old.encode() in data, old
        data = data.replace(old.encode(), new.encode())
    return [], data + tail


def _long(rows, mib, tail):
    return rows, tail + json.dumps({"qid": "Q01", "answer": "x" * (mib << 20)}).encode() + b"\n"


def _failed(rows, qids, tail):
    """The chosen questions end in an error, with what was retrieved until then."""
    cut = {qid: {"qid": qid, "retrieved_ids": result, "error": "timed out"} for qid, result in _retrieved(rows)}
    return [cut[row["qid"]] if _chosen(row, qids) else row for row in rows], tail


def _retrieved(rows):
    return [(row["qid"], row["retrieved_ids"]) for row in rows]


def _none(rows, _, tail):
    return [], tail


def _searched(rows, ids, tail):
    """Each trace has one retrieval more, of these ids or of the whole corpus, in place of its retrieved_ids."""
    more = {"ids": honest.CORPUS if ids == "corpus" else ids}
    hops = [{**row, "retrievals": [{"ids": row["retrieved_ids"]}, more]} for row in rows]
    return [{name: value for name, value in row.items() if name != "retrieved_ids"} for row in hops], tail


def _quoted(rows, text, tail):
    """Each trace has its chunks with their texts, of which the first one is given."""
    results = []
    for row in rows:
        first, *others = row["retrieved_ids"]
        chunks = [{"id": first, "text": text}, *({"id": name, "text": "About parts."} for name in others)]
        results.append({**row, "chunks": chunks})
    return results, tail


def _shared(rows, size, tail):
    """So many neighbours get one answer with the texts that all of them expect, each among other words."""
    known = [item for item in honest.items() if item["answerable"]]
    texts = {}
    for at, item in enumerate(known):
        group = known[at - at % size : at - at % size + size]
        words = " ".join(f"word{at * 50 + number}" for number in range(50))
        texts[item["qid"]] = f"{words} {' '.join(one['gold_claim_substr'][0] for one in group)}"
    return [_said(row, {"claim": texts[row["qid"]]}) if row["qid"] in texts else row for row in rows], tail


_EDITS = {
    "share": _shared,
    "search": _searched,
    "quote": _quoted,
    "drop": _drop,
    "repeat": _repeat,
    "say": _say,
    "again": _again,
    "raw": _raw,
    "swap": _swap,
    "long": _long,
    "none": _none,
    "fail": _failed,
    "runs": _runs,
    "ask": _asked,
}
