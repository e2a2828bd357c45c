"""Times the checks of `rag-eval gold lint` on a made-up gold set with traces, in milliseconds.

python bench/gold_lint.py [ITEMS]
"""

import random
import sys
import time

from rag_eval.contract import Gold, Settings, Trace
from rag_eval.gates.policy import REFERENCE_GATES, Policy
from rag_eval.gold.lint import CHECKS, GoldSample, watch

# As many words as there are in a real set of this size, the frequent ones as frequent (Zipf's law).
WORDS = [f"{head}{tail}" for head in "ba ke li mo nu pra stei vor".split() for tail in range(1000, 3500)]


def sentence(rng, n):
    return " ".join(WORDS[int(len(WORDS) ** rng.random()) - 1] for _ in range(n))


def sample(n):
    rng = random.Random(n)
    rows = [
        {
            "qid": f"Q{i:06d}",
            "question": f"How {sentence(rng, 9)}?",
            "answerable": i % 5 > 0,
            "gold_claim_substr": [sentence(rng, 3)] if i % 5 else [],
            "gold_citations": [f"doc{i % 997}#{i % 7}"] if i % 5 else [],
        }
        for i in range(n)
    ]
    golds = {row["qid"]: Gold.from_row(row, line) for line, row in enumerate(rows, 1)}
    traces = [
        {"retrieved_ids": row["gold_citations"], "answer": f"{sentence(rng, 40)} {' '.join(row['gold_claim_substr'])}"}
        for row in rows
    ]
    pairs = zip(traces, golds.values(), strict=True)
    seen = watch(golds, (Trace.from_row(row, gold.qid, gold.line) for row, gold in pairs), Settings())
    return GoldSample(golds.values(), Policy(gates=REFERENCE_GATES), seen)


def main():
    made = sample(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
    total = 0.0
    for code, check in CHECKS.items():
        begun = time.perf_counter()
        found = len(list(check(made)))
        spent = (time.perf_counter() - begun) * 1000
        total += spent
        print(f"{code:26} {spent:9.1f} ms  {found} finding(s)")
    print(f"{'all':26} {total:9.1f} ms for {len(made.items):,} items")


if __name__ == "__main__":
    main()
