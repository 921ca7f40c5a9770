"""Tokens to hidden states, vectors and predictions."""
