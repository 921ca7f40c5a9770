"""Where texts come from: the encoder that reads them, and the files that hold them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from tercet.specs.base import Column, Count, Pooling, Share, Spec


class EncoderSpec(Spec):
    name: str
    """A folder, a name of `tercet weights`, or a model hub id."""
    pooling: Pooling = "mean"
    """How hidden states become one vector a sentence."""
    max_tokens: Annotated[int, Field(ge=4, le=4096)] = 128
    """Longer sentences, and joined pairs, are cut here."""
    dropout: Share = 0.1
    """Dropout of hidden states while training."""
    attention_dropout: Share = 0.1
    """Dropout of attention weights while training."""
    widths: Annotated[list[Count], Field(min_length=1)] | None = None
    """How many first numbers of a vector shall serve alone (Matryoshka): losses on cosines and
    vectors are the mean of the loss on whole vectors and on each of these."""

    @field_validator("widths")
    @classmethod
    def _widths_rise(cls, widths: list[int] | None) -> list[int] | None:
        if widths is not None and widths != sorted(set(widths)):
            raise ValueError(f"{widths} must rise")
        return widths


class SubsetSpec(Spec):
    share: Annotated[float, Field(gt=0.0, le=1.0)]
    """How much of the training rows each pass draws anew."""
    balanced: bool = False
    """Drawn with replacement so that every class is as likely; else without, all rows alike."""


class PairsSpec(Spec):
    """Pairs made of single sentences, for a teacher to label."""

    random: Annotated[int, Field(ge=0)] = 0
    """How many pairs of two sentences drawn at random."""
    nearest: Annotated[int, Field(ge=0)] = 0
    """How many pairs of a sentence and one of those nearest to it, by the encoder's vectors before
    training."""
    among: Count = 10
    """Of how many nearest ones it is drawn."""
    seed: Annotated[int, Field(ge=0)] = 11711
    """Of its own, so that runs with other seeds have the same pairs."""

    @model_validator(mode="after")
    def _makes_some(self) -> Self:
        if not (self.random or self.nearest):
            raise ValueError("needs `random` or `nearest`, how many pairs to make")
        return self


class DataSpec(Spec):
    layout: str | None = None
    """A known layout (`cs224n-sst`, ...), which fills in files, columns and format."""
    train: list[str] = Field(default_factory=list)
    """Training files, relative to `--data`, read one after the other."""
    dev: list[str] = Field(default_factory=list)
    """Files that scores are measured on."""
    texts: list[Column] | None = None
    """One, two or three text columns, by name or by number from 1."""
    label: Column | None = None
    """The label column, by name or by number from 1."""
    delimiter: Literal["tab", "comma"] | None = None
    """Of CSV and TSV files; found out when left open."""
    quoting: bool | None = None
    """Whether `"` quotes a field; found out when left open."""
    header: bool | None = None
    """Whether the first line names the columns; found out when left open."""
    label_map: dict[str, float] | None = None
    """What each label word is worth; rows with other words are bad rows."""
    on_bad_row: Literal["fail", "skip"] = "fail"
    """A row without text or label: fail, or skip, count and report it."""
    limit: Count | None = None
    """Only the first rows of each file, for trials."""
    sentences: bool = False
    """Cut the training files' texts into sentences, each a row without a label."""
    pairs: PairsSpec | None = None
    """Make pairs of the training files' sentences, those of all text columns; their labels are a
    teacher's."""

    @field_validator("train", "dev", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("texts", mode="before")
    @classmethod
    def _one_column_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str | int) else value

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.layout is None and not (self.train or self.dev):
            raise ValueError("needs a `layout`, or `train` or `dev` files")
        if self.layout is None and self.texts is None:
            raise ValueError("needs `texts`, the text columns, where there is no `layout`")
        if self.texts is not None and not 1 <= len(self.texts) <= 3:
            raise ValueError("`texts` names one, two or three columns")
        return self
