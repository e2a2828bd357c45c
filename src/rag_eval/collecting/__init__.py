"""Ask a system the questions of a gold set and write what it answers as traces. Never part of a verdict."""
