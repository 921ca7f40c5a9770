"""Recipes: one TOML file that decides a run, from a file or from the package."""

from tercet.recipe.bundle import BundledRecipe, bundled, find_bundled
from tercet.recipe.checks import check_like
from tercet.recipe.recipe import Recipe, TaskName

__all__ = ["BundledRecipe", "Recipe", "TaskName", "bundled", "check_like", "find_bundled"]
