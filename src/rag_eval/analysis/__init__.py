"""Comparisons of two states: runs, baselines, gates files, gold. Read :mod:`rag_eval.analysis.runs` first."""
