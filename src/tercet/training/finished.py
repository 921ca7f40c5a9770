"""Recipes that start from a finished model, or add their tasks to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tercet.data.sketch import Sketch
from tercet.errors import TercetError
from tercet.folders.model_card import ModelInfo
from tercet.folders.model_folder import (
    INFO_FILE,
    is_model_folder,
    load_model_folder,
    read_info,
    stored_types,
)
from tercet.folders.onnx_folder import is_onnx_folder
from tercet.folders.seen_file import read_seen
from tercet.model import find_local_folder
from tercet.network.network import Network
from tercet.recipe import Recipe
from tercet.specs import tasks_by_depth
from tercet.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Finished:
    """The model that a recipe adds its tasks to.

    types: of the tensors in its folder, which stay stored as they are
    left_out: its lesser depths that the recipe does not keep
    """

    info: ModelInfo
    types: Mapping[str, torch.dtype]
    left_out: Sequence[int] = ()


def complete(recipe: Recipe) -> Recipe:
    """The recipe with the defaults that come from the finished model that it names, if any."""
    folder = finished_folder(recipe.encoder.name)
    if folder is None:
        if recipe.onto is not None:
            raise TercetError(
                f"`onto` is {recipe.onto!r}, which is not a finished model: use a run, a model "
                "folder or tercet/small."
            )
        return recipe
    info = read_info(folder / INFO_FILE)
    own = {"pooling": info.pooling, "max_tokens": info.max_tokens, "long": info.long}
    given, defaults = recipe.encoder.model_fields_set, dict[str, Any]()
    if recipe.onto is not None:
        _check_added(recipe, info, own)
        if (depths := recipe.encoder.depths) is not None:
            (hidden,) = {tuple(known.hidden or ()) for known in (info.depths or {}).values()}
            defaults["depths"] = depths.model_copy(update={"hidden": list(hidden) or None})
    defaults |= {key: value for key, value in own.items() if key not in given}
    # The stored recipe has every key, so that its next reading finds them given and equal.
    return recipe.model_copy(update={"encoder": recipe.encoder.model_copy(update=defaults)})


def finished_folder(name: str) -> Path | None:
    """The model folder that `encoder.name` names; None for other weights."""
    found = find_local_folder(name) if name else None
    if found is None or not is_model_folder(found[0]):
        return None
    if is_onnx_folder(found[0]):
        raise TercetError(
            f"{found[0]}: holds ONNX graphs, which cannot be trained; use the model folder that "
            "they were exported from."
        )
    return found[0]


def known_rows(recipe: Recipe) -> Sketch | None:
    """The sketch of the rows that the finished model of a recipe was trained on, if it has one."""
    folder = finished_folder(recipe.encoder.name)
    return None if folder is None else read_seen(folder)


def _check_added(recipe: Recipe, info: ModelInfo, own: Mapping[str, Any]) -> None:
    """Raise where the tasks of a recipe cannot be added to the model that it names."""
    for name in recipe.tasks:
        if name in info.tasks:
            raise TercetError(
                f"`onto` {recipe.onto}: that model has a task `{name}` already; give the new task "
                "another name."
            )
    spec = recipe.encoder
    for key, value in own.items():
        if key in spec.model_fields_set and getattr(spec, key) != value:
            raise TercetError(
                f"`encoder.{key}` is {getattr(spec, key)!r}, but the model of `onto` has "
                f"{value!r}, which stays: leave `encoder.{key}` out."
            )
    for key in ("widths", "layers"):
        if getattr(spec, key) is not None:
            raise TercetError(f"`encoder.{key}` cannot change with `onto`: leave it out.")
    depths = info.depths or {}
    if spec.depths is not None and spec.depths.layers != [*depths]:
        has = f"answers after {', '.join(map(str, depths))}" if depths else "has one depth"
        raise TercetError(
            f"`encoder.depths` is {spec.depths.layers}, but the model of `onto` {has}: name the "
            "same depths, or leave them out to keep its full depth alone."
        )
    own_hidden = [known.hidden for known in depths.values()]
    if spec.depths is not None and spec.depths.hidden not in (None, *own_hidden):
        raise TercetError(
            f"`encoder.depths.hidden` is {spec.depths.hidden}, but heads of `onto` have "
            f"{own_hidden[0]} there: leave it out."
        )
    if info.lower_case:
        raise TercetError(
            f"`onto` {recipe.onto}: that model lower-cases its texts, which training does not; "
            "use it as `encoder.name` of a new model."
        )


def build_onto(recipe: Recipe) -> tuple[Network, Tokenizer, Finished]:
    """The network of a finished model, its weights as they are, with the recipe's tasks added."""
    folder = finished_folder(recipe.encoder.name)
    assert folder is not None  # since `complete` has found it
    before, tokenizer, info = load_model_folder(folder)
    spec, full = recipe.encoder.depths, before.encoder.config.layers
    left_out: list[int] = []
    if spec is None:
        left_out = before.lesser_depths
        before, info = before.at(full), info.at(full)
    added = tasks_by_depth(spec, recipe.tasks, full=full)
    torch.manual_seed(recipe.seed)
    network = Network(
        before.encoder,
        pooling=info.pooling,
        tasks={**info.tasks, **recipe.tasks},
        depths={depth: {**own, **added[depth]} for depth, own in info.tasks_by_depth().items()},
    )
    for task in recipe.tasks:
        if taken := sorted(network.shared_by(task) & set(before.shared)):
            raise TercetError(
                f"task `{task}` would train the shared layers `{taken[0]}`, which the model of "
                "`onto` uses; give them another name."
            )
    network.load_head_state({**network.head_state(), **before.head_state()})
    finished = Finished(info, stored_types(folder), left_out)
    return network, tokenizer, finished
