"""``python -m rag_eval.action``: the entry point of the image."""

from rag_eval.action.run import main
from rag_eval.boundary import guarded

if __name__ == "__main__":
    raise SystemExit(guarded(main))
