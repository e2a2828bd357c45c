"""Sign-off of gold: which items changed, and who answers for that. :mod:`rag_eval.signoff.checking` comes first."""
