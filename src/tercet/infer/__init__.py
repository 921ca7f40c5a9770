"""The fast paths from texts to vectors and predictions."""
