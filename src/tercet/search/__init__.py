"""Closest pairs of a corpus, and an index of it on disk."""
