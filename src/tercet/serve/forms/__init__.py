"""The forms that clients speak: one file a family."""
