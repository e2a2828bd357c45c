"""Sign-off of gold: which items changed, and who approved that. Start with :mod:`rag_eval.gold.signoff.checking`."""
