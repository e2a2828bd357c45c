"""Cases: a gold item with its trace, derived facts, and its label."""
