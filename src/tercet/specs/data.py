"""The encoder that reads texts, and the files that contain them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, field_validator, model_validator

from tercet.specs.base import ONE_OR_MORE, Column, Count, Delimiter, Long, Pooling, Share, Spec
from tercet.specs.depths import Depths

ChangeRule = Literal["words", "roles", "names", "numbers", "negation", "conjuncts"]


class EncoderSpec(Spec):
    name: str
    """A folder, a name of `tercet weights`, or a model hub id; or a finished model: a run, a model
    folder or `tercet/small`. Example: `"all-minilm-l6-v2"`."""
    pooling: Pooling = "mean"
    """How hidden states become one vector per sentence; a finished model's own is its default.
    Example: `"cls"`."""
    max_tokens: Annotated[int, Field(ge=4)] = 128
    """The most tokens that are read at once; a finished model's own is its default. Example:
    `256`."""
    layers: Count | None = None
    """Use only this many of its layers, from the first on; default: all. Example: `6`."""
    long: Long = "truncate"
    """Longer sentences and joined pairs are truncated, or read in windows that overlap and are
    averaged; training itself reads the first `max_tokens` of them. A finished model's own is its
    default. Example: `"windows"`."""
    dropout: Share = 0.1
    """Dropout of hidden states in training. Example: `0.0`."""
    attention_dropout: Share = 0.1
    """Dropout of attention weights in training. Example: `0.0`."""
    widths: Annotated[list[Count], Field(min_length=1)] | None = None
    """Matryoshka: widths to which vectors can be cut. Losses on cosines and vectors are averaged
    over full vectors and their first numbers at each of these widths. The full width may be listed
    too. Example: `[64, 128, 256]`."""
    depths: Depths | None = None
    """Depths at which the network answers besides its full depth; a list alone is its `layers`.
    Default: none. Example: `[2, 3, 4]`."""

    @field_validator("widths")
    @classmethod
    def _widths_rise(cls, widths: list[int] | None) -> list[int] | None:
        if widths is not None and widths != sorted(set(widths)):
            raise ValueError(f"{widths} must rise")
        return widths


class SubsetSpec(Spec):
    share: Annotated[float, Field(gt=0.0, le=1.0)]
    """Share of the training rows that each pass draws. Example: `0.5`."""
    balanced: bool = False
    """With replacement, every class equally likely; otherwise without, all rows equally likely.
    Example: `true`."""
    label_counts: bool = False
    """With replacement, the weight of a row is the number of rows with its label, so that frequent
    classes come even more often. Example: `true`."""

    @property
    def drawn_by(self) -> str | None:
        """The key that makes rows of some classes more likely, if one is set."""
        chosen = [key for key in ("balanced", "label_counts") if getattr(self, key)]
        return f"subset.{chosen[0]}" if chosen else None

    @model_validator(mode="after")
    def _draws_one_way(self) -> Self:
        if self.balanced and self.label_counts:
            raise ValueError("has `balanced` or `label_counts`, not both")
        return self


class WhereSpec(Spec):
    """Some rows of files that join several sources."""

    column: Column
    """A column, by name or by number from 1. Example: `"genre"`."""
    matches: Annotated[list[str], ONE_OR_MORE, Field(min_length=1)]
    """Values of the rows that are read; `*` stands for any characters. Example: `["news*",
    "blogs"]`."""


class PairsSpec(Spec):
    """Pairs of single sentences, for a teacher to label."""

    random: Annotated[int, Field(ge=0)] = 0
    """Number of pairs of two random sentences. Example: `10000`."""
    nearest: Annotated[int, Field(ge=0)] = 0
    """Number of pairs of a sentence and one of its nearest, by the encoder before training, all of
    its layers. Example: `20000`."""
    among: Count = 10
    """How many nearest sentences the second one is drawn from. Example: `5`."""
    seed: Annotated[int, Field(ge=0)] = 11711
    """Seed of the pairs alone, so that runs with other seeds have the same pairs. Example: `1`."""

    @model_validator(mode="after")
    def _makes_some(self) -> Self:
        if not (self.random or self.nearest):
            raise ValueError("needs `random` or `nearest`, how many pairs to make")
        return self


class NegativesSpec(Spec):
    """Pairs for learning to rank: the first text of a pair of class 1 with one of the second texts
    nearest to it, by the encoder before training with all of its layers, that no known duplicates
    connect with it. They have class 0."""

    per_pair: Count = 2
    """How many are added for each training pair of class 1. Example: `3`."""
    among: Count = 20
    """How many of the nearest second texts they are drawn from. Example: `50`."""
    seed: Annotated[int, Field(ge=0)] = 11711
    """Seed of the pairs alone, so that runs with other seeds have the same pairs. Example: `7`."""


class ChangesSpec(Spec):
    """Pairs of a sentence and itself changed by rule, for a teacher to label."""

    pairs: Count
    """Number of pairs, as many of each rule as there can be. Example: `20000`."""
    rules: list[ChangeRule] = Field(
        default_factory=lambda: list(get_args(ChangeRule)), min_length=1
    )
    """Two words swapped, two names or sides of a relation swapped, another name, another number,
    `not` put in or taken out, the parts of an `and` swapped, which keeps the meaning; default:
    all. Example: `["words", "roles"]`."""
    seed: Annotated[int, Field(ge=0)] = 11711
    """Seed of the pairs alone, so that runs with other seeds have the same pairs. Example: `7`."""


def _files_or_share(value: Any) -> Any:
    if isinstance(value, int | float) and not 0.0 < value < 1.0:
        raise ValueError(
            f"{value} should be files, or a share of the training rows between 0 and 1"
        )
    return [value] if isinstance(value, str) else value


class DataSpec(Spec):
    layout: str | None = None
    """A known layout (`cs224n-sst`, ...), which provides files, columns and format. Example:
    `"cs224n-sst"`."""
    train: Annotated[list[str], ONE_OR_MORE] = Field(default_factory=list)
    """Training files, relative to the data folder, read in order. Example: `["tickets.csv",
    "more.jsonl"]`."""
    dev: Annotated[list[str] | float, BeforeValidator(_files_or_share)] = Field(
        default_factory=list
    )
    """Files that are scored, or a share of the training rows that is split off: stratified by
    label, with equal texts and pairs that share a text on one side. Without dev nothing is scored.
    Example: `0.15`."""
    group: Column | None = None
    """Where `dev` is a share: a column whose equal values stay on one side, such as an author.
    Example: `"author"`."""
    texts: Annotated[list[Column] | None, ONE_OR_MORE] = None
    """One, two or three text columns, by name or by number from 1. Example: `["question1",
    "question2"]`."""
    label: Column | None = None
    """The label column, by name or by number from 1. Example: `"team"`."""
    label_separator: Annotated[str, Field(min_length=1)] | None = None
    """Separator between the labels in a cell, for tasks with `multi_label`. Example: `","`."""
    delimiter: Delimiter | None = None
    """Delimiter of CSV and TSV files; default: detected. Example: `"semicolon"`."""
    quoting: bool | None = None
    """Whether fields may be quoted with `"`; default: detected. Example: `false`."""
    header: bool | None = None
    """Whether the first line names the columns; default: detected. Example: `true`."""
    label_map: dict[str, float] | None = None
    """The value of each label word; rows with other words are bad rows. Example: `{ no = 0, yes = 1
    }`."""
    on_bad_row: Literal["fail", "skip"] = "fail"
    """A row without text or label: fail, or skip, count and report it. Example: `"skip"`."""
    where: WhereSpec | None = None
    """Read only rows whose value in a column matches, of training files; default: all. Example: `{
    column = "lang", matches = "en" }`."""
    overlap: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    """Read only training pairs that have at least this share of their words in common; default:
    all. Example: `0.8`."""
    limit: Count | None = None
    """Read only the first rows of each file, for trials. Example: `1000`."""
    draw: Count | None = None
    """Use only so many of the training rows, drawn at random, always the same ones; a share that is
    dev is of these. Default: all. Example: `50000`."""
    sentences: bool = False
    """Split the training texts into sentences, each a row without a label. Example: `true`."""
    pairs: PairsSpec | None = None
    """Make pairs of the training sentences of all text columns, for a teacher to label. Example: `{
    nearest = 20000 }`."""
    changes: ChangesSpec | None = None
    """Make pairs of each training sentence of all text columns and itself changed by rule. Example:
    `{ pairs = 20000 }`."""
    negatives: NegativesSpec | None = None
    """Add near pairs of class 0 to the training pairs, for ranking. Example: `{ per_pair = 2 }`."""
    both_orders: bool = False
    """Train on each pair in both orders of its two texts. Example: `true`."""

    @property
    def dev_share(self) -> float | None:
        """The share of the training rows that is dev, if dev is not in files of its own."""
        return self.dev if isinstance(self.dev, float) else None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.layout is None and not (self.train or self.dev):
            raise ValueError("needs a `layout`, or `train` or `dev` files")
        if self.dev_share is not None and self.layout is None and not self.train:
            raise ValueError("`dev` is a share of the training rows, and `train` names no files")
        makers = [key for key in ("sentences", "pairs", "changes") if getattr(self, key)]
        if self.dev_share is not None and makers:
            raise ValueError(f"`{makers[0]}` needs `dev` in files of its own, not a share")
        if len(makers) > 1:
            raise ValueError(f"has `{makers[0]}` or `{makers[1]}`, not both")
        if self.group is not None and self.dev_share is None:
            raise ValueError("`group` keeps rows together where `dev` is a share, such as 0.15")
        if self.layout is None and self.texts is None:
            raise ValueError("needs `texts`, the text columns, where there is no `layout`")
        if self.texts is not None and not 1 <= len(self.texts) <= 3:
            raise ValueError("`texts` names one, two or three columns")
        return self
