"""Strict reading: files into rows or :class:`~rag_eval.errors.Problem` values."""
