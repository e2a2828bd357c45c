"""Cases: a gold item with its trace, what is known of it, and its label."""
