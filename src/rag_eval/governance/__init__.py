"""Effects of a change on its own evaluation, and who decides. Read :mod:`rag_eval.run.authority` first."""
