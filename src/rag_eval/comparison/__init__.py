"""One state beside another: runs, baselines, gates files, gold. :mod:`rag_eval.comparison.runs` comes first."""
