"""One server for everything that a model answers."""
