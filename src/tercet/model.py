"""Model: sentences to vectors and to the predictions of its tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from tercet import weights
from tercet.data.sketch import Sketch
from tercet.errors import ArgumentError, TercetError, needing_torch
from tercet.files import reading
from tercet.folders.model_card import ModelInfo
from tercet.folders.model_folder import (
    Parts,
    is_model_folder,
    load_model_folder,
    save_model_folder,
    untrained_depth,
)
from tercet.folders.onnx_folder import OnnxParts, is_onnx_folder, load_onnx_folder, save_onnx_folder
from tercet.folders.seen_file import read_seen
from tercet.infer.ahead import ahead
from tercet.infer.base import BaseEngine, Precision
from tercet.infer.onnx_engine import OnnxEngine
from tercet.inputs import Pair, sentences_of, sides_of
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
from tercet.specs import Long, Mode, TaskSpec
from tercet.text.long_inputs import LongInputs
from tercet.text.tokenizer import Tokenizer
from tercet.text.tokens import Pieces

# Torch is imported where it is needed: a model of ONNX graphs runs without it.
if TYPE_CHECKING:
    import torch

    from tercet.network.network import Network

Floats = NDArray[np.float32]
PairMode = Literal["cross", "bi"]
Kind = Literal["texts", "pairs"]
SIMILARITY_SCALE = 5.0
SHIPPED = "tercet/small"
"""The name of the model that comes with the package."""
SHIPPED_FOLDER = Path(__file__).with_name("shipped")


class Model:
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
        layers: how many `load` was told to read of those of the source; None: all
        """
        self._network = network if isinstance(network, OnnxNetwork) else _ready(network)
        self.tokenizer = tokenizer
        self.info = info
        self.source = info.encoder if source is None else source
        self.sketch = sketch
        self.precision = precision
        self.layers = layers
        self.long_inputs: dict[Kind, LongInputs] = {}
        """By kind, how many texts and pairs it has read, and how many were too long."""

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

        return self._by_parts([sentences_of(texts)], embed_part, progress or silent, count=count)

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
        return self._by_parts(texts, predict_part, progress or silent, count=count)

    def _by_parts(
        self,
        texts: Sequence[Sequence[str]],
        work: Callable[[Sequence[Pieces], Progress], Floats],
        progress: Progress,
        *,
        count: Callable[[Sequence[Pieces]], None],
    ) -> Floats:
        """What `work` gives for columns of n texts, [n, ...].

        With a GPU, it is done in parts: word pieces of the next rows are made, and those before are
        packed and copied, while it encodes.

        count: called for the pieces of each part, in this thread
        """

        def pieces_of(part: Sequence[Sequence[str]]) -> list[Pieces]:
            return [self.pieces(column) for column in part]

        def counted(columns: Sequence[Pieces]) -> Sequence[Pieces]:
            count(columns)
            return columns

        rows, size = len(texts[0]), self.engine.part_rows
        if size is None or rows <= size:
            return work(counted(pieces_of(texts)), progress)
        starts = range(0, rows, size)
        parts = [[column[start : start + size] for column in texts] for start in starts]
        pieces = map(counted, ahead(pieces_of, parts))
        results = ahead(lambda columns: work(columns, silent), pieces)
        first = next(results)
        whole = np.empty((rows, *first.shape[1:]), first.dtype)
        for start, result in zip(starts, chain([first], results), strict=True):
            whole[start : start + size] = result
            progress(min(start + size, rows), rows)
        return whole

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

    def pieces(self, texts: Sequence[str]) -> Pieces:
        """Word pieces of n texts, truncated to what the encoder reads, or whole, for windows.

        >>> model.pieces(["A quiet film."]).lengths
        array([4])
        """
        limit, texts = self.info.max_tokens, self._cased(texts)
        if self.info.long == "windows":
            return self.tokenizer.whole_pieces(texts, limit=limit)
        return self.tokenizer.pieces(texts, limit=limit)

    def piece_steps(self, texts: Sequence[str]) -> Iterator[Pieces]:
        """The same pieces in short steps, each of which gives the texts that it ends.

        Texts that are truncated are read no further than needed, and their lengths before the cut
        are lower bounds.

        >>> [len(pieces) for pieces in model.piece_steps(["A quiet film.", "Dull."])]
        [2]
        """
        tokenizer = self.tokenizer
        read = tokenizer.whole_steps if self.info.long == "windows" else tokenizer.first_steps
        yield from read(self._cased(texts), limit=self.info.max_tokens)

    def _cased(self, texts: Sequence[str]) -> Sequence[str]:
        return [text.lower() for text in texts] if self.info.lower_case else texts

    def count_inputs(self, kind: Kind, columns: Sequence[Pieces], *, joint: bool = False) -> None:
        """Count texts, or pairs that may be encoded jointly, into `long_inputs`.

        >>> model.count_inputs("texts", [model.pieces(["word " * 600])])
        >>> model.long_inputs["texts"].long
        1
        """
        reading: dict[str, Any] = {
            "template": self.tokenizer.template,
            "max_tokens": self.info.max_tokens,
        }
        self.add_count(kind, LongInputs.of(columns, joint=joint, **reading))

    def add_count(self, kind: Kind, found: LongInputs) -> None:
        """Add what was counted elsewhere, such as in an earlier run, to `long_inputs`.

        >>> model.add_count("texts", model.long_inputs["texts"])
        >>> model.long_inputs["texts"].long
        2
        """
        self.long_inputs[kind] = self.long_inputs.get(kind, LongInputs()) + found

    def describe_long(self) -> list[str]:
        """What was truncated or read in windows so far: a sentence for texts, one for pairs.

        >>> reader = tercet.load()
        >>> vectors = reader.embed(["A short text.", "word " * 600])
        >>> print(*reader.describe_long())
        1 of 2 texts was longer than 512 tokens and was truncated (15 % of its tokens dropped).
        """
        limit = self.info.max_tokens
        found = [each.sentence(kind, max_tokens=limit) for kind, each in self.long_inputs.items()]
        return [sentence for sentence in found if sentence is not None]

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


