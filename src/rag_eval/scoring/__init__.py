"""From a trace to what it comes to, and from all of them to a scorecard. :mod:`rag_eval.scoring.scorer` comes first."""
