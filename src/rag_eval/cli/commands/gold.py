"""Sign off, check and show changes of the gold set in git; lint, count, draft and freeze its files."""

from __future__ import annotations

EXAMPLES = """\
  rag-eval gold diff
  rag-eval gold signoff --reason 'Q04: the new manual gives ten days'
  rag-eval gold check
  rag-eval gold check --base origin/main
  rag-eval gold signoff --key ~/.ssh/id_ed25519 --reason 'Q04: the new manual gives ten days'
  rag-eval gold signoff --baseline --reason 'reviewed by two of us'
  rag-eval gold lint --trace runs/trace.jsonl
  rag-eval gold relink --old eval/baseline.trace.jsonl --new runs/trace.jsonl
  rag-eval gold draft --from runs/trace.jsonl --sample 20
  rag-eval gold review
  rag-eval gold freeze v1.0
"""
COMMANDS = {
    "signoff": "record and stage a sign-off of the staged changes",
    "check": "check that every change is signed off",
    "diff": "show what was added, changed and removed",
    "lint": "find weak gold items",
    "stats": "count the items, labels and fields",
    "relink": "propose new chunk ids after re-chunking",
    "draft": "draft items from traces, for review",
    "review": "accept, edit or reject drafts, and sign",
    "freeze": "write or check the manifest of a release of the gold set",
}
