"""Ask a system the questions of a gold set and write its answers as traces. Never part of a verdict."""
