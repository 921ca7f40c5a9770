"""Losses to gradients to steps."""
