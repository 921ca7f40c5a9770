"""The recipes that come with the package."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass

from tercet.recipe.recipe import Recipe
from tercet.recipe.sources import bundled_files, bundled_text


@dataclass(frozen=True, slots=True)
class BundledRecipe:
    """A recipe that comes with the package: its name and its text, comments included."""

    name: str
    text: str

    def parse(self) -> Recipe:
        return Recipe.from_tree(tomllib.loads(self.text), where=f"recipe {self.name}")


def bundled() -> list[BundledRecipe]:
    """All recipes of the package, by name."""
    return [BundledRecipe(name, file.read_text("utf-8")) for name, file in bundled_files().items()]


def find_bundled(name: str) -> BundledRecipe:
    """The bundled recipe of that name, or an error with the nearest names."""
    return BundledRecipe(name, bundled_text(name))
