"""From a scorecard to the outcome of every gate. :mod:`rag_eval.gates.policy` comes first."""
