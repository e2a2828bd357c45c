"""Text metrics without a model: refusals, grounding and leaks, recognised by words."""
