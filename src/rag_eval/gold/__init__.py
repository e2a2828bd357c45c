"""Gold sets: lint, statistics and sign-off."""
