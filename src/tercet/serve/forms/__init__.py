"""The HTTP interfaces: one file per family of endpoints."""
