"""Files to labelled, tokenised tables."""
