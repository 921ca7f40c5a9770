"""Heads: one vector, or a pair of vectors, to the outputs that an objective reads."""
