"""GitHub: its API, and posts to a pull request. Read :mod:`rag_eval.github.api` first."""
