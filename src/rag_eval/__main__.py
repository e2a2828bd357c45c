"""``python -m rag_eval``."""

from rag_eval.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
