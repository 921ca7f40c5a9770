"""Outputs or vectors, and labels, to a loss: one file per objective, declared in tercet.specs."""
