"""GitHub: its API, its runner, and the comment of a pull request. :mod:`rag_eval.github.api` comes first."""
