"""Text to ragged tokens."""
