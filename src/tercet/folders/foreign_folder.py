"""Hugging Face and sentence-transformers folders: an encoder and its pooling, no heads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tercet.errors import TercetError
from tercet.files import read_json, read_json_object
from tercet.folders.model_card import ModelInfo
from tercet.folders.model_folder import MODULES_FILE, TRANSFORMER_FILE, Parts
from tercet.network.network import Network
from tercet.nn.config import ADAPTER_FILE, CONFIG_FILE, read_config
from tercet.nn.folder import load_encoder
from tercet.specs import Pooling
from tercet.text.tokenizer import Tokenizer

_MODES: dict[str, Pooling] = {"cls": "cls", "mean": "mean", "max": "max"}
_LEGACY_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}

# Settings of the encoder; early releases named the file after its kind.
_SETTINGS_FILES = (
    TRANSFORMER_FILE,
    *(
        f"sentence_{kind}_config.json"
        for kind in ("roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
    ),
)
_TOKENIZER_FILE = "tokenizer_config.json"
_TOKENIZER_KEYS = (
    *("do_lower_case", "strip_accents", "tokenize_chinese_chars", "add_prefix_space"),
    "truncation_side",
)


def is_foreign_folder(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (MODULES_FILE, CONFIG_FILE, ADAPTER_FILE))


def load_foreign_folder(folder: Path, *, name: str) -> Parts:
    """Read the encoder, the tokenizer and the pooling; `name`: the name of the encoder."""
    inner, pooling = folder, _MODES["mean"]  # the default of sentence-transformers
    if (folder / MODULES_FILE).is_file():
        transformer, pooled = _read_modules(folder)
        inner, pooling = folder / transformer, _read_pooling(folder / pooled / CONFIG_FILE)
    _refuse_prompt(folder / "config_sentence_transformers.json")
    limits = _read_limits(inner)
    read_config(inner)  # a folder of another kind is named before its parts are missed
    if _optional(inner / _TOKENIZER_FILE).get("truncation_side") == "left":
        raise TercetError(
            f"{inner / _TOKENIZER_FILE}: truncation_side is 'left': it drops the beginning of long "
            "texts, and Tercet drops their end; set it to 'right' if that is as well."
        )
    tokenizer = Tokenizer.load(inner)
    encoder = load_encoder(inner, dropout=None, attention_dropout=None)
    tokenizer.check_fits(encoder.config.vocabulary, token_types=encoder.config.token_types)
    most = encoder.config.max_tokens
    info = ModelInfo(
        encoder=name,
        pooling=pooling,
        max_tokens=_max_tokens(inner, limits, most=most),
        lower_case=bool(limits.get("do_lower_case", False)),
    )
    network = Network(encoder, pooling=pooling, tasks={})
    return Parts(network.eval(), tokenizer, info)


def _read_modules(folder: Path) -> tuple[str, str]:
    """The folders of Transformer and Pooling; only a Normalize may follow."""
    path = folder / MODULES_FILE
    modules = read_json(path)
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise TercetError(f"{path}: should hold a list of modules.")
    types = [str(module.get("type")) for module in modules]
    # Modules move between releases; class names stay.
    kinds = [name.rpartition(".")[2] for name in types]
    for kind, name in zip(kinds, types, strict=True):
        ours = name.startswith("sentence_transformers.")
        if not ours or kind not in ("Transformer", "Pooling", "Normalize"):
            raise TercetError(
                f"{path}: has a module `{name}`, which Tercet does not support; it reads "
                "Transformer, Pooling and Normalize of sentence_transformers."
            )
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise TercetError(
            f"{path}: its modules are {', '.join(kinds)}; they should be Transformer, Pooling "
            "and optionally Normalize, in this order."
        )
    transformer, pooling = (_inside(module.get("path"), path) for module in modules[:2])
    return transformer, pooling


def _inside(place: Any, path: Path) -> str:
    if not isinstance(place, str) or place.startswith("/") or ".." in Path(place).parts:
        raise TercetError(f"{path}: module path {place!r} should be a folder inside this one.")
    return place


def _read_pooling(path: Path) -> Pooling:
    settings = read_json_object(path)
    modes = settings.get("pooling_mode")
    if modes is None:
        modes = [mode for key, mode in _LEGACY_MODES.items() if settings.get(key)] or ["mean"]
    modes = [modes] if isinstance(modes, str) else modes
    if not isinstance(modes, list) or len(modes) != 1 or modes[0] not in list(_MODES):
        named = ", ".join(map(str, modes)) if isinstance(modes, list) else repr(modes)
        raise TercetError(
            f"{path}: has pooling {named}; Tercet supports one of {', '.join(_MODES)}."
        )
    return _MODES[modes[0]]


def _refuse_prompt(path: Path) -> None:
    settings = _optional(path)
    name = settings.get("default_prompt_name")
    if name is not None and (settings.get("prompts") or {}).get(name):
        raise TercetError(
            f"{path}: puts the prompt `{name}` before every text, which Tercet does not support."
        )


def _read_limits(folder: Path) -> dict[str, Any]:
    """The settings of the encoder, with the longest text as `max_seq_length` wherever it is named.

    Raise if they change the tokenizer in other ways.
    """
    found = ((path, _optional(path)) for path in (folder / name for name in _SETTINGS_FILES))
    path, settings = next(((path, values) for path, values in found if values), (folder, {}))
    tokenizer = settings.get("processor_kwargs") or settings.get("tokenizer_args") or {}
    calls = settings.get("processing_kwargs") or {}
    limits = [
        *(_at(calls, kind, "max_length") for kind in ("text", "common")),
        _at(tokenizer, "model_max_length"),
        settings.get("max_seq_length"),
    ]
    if changed := [key for key in _TOKENIZER_KEYS if _at(tokenizer, key) is not None]:
        raise TercetError(
            f"{path}: gives the tokenizer `{changed[0]}`, which Tercet reads only from "
            f"{_TOKENIZER_FILE}; move it there."
        )
    return settings | {"max_seq_length": next((n for n in limits if n is not None), None)}


def _at(values: Any, *keys: str) -> Any:
    """What is under a path of keys, None if there is nothing."""
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def _max_tokens(folder: Path, limits: dict[str, Any], *, most: int) -> int:
    """The limit in the folder's settings, at most what the encoder allows."""
    limit = limits.get("max_seq_length")
    if limit is None:
        limit = _optional(folder / _TOKENIZER_FILE).get("model_max_length")
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 1:
        return most
    return int(min(limit, most))


def _optional(path: Path) -> dict[str, Any]:
    """A JSON object, empty if the file is missing."""
    return read_json_object(path) if path.is_file() else {}
