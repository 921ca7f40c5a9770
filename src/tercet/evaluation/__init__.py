"""Predictions to metrics and reports."""
