"""Helpers that every package may use: escaping of untrusted text, paths, files, progress."""
