"""Scoring: from traces to a scorecard. Read :mod:`rag_eval.scoring.scorer` first."""
