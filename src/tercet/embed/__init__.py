"""Bulk embedding of files, on this machine or on a Ray cluster."""
