"""Gates: policies, and the outcome of every gate for a scorecard. Read :mod:`rag_eval.gates.policy` first."""
