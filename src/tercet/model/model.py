"""Model: sentences to vectors and to the predictions of its tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from tercet.data.sketch import Sketch
from tercet.errors import ArgumentError, TercetError
from tercet.folders.model_card import ModelInfo
from tercet.folders.model_folder import (
    Parts,
    save_model_folder,
    untrained_depth,
)
from tercet.folders.onnx_folder import OnnxParts, save_onnx_folder
from tercet.infer.base import BaseEngine, Precision
from tercet.infer.onnx_engine import OnnxEngine
from tercet.inputs import Pair, sentences_of, sides_of
from tercet.model.parts import by_parts
from tercet.model.text_reader import Kind, TextReader
from tercet.network.onnx_network import OnnxNetwork
from tercet.predictions import (
    LabelSet,
    Prediction,
    Predictions,
    Sentiment,
    to_label_sets,
    to_predictions,
)
from tercet.progress import Progress, silent
from tercet.specs import Floats, Mode, TaskSpec
from tercet.text.tokenizer import Tokenizer
from tercet.text.tokens import Pieces

# Torch is imported where it is needed: a model of ONNX graphs runs without it.
if TYPE_CHECKING:
    from tercet.network.network import Network

PairMode = Literal["cross", "bi"]
SIMILARITY_SCALE = 5.0


class Model(TextReader):
    """An encoder with the heads of its tasks, as `tercet.load` returns it.

    >>> model = tercet.load()
    >>> model.name, model.width, list(model.tasks)
    ('tercet/small', 384, ['sentiment', 'paraphrase', 'similarity'])
    """

    def __init__(
        self,
        network: Network | OnnxNetwork,
        tokenizer: Tokenizer,
        info: ModelInfo,
        *,
        source: str | None = None,
        sketch: Sketch | None = None,
        precision: Precision = "fp32",
        layers: int | None = None,
    ) -> None:
        """source: what `load` finds this model by, a folder or a name; default: the encoder
        sketch: of the rows that it was trained on, if they were recorded
        precision: in which the encoder computes; `save` writes the weights as they were
        layers: how many of the source's layers were loaded; None: all
        """
        self._network = network if isinstance(network, OnnxNetwork) else _ready(network)
        self.tokenizer = tokenizer
        self.info = info
        self.source = info.encoder if source is None else source
        self.sketch = sketch
        self.precision = precision
        self.layers = layers
        self.long_inputs = {}

    def __repr__(self) -> str:
        tasks = ", ".join(self.tasks) or "none"
        layers = "" if self.layers is None else f" layers={self.layers},"
        return f"Model(encoder={self.info.encoder!r},{layers} width={self.width}, tasks={tasks})"

    @property
    def name(self) -> str:
        """The name of the folder, or of the run; `tercet/small`, a hub id or the encoder as is."""
        path = Path(self.source)
        if not path.is_absolute():
            return self.source
        return path.parent.name if path.name == "model" else path.name

    @property
    def info(self) -> ModelInfo:
        """Encoder, pooling, limits and tasks."""
        return self._info

    @info.setter
    def info(self, info: ModelInfo) -> None:
        self._info = info
        self.__dict__.pop("engine", None)

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        return self.engine.width

    @property
    def network(self) -> Network:
        """The torch network; a model of ONNX graphs has none."""
        if isinstance(self._network, OnnxNetwork):
            raise TercetError(
                f"{self._network.folder}: holds ONNX graphs, which can neither be trained nor "
                "exported; use the model folder that they were exported from."
            )
        return self._network

    @property
    def widths(self) -> list[int]:
        """The widths that `embed` accepts."""
        return [*(self.info.widths or []), self.width]

    def check_width(self, width: int | None) -> None:
        """Raise unless vectors can be cut to a width; None is the full one.

        >>> model.check_width(model.width)
        """
        if width is not None and width not in self.widths:
            can = ", ".join(map(str, self.widths))
            raise ArgumentError(
                f"This model has no vectors of width {width}; its widths are {can}.", "width"
            )

    @property
    def depths(self) -> list[int]:
        """The numbers of layers that `load` accepts of this model, the full one last; empty for
        ONNX graphs, which have one depth."""
        if isinstance(self._network, OnnxNetwork):
            return []
        return [*self._network.lesser_depths, self._network.encoder.config.layers]

    def at(self, layers: int) -> Model:
        """The model of one of its `depths` alone, which shares its weights with this one.

        >>> model.at(model.depths[-1])
        Model(encoder='all-minilm-l6-v2', width=384, tasks=sentiment, paraphrase, similarity)
        """
        if layers not in self.depths:
            raise untrained_depth(Path(self.source), layers, self.depths)
        network = self.network
        return Model(
            network.at(layers),
            self.tokenizer,
            self.info.at(layers),
            source=self.source,
            sketch=self.sketch,
            precision=self.precision,
            layers=layers if layers < network.encoder.config.layers else self.layers,
        )

    @property
    def tasks(self) -> dict[str, TaskSpec]:
        """The tasks that `predict` answers, by name."""
        return {name: task for name, task in self.info.tasks.items() if task.answers}

    @cached_property
    def engine(self) -> BaseEngine:
        """Runs the network."""
        reading = self.tokenizer.template, self.info.max_tokens, self.info.scalings or {}
        if isinstance(self._network, OnnxNetwork):
            return OnnxEngine(self._network, *reading)
        from tercet.infer.engine import Engine

        return Engine(self._network, *reading, half=self._half)

    @cached_property
    def _half(self) -> Network | None:
        if self.precision == "fp32":
            return None
        from tercet.infer.half import half_network

        return half_network(self.network)

    def embed(
        self, texts: Iterable[str], *, width: int | None = None, progress: Progress | None = None
    ) -> Floats:
        """Vectors of length 1, float32 [n, width].

        width: one of `widths`; default: the full width

        >>> vectors = model.embed(["A quiet film.", "A silent movie."])
        >>> vectors.shape, bool(vectors[0] @ vectors[1] > 0.5)
        ((2, 384), True)
        """
        self.check_width(width)

        def embed_part(columns: Sequence[Pieces], progress: Progress) -> Floats:
            # A repeated text is encoded once.
            unique_rows, places = columns[0].distinct()
            vectors = self.engine.unit_vectors(
                columns[0], unique_rows, width=width, progress=progress
            )
            return vectors if len(unique_rows) == len(places) else vectors[places]

        def count(columns: Sequence[Pieces]) -> None:
            self.count_inputs("texts", columns)

        return self._by_parts([sentences_of(texts)], embed_part, progress, count=count)

    def sentiment(self, texts: Iterable[str]) -> Predictions[Sentiment]:
        """The most probable class of each sentence, by the task `sentiment`.

        >>> model.sentiment(["A quiet triumph.", "Dull."])
        0: 'somewhat positive' 0.61; positive 0.32, neutral 0.06, and 2 more
        1: 'somewhat negative' 0.45; negative 0.42, neutral 0.10, and 2 more
        """
        task = self._task("sentiment")
        if task.labels is None:
            raise TercetError("The task `sentiment` of this model has grades: use predict.")
        if task.multi_label:
            raise TercetError(
                "The task `sentiment` of this model has several labels per input: use predict."
            )
        return to_predictions(self.predictions("sentiment", texts), task.labels, Sentiment)

    def paraphrase(self, pairs: Iterable[Pair], mode: PairMode | None = None) -> Floats:
        """Probability that the two sentences of each pair mean the same, float32 [n].

        mode: `cross` reads a pair jointly, `bi` compares vectors; default: the most accurate
            available

        >>> pairs = [("How do I learn guitar?", "What is the best way to learn guitar?")]
        >>> float(model.paraphrase(pairs)[0]) > 0.5
        True
        """
        task = self._task("paraphrase")
        if task.labels is None or len(task.labels) != 2 or task.multi_label:
            raise TercetError(
                "The task `paraphrase` of this model does not have two classes: use predict."
            )
        predicted = self.predictions("paraphrase", pairs, mode)
        return predicted if predicted.ndim == 1 else predicted[:, 1]

    def similarity(self, pairs: Iterable[Pair], mode: PairMode | None = None) -> Floats:
        """Similarity of the two sentences of each pair, from 0 to 5, float32 [n].

        mode: as in `paraphrase`

        >>> float(model.similarity([("A man sings.", "Someone is singing.")])[0]) > 3
        True
        """
        task = self._task("similarity")
        if task.range is None:
            raise TercetError("The task `similarity` of this model has classes: use predict.")
        low, high = task.range
        grades = self.predictions("similarity", pairs, mode)
        return ((grades - low) * (SIMILARITY_SCALE / (high - low))).astype(np.float32)

    def predict(
        self, task: str, inputs: Iterable[str] | Iterable[Pair], mode: PairMode | None = None
    ) -> Predictions[Prediction] | Predictions[LabelSet] | Floats:
        """The classes, the sets of labels, or the grades float32 [n], of any task.

        inputs: sentences or pairs

        >>> model.predict("sentiment", ["A quiet triumph."])[0].name
        'somewhat positive'
        >>> model.predict("similarity", [("A man sings.", "Someone is singing.")], mode="bi").shape
        (1,)
        """
        spec = self._task(task)
        predicted = self.predictions(task, inputs, mode)
        if spec.labels is None:
            return predicted
        if spec.multi_label:
            thresholds = self.thresholds(task, self.resolve_mode(task, mode))
            return to_label_sets(predicted, spec.labels, thresholds)
        return to_predictions(predicted, spec.labels, Prediction)

    def thresholds(self, task: str, mode: Mode) -> list[float] | None:
        """Of each label of a task with several per input, the least probability at which it is
        predicted; None: one half.

        >>> model.thresholds("sentiment", "single") is None
        True
        """
        return (self.info.thresholds or {}).get(task, {}).get(mode)

    def predictions(
        self,
        task: str,
        inputs: Iterable[str] | Iterable[Pair],
        mode: PairMode | None = None,
        *,
        progress: Progress | None = None,
    ) -> Floats:
        """Probabilities [n, classes], or of class 1 [n], or grades [n], float32.

        Where inputs may have several labels, the probabilities are independent.

        >>> model.predictions("sentiment", ["Dull.", "A quiet triumph."]).shape
        (2, 5)
        """
        resolved = self.resolve_mode(task, mode)

        def predict_part(columns: Sequence[Pieces], progress: Progress) -> Floats:
            return self.engine.predictions(task, resolved, columns, progress=progress)

        def count(columns: Sequence[Pieces]) -> None:
            kind: Kind = "texts" if resolved == "single" else "pairs"
            self.count_inputs(kind, columns, joint=resolved == "cross")

        if resolved == "single":
            texts = [sentences_of(cast(Iterable[str], inputs))]
        else:
            texts = [*sides_of(cast(Iterable[Pair], inputs))]
        return self._by_parts(texts, predict_part, progress, count=count)

    def _by_parts(
        self,
        texts: Sequence[Sequence[str]],
        work: Callable[[Sequence[Pieces], Progress], Floats],
        progress: Progress | None,
        *,
        count: Callable[[Sequence[Pieces]], None],
    ) -> Floats:
        size = self.engine.part_rows
        return by_parts(texts, work, progress or silent, size=size, read=self.pieces, count=count)

    def with_tasks(self, tasks: dict[str, TaskSpec]) -> Model:
        """The same network and heads with other specs of its tasks, such as other data.

        >>> model.with_tasks({"sentiment": model.tasks["sentiment"]})
        Model(encoder='all-minilm-l6-v2', width=384, tasks=sentiment)
        """
        other = copy(self)
        other.info = self.info.model_copy(update={"tasks": tasks})
        return other

    def resolve_mode(self, task: str, mode: PairMode | None = None) -> Mode:
        """The requested mode; default: the most accurate that the task has.

        >>> model.resolve_mode("paraphrase"), model.resolve_mode("paraphrase", "bi")
        ('cross', 'bi')
        """
        modes = list(self._task(task).predicting_modes)
        if mode is None:
            return modes[0]
        if mode not in modes:
            has = " and ".join(modes)
            raise TercetError(f"The task `{task}` of this model has no mode `{mode}`, only {has}.")
        return mode

    def save(self, folder: str | Path) -> None:
        """Write a model folder; unless it holds ONNX graphs, it also loads in
        sentence-transformers and transformers.

        >>> model.save("copy")
        >>> tercet.load("copy").name
        'copy'
        """
        if isinstance(self._network, OnnxNetwork):
            onnx_parts = OnnxParts(self._network, self.tokenizer, self.info)
            save_onnx_folder(Path(folder), onnx_parts, sketch=self.sketch)
        else:
            parts = Parts(self._network, self.tokenizer, self.info)
            save_model_folder(Path(folder), parts, sketch=self.sketch)

    def _task(self, name: str) -> TaskSpec:
        if name in self.tasks:
            return self.tasks[name]
        if name in self.info.tasks and (other := self.info.tasks[name].like) is not None:
            raise TercetError(f"The task `{name}` trained the heads of `{other}`: use that task.")
        if name in self.info.tasks:
            raise TercetError(f"The task `{name}` trains vectors and has no head to predict with.")
        has = f"its heads are {', '.join(self.tasks)}" if self.tasks else "it can only embed"
        raise TercetError(f"This model has no head for the task `{name}`; {has}.")


def _ready(network: Network) -> Network:
    """A network for inference, in the memory layout that loading gives.

    Some CPUs round differently for another layout, so a model that was just trained gets the same
    layout as a loaded one.
    """
    if network.device.type == "cpu":
        from tercet.nn.layout import arrange_for_cpu

        arrange_for_cpu(network.encoder)
    return network.eval()
