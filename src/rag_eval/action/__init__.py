"""The GitHub Action. Read :mod:`rag_eval.action.run` first."""
