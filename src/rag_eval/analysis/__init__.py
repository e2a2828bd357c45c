"""One state beside another: runs, baselines, gates files, gold. :mod:`rag_eval.analysis.runs` comes first."""