def load(
    source: str | Path | None = None,
    *,
    device: str | None = None,
    precision: Precision | None = None,
    long: Long | None = None,
    layers: int | None = None,
) -> Model:
    """Load a model.

    source: a model folder, an ONNX folder, a run folder, a plain Hugging Face or
        sentence-transformers folder, a name of `tercet weights`, or a model hub id; default:
        `tercet/small`, the model that comes with the package
    device: `cpu`, `cuda`, `cuda:1`; default: a GPU if there is one
    precision: `fp32` or `bf16`, in which the encoder computes; default: bf16 on GPUs that have it
    long: what to do with texts longer than the model reads at once: `truncate` them, or read all of
        them in overlapping `windows` whose vectors and outputs are averaged; default: as the model
        was made
    layers: after how many of its first layers it answers, faster and less accurately; only these
        are read. A model that was trained for several `depths` has a choice; default: all

    >>> model = tercet.load()
    >>> model
    Model(encoder='all-minilm-l6-v2', width=384, tasks=sentiment, paraphrase, similarity)
    """
    if long not in (None, *get_args(Long)):
        raise ArgumentError(f"`long` is {long!r}; it is truncate or windows.", "long")
    if precision not in (None, *get_args(Precision)):
        raise ArgumentError(f"`precision` is {precision!r}; it is fp32 or bf16.", "precision")
    model = _load(source, device=device, precision=precision, layers=layers)
    if long is not None:
        model.info = model.info.model_copy(update={"long": long})
    return model


def _load(
    source: str | Path | None,
    *,
    device: str | None,
    precision: Precision | None,
    layers: int | None,
) -> Model:
    folder, origin = find_folder(source)
    if is_onnx_folder(folder):
        if layers is not None:
            raise ArgumentError(
                f"{folder}: ONNX graphs have the layers that they were exported with; leave out "
                "`layers`.",
                "layers",
            )
        if device not in (None, "cpu"):
            raise TercetError(f"{folder}: ONNX graphs run on the CPU, not on {device!r}.")
        if precision is not None:
            raise ArgumentError(
                f"{folder}: ONNX graphs have the precision that they were exported with; leave out "
                "`precision`.",
                "precision",
            )
        with reading(folder):
            return Model(*load_onnx_folder(folder), source=origin, sketch=read_seen(folder))
    with needing_torch():
        chosen = _device(device)
    with reading(folder):
        if is_model_folder(folder):
            parts = load_model_folder(folder, layers=layers)
        else:
            parts = _foreign(folder, origin)
            if layers not in (None, full := parts.network.encoder.config.layers):
                raise untrained_depth(folder, layers, [full])
        sketch = read_seen(folder)
    return Model(
        parts.network.to(chosen),
        parts.tokenizer,
        parts.info,
        source=origin,
        sketch=sketch,
        precision=precision or _usual_precision(chosen),
        layers=layers,
    )


def _ready(network: Network) -> Network:
    """A network for inference, in the memory layout that loading gives.

    Some CPUs round differently for another layout, so a model that was just trained gets the same
    layout as a loaded one.
    """
    if network.device.type == "cpu":
        from tercet.nn.layout import arrange_for_cpu

        arrange_for_cpu(network.encoder)
    return network.eval()


def _foreign(folder: Path, source: str) -> Parts:
    from tercet.folders.foreign_folder import is_foreign_folder, load_foreign_folder

    if not is_foreign_folder(folder):
        raise TercetError(
            f"{folder}: is not a model: it has no tercet.json, modules.json or config.json."
        )
    name = Path(source).name if Path(source).is_absolute() else source
    return load_foreign_folder(folder, name=name)


def find_folder(source: str | Path | None) -> tuple[Path, str]:
    """The folder of a model, and a source that finds it from any working folder.

    source: as in `load`
    """
    here = find_local_folder(source)
    return here if here is not None else (weights.resolve(str(source)), str(source))


def find_local_folder(source: str | Path | None) -> tuple[Path, str] | None:
    """The same of a folder, a run or `tercet/small`; None for names that `weights` resolves."""
    if source is None:
        return _shipped()
    path = Path(source).expanduser()
    if str(source) and path.is_dir():
        run = path / "model"
        inner = run if not is_model_folder(path) and is_model_folder(run) else path
        return inner, str(path.resolve())
    if path.exists():
        raise TercetError(f"{path}: is a file; give the model folder.")
    return _shipped() if str(source) == SHIPPED else None


def _shipped() -> tuple[Path, str]:
    if not is_model_folder(SHIPPED_FOLDER):
        raise TercetError("No model ships with this release: give a model folder.")
    return SHIPPED_FOLDER, SHIPPED


def _usual_precision(device: torch.device) -> Precision:
    """bf16 on GPUs that compute in it, fp32 elsewhere."""
    import torch

    has_bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return "bf16" if has_bf16 else "fp32"


def _device(name: str | None) -> torch.device:
    import torch

    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise TercetError(f"Device {name!r} cannot be used here: {reason}") from error
    return device
