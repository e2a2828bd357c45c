"""GitHub: its API, its runner, and the comment of a pull request. Read :mod:`rag_eval.github.api` first."""
