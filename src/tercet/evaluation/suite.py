"""What a suite is: one kind of measurement, its result, and how the result is shown.

A suite of your own:

    @tercet.register
    class Length(Suite):
        name, title, description = "length", "Length", "words per sentence"

        def run(self, context):
            texts = read_examples(context.model.tasks["mine"], "dev", context.data).texts[0]
            return MetricsResult({"words": Estimate(mean(len(text.split()) for text in texts))})
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tercet.data.files import MissingFileError
from tercet.data.layouts import Split
from tercet.evaluation import presentation as show
from tercet.evaluation.answers import Answers
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.metrics import Estimate
from tercet.model import Model
from tercet.specs.registry import Registry

SUITES: Registry[type[Suite]] = Registry("suite")
"""Import it from `tercet.evaluation.suites`, which fills it."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A file that a suite needs for a task and does not find."""

    suite: str
    task: str
    file: str


@contextmanager
def note_missing(missing: list[Missing], suite: str, task: str) -> Iterator[None]:
    """Add a file that is missing to a list instead of raising."""
    try:
        yield
    except MissingFileError as error:
        missing.append(Missing(suite, task, error.file))


@dataclass(frozen=True, slots=True)
class Context:
    """What a suite measures, and on what.

    texts: encodes each text once for all suites
    rows: at most so many rows of each task, for a quick look; default: all
    split: which rows of the model's own tasks are measured
    compared: the models that are compared with this one
    """

    texts: EncodedTexts
    data: Path
    rows: int | None = None
    compared: Sequence[Model] = ()
    split: Split = "dev"

    @property
    def model(self) -> Model:
        return self.texts.model


class SuiteResult(ABC):
    """What a suite measured, and how it is shown; only `metrics` is required."""

    missing: Sequence[Missing] = ()

    @abstractmethod
    def metrics(self) -> Mapping[str, Estimate]:
        """The values to compare models by."""

    def to_json(self) -> dict[str, Any]:
        return {"metrics": {name: value.to_json() for name, value in self.metrics().items()}}

    def tables(self) -> list[show.Table]:
        return [
            show.Table(
                caption="Metrics",
                columns=["Metric", "Value", show.INTERVAL],
                rows=[
                    [show.Cell(name), *show.estimate_cells(it)]
                    for name, it in self.metrics().items()
                ],
            )
        ]

    def charts(self) -> Sequence[show.Chart | show.SentenceMap]:
        return []

    def headlines(self) -> list[show.Headline]:
        """The main metrics, shown at the top of a report."""
        return []

    def findings(self) -> dict[str, str]:
        """The results in plain sentences, by subject."""
        return {}

    def notes(self) -> list[str]:
        """What a reader must know about the data, one sentence each."""
        return []

    def answers(self) -> list[Answers]:
        """Predictions by row, of each task; models that share them are compared by row."""
        return []

    def sections(self, suite: type[Suite]) -> list[show.Section]:
        """The parts of a report."""
        return [show.Section(suite.title, suite.intro, tables=self.tables(), charts=self.charts())]


@dataclass(frozen=True, slots=True)
class MetricsResult(SuiteResult):
    """A result that is no more than some metrics."""

    values: Mapping[str, Estimate]
    missing: Sequence[Missing] = field(default_factory=list)

    def metrics(self) -> Mapping[str, Estimate]:
        return self.values


class Suite(ABC):
    """One kind of measurement.

    description: what it measures, in a few words
    intro: how to read its section of a report
    needs_heads: whether it is left out for a model without heads
    """

    registry = SUITES
    name: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]
    intro: ClassVar[str] = ""
    needs_heads: ClassVar[bool] = False

    @classmethod
    def kind_name(cls) -> str:
        """The name by which it is registered."""
        return cls.name

    @classmethod
    def lacks(cls, model: Model) -> str | None:
        """What a model would need to be measured and does not have; None: nothing."""
        return "heads" if cls.needs_heads and not model.tasks else None

    @abstractmethod
    def run(self, context: Context) -> SuiteResult: ...
