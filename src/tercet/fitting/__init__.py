"""Labelled files to a recipe, a run and a model, within minutes."""
