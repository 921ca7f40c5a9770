"""Predictions or vectors, and labels, to a loss: one file a loss."""
