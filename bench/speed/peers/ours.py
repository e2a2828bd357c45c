"""Print the values of a report by name: python ours.py GOLD TRACE [PERSPECTIVES [GATES [BASELINE]]].

Values that the plain scorer prints have its names and are rounded to four digits.
"""

import json
import sys

from rag_eval.api import Options, run

PLAIN = {"precision": "precision", "chr": "chr", "under_refusal": "under_refusal", "over_refusal": "over_refusal"}
PLAIN |= {"recall@k": "recall_all@5"}


def main():
    gold, trace, perspectives, gates, baseline = (sys.argv[1:] + [""] * 3)[:5]
    narrow = tuple(filter(None, perspectives.split(",")))
    report = run(Options(gold, trace, gates, perspectives=narrow, baseline=baseline))
    values = {name: round(report.metrics[own].value, 4) for name, own in PLAIN.items()}
    print(json.dumps(values))


if __name__ == "__main__":
    main()
