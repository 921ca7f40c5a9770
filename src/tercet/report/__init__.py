"""Evaluations as HTML, Markdown, JSON and terminal tables; knows no suite by name."""
