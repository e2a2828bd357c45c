"""The reference scorer once more, as plainly as its published definitions allow: one file, only the standard library.

It validates nothing and shares no code with the package: the oracle of ``--format scores``, the yardstick of bench/.

    python tests/plain_scorer.py --gold GOLD --trace TRACE [--k 5] [--gates precision=0.80,chr=…,under=…,over=…]
"""

import argparse
import json

TOKEN = "not in context"


def rows(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def last_by_qid(path):
    result = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip():
                row = json.loads(line)
                name = row.get("qid") or row.get("q_id")
                if name:
                    result[name] = row
    return result


def contains(claim, texts):
    if texts == []:
        return True
    low = claim.lower()
    return any(len(text) >= 5 and text.lower() in low for text in texts or [])


def hits(cited, wanted, retrieved):
    if any(item not in retrieved for item in cited):
        return False
    return any(item in wanted for item in cited) if wanted else cited == []


def score(golds, traces, k, gates):
    n = dict.fromkeys("shipped refused a u right hit under over recalled".split(), 0)
    for item in {gold["qid"]: gold for gold in golds}.values():
        row = traces.get(item["qid"], {})
        answer = row.get("answer_json") or {}
        claim = (answer.get("claim") or "").strip()
        cited, retrieved = answer.get("citations") or [], row.get("retrieved_ids") or []
        shipped, answerable = claim.lower() != TOKEN, item["answerable"]
        n["shipped" if shipped else "refused"] += 1
        n["a" if answerable else "u"] += 1
        if shipped and not answerable:
            n["under"] += 1
        elif shipped:
            hit = hits(cited, item["gold_citations"], retrieved)
            n["hit"] += hit
            n["right"] += hit and contains(claim, item["gold_claim_substr"])
        elif answerable:
            n["over"] += 1
        if answerable and all(entry in retrieved[:k] for entry in item["gold_citations"]):
            n["recalled"] += 1
    return summary(n, k, gates)


def summary(n, k, gates):
    precision = n["right"] / n["shipped"] if n["shipped"] else 1.0
    chr_ = n["hit"] / n["shipped"] if n["shipped"] else 1.0
    under = n["under"] / n["u"] if n["u"] else 0.0
    over = n["over"] / n["a"] if n["a"] else 0.0
    recall = n["recalled"] / n["a"] if n["a"] else 0.0
    floors = precision >= float(gates["precision"]) and chr_ >= float(gates["chr"])
    return {
        "answered": n["shipped"],
        "refused": n["refused"],
        "answerable": n["a"],
        "unanswerable": n["u"],
        "precision": round(precision, 4),
        "chr": round(chr_, 4),
        "under_refusal": round(under, 4),
        "over_refusal": round(over, 4),
        "recall@k": round(recall, 4),
        "k": k,
        "gates": gates,
        "pass": floors and under <= float(gates["under"]) and over <= float(gates["over"]),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gold", required=True)
    parser.add_argument("--trace", required=True)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--gates", default="precision=0.80,chr=0.75,under=0.05,over=0.10")
    args = parser.parse_args()
    limits = dict(part.split("=") for part in args.gates.split(","))
    print(json.dumps(score(rows(args.gold), last_by_qid(args.trace), args.k, limits), indent=2))


if __name__ == "__main__":
    main()
