"""The GitHub Action. :mod:`rag_eval.action.run` comes first."""
