"""What a change does to its own measurement, and who decides. :mod:`rag_eval.governance.base_policy` comes first."""
