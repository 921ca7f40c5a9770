"""Bulk embedding: files to vectors, on this machine or on a Ray cluster."""
