"""What an encoder is made of, read from and written to a Hugging Face config.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from tercet.errors import TercetError
from tercet.files import read_json_object

Architecture = Literal["bert", "mpnet"]
Activation = Literal["gelu", "gelu_new", "relu"]

ARCHITECTURES: tuple[Architecture, ...] = ("bert", "mpnet")
ACTIVATIONS: tuple[Activation, ...] = ("gelu", "gelu_new", "relu")
CONFIG_FILE = "config.json"

T = TypeVar("T", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderConfig:
    """The shape of an encoder.

    positions: rows of the position table; MPNet leaves its first two unused
    token_types: rows of the token type table, 0 when the encoder knows no types
    relative_buckets: rows of the relative position table, 0 when there is none
    pooler: whether the encoder has a pooler of its own
    source: config.json as it was read, so that saving keeps the keys we do not use
    """

    architecture: Architecture
    vocabulary: int
    width: int
    layers: int
    heads: int
    feed_forward: int
    positions: int
    token_types: int = 0
    norm_eps: float = 1e-12
    dropout: float = 0.1
    attention_dropout: float = 0.1
    pad_id: int = 0
    relative_buckets: int = 0
    activation: Activation = "gelu"
    pooler: bool = True
    source: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def first_position(self) -> int:
        """Row of the position table that the first token of a sentence takes."""
        # transformers fixes MPNet's padding index at 1, whatever config.json says.
        return 2 if self.architecture == "mpnet" else 0

    @property
    def pair_separators(self) -> int:
        """How many tokens stand between the sentences of a joined pair."""
        return 2 if self.architecture == "mpnet" else 1

    @property
    def max_tokens(self) -> int:
        """Tokens of the longest row that the encoder can take."""
        return self.positions - self.first_position

    def with_dropout(
        self, *, dropout: float | None = None, attention_dropout: float | None = None
    ) -> EncoderConfig:
        """The same shape with other rates; None keeps a rate as it is."""
        return replace(
            self,
            dropout=_rate("dropout", self.dropout if dropout is None else dropout),
            attention_dropout=_rate(
                "attention_dropout",
                self.attention_dropout if attention_dropout is None else attention_dropout,
            ),
        )

    def to_json(self) -> dict[str, Any]:
        """config.json as `transformers` reads it: the source, with our fields over it."""
        fields: dict[str, Any] = {
            "architectures": ["BertModel" if self.architecture == "bert" else "MPNetModel"],
            "model_type": self.architecture,
            "vocab_size": self.vocabulary,
            "hidden_size": self.width,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": self.feed_forward,
            "max_position_embeddings": self.positions,
            "layer_norm_eps": self.norm_eps,
            "hidden_dropout_prob": self.dropout,
            "attention_probs_dropout_prob": self.attention_dropout,
            "hidden_act": self.activation,
            "pad_token_id": self.pad_id,
        }
        if self.architecture == "bert":
            fields["type_vocab_size"] = self.token_types
        else:
            fields["relative_attention_num_buckets"] = self.relative_buckets
        return {**self.source, **fields}


def read_config(folder: Path) -> EncoderConfig:
    """Read `config.json` of a Hugging Face folder."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise TercetError(f"{path} does not exist; an encoder folder needs it.")
    source = read_json_object(path)
    architecture = _choice(source, "model_type", ARCHITECTURES, path)
    _refuse_unsupported(source, path)
    bert = architecture == "bert"
    config = EncoderConfig(
        architecture=architecture,
        vocabulary=_count(source, "vocab_size", path),
        width=_count(source, "hidden_size", path),
        layers=_count(source, "num_hidden_layers", path),
        heads=_count(source, "num_attention_heads", path),
        feed_forward=_count(source, "intermediate_size", path),
        positions=_count(source, "max_position_embeddings", path, default=512),
        token_types=_count(source, "type_vocab_size", path, default=2) if bert else 0,
        norm_eps=_number(source, "layer_norm_eps", path, default=1e-12),
        dropout=_number(source, "hidden_dropout_prob", path, default=0.1, below=1.0),
        attention_dropout=_number(
            source, "attention_probs_dropout_prob", path, default=0.1, below=1.0
        ),
        pad_id=_pad_id(source, path, default=0 if bert else 1),
        relative_buckets=(
            0 if bert else _count(source, "relative_attention_num_buckets", path, default=32)
        ),
        activation=_choice(source, "hidden_act", ACTIVATIONS, path, default="gelu"),
        source=source,
    )
    _check_shape(config, path)
    return config


def _refuse_unsupported(source: Mapping[str, Any], path: Path) -> None:
    for key, right in (
        ("position_embedding_type", "absolute"),
        ("is_decoder", False),
        ("add_cross_attention", False),
    ):
        if source.get(key, right) not in (right, None):
            raise TercetError(f"{path}: {key} is {source[key]!r}; only {right!r} is supported")


def _check_shape(config: EncoderConfig, path: Path) -> None:
    if config.width % config.heads:
        raise TercetError(
            f"{path}: hidden_size {config.width} is not a multiple of num_attention_heads"
            f" {config.heads}"
        )
    if config.max_tokens < 1:
        raise TercetError(
            f"{path}: max_position_embeddings is {config.positions};"
            f" it should be above {config.first_position}"
        )
    if config.architecture == "mpnet" and config.relative_buckets < 4:
        raise TercetError(
            f"{path}: relative_attention_num_buckets is {config.relative_buckets};"
            " it should be 4 or more"
        )


def _choice(
    source: Mapping[str, Any],
    key: str,
    choices: tuple[T, ...],
    path: Path,
    *,
    default: T | None = None,
) -> T:
    value = source.get(key, default)
    for choice in choices:
        if value == choice:
            return choice
    raise TercetError(f"{path}: {key} is {value!r}; it should be one of {', '.join(choices)}")


def _count(source: Mapping[str, Any], key: str, path: Path, *, default: int | None = None) -> int:
    value = source.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        found = "missing" if value is None else f"{value!r}"
        raise TercetError(f"{path}: {key} is {found}; it should be a whole number above 0")
    return value


def _pad_id(source: Mapping[str, Any], path: Path, *, default: int) -> int:
    value = source.get("pad_token_id")
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TercetError(f"{path}: pad_token_id is {value!r}; it should be a token id")
    return value


def _number(
    source: Mapping[str, Any],
    key: str,
    path: Path,
    *,
    default: float,
    below: float = float("inf"),
) -> float:
    value = source.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < below:
        limit = "" if below == float("inf") else f" and below {below:g}"
        raise TercetError(f"{path}: {key} is {value!r}; it should be a number from 0{limit}")
    return float(value)


def _rate(name: str, value: float) -> float:
    if not 0 <= value < 1:
        raise TercetError(f"{name} is {value!r}; it should be a number from 0 and below 1")
    return value
