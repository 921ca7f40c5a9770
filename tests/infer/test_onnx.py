"""Models as ONNX graphs: the same answers as torch's, without torch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import tercet
from tercet.data.examples import read_texts
from tercet.errors import TercetError
from tercet.folders.model_card import ModelInfo
from tercet.folders.model_folder import Parts
from tercet.folders.onnx_folder import export_onnx
from tercet.heads.exemplars import Exemplars
from tercet.infer import onnx_engine
from tercet.infer.batches import even_batches
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.nn.onnx import rounding
from tercet.specs import Scaling, TaskSpec
from tercet.text.tokenizer import Tokenizer

LABELS = {"labels": ["bad", "fair", "good"], "data": {"layout": "cs224n-sst"}}
TWO = {"labels": ["different", "paraphrase"], "data": {"layout": "cs224n-quora"}}
GRADED = {"range": [1, 3], "data": {"layout": "cs224n-sts"}}
CLASSES: Any = {"kind": "cross-entropy"}
BINARY: Any = {"kind": "binary-cross-entropy"}
SQUARED: Any = {"kind": "mean-squared-error", "targets": [0, 1]}
SHARED = {"name": "common", "hidden": [12, 8], "activation": "gelu"}
EVERY = ["u", "v", "absdiff", "product", "dot", "cosine"]
TASKS = {
    name: TaskSpec.model_validate(block)
    for name, block in {
        "sentiment": {
            **LABELS,
            "single": {
                "head": {"kind": "mlp", "hidden": [8, 8], "activation": "tanh"},
                "objective": CLASSES,
            },
        },
        "direction": {
            **LABELS,
            "single": {"head": {"kind": "mlp", "normalise": True}, "objective": CLASSES},
        },
        "directions": {
            **TWO,
            "bi": {
                "head": {"kind": "features", "features": EVERY, "normalise": True},
                "objective": BINARY,
            },
        },
        "nearest": {
            **LABELS,
            "single": {"head": {"kind": "nearest", "count": 7}, "objective": CLASSES},
        },
        "exemplars": {
            **LABELS,
            "single": {"head": {"kind": "exemplars", "count": 7}, "objective": CLASSES},
        },
        "shared": {
            **LABELS,
            "single": {"shared": SHARED, "head": {"kind": "mlp"}, "objective": CLASSES},
        },
        "paraphrase": {
            **TWO,
            "bi": {
                "head": {"kind": "features", "features": EVERY, "hidden": [8]},
                "objective": BINARY,
            },
            "cross": {"head": {"kind": "mlp"}, "objective": BINARY},
        },
        "similarity": {
            **GRADED,
            "bi": {"head": {"kind": "cosine"}, "objective": {"kind": "hinge"}},
            "cross": {
                "shared": {**SHARED, "name": "both"},
                "head": {"kind": "dense-pair", "activation": "tanh"},
                "objective": SQUARED,
            },
        },
        "projected": {
            **GRADED,
            "bi": {
                "head": {"kind": "cosine", "projection": True, "projection_width": 5},
                "objective": {"kind": "mean-absolute-error", "targets": [-1, 1]},
            },
            "cross": {
                "head": {"kind": "dense-pair", "difference": False},
                "objective": {"kind": "binned-cross-entropy", "bins": 4},
            },
        },
        "shape": {
            "data": {"layout": "quora-positives"},
            "bi": {"objective": {"kind": "multiple-negatives-ranking"}},
        },
    }.items()
}
MODES = [(name, mode) for name, task in TASKS.items() if task.answers for mode in task.modes]
TEXTS = [
    "a film that is worth a look",
    "dull",
    "",
    "The plot is long, and the cast is lost in it: an hour too much. " * 3,
    "good fun",
    "a film",
    "dull",
]
PAIRS = list(zip(TEXTS, reversed(TEXTS), strict=True))
NEAR = 1e-5


def build(folder: Path, *, pooling: str = "mean", tasks: dict[str, TaskSpec] = TASKS) -> Model:
    """A model of random heads, exemplars included, at most 40 tokens."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Network(load_encoder(folder), pooling=pooling, tasks=tasks)
        for module in network.modules():
            if isinstance(module, Exemplars):
                module.fill(torch.randn(6, 32), torch.arange(6) % 3)
    facts: Any = {"encoder": folder.name, "pooling": pooling, "max_tokens": 40, "tasks": tasks}
    return Model(network, Tokenizer.load(folder), ModelInfo(**facts))


def export(model: Model, folder: Path, precision: Any = "fp32") -> Path:
    parts = Parts(model.network, model.tokenizer, model.info)
    export_onnx(folder, parts, precision=precision)
    return folder


@pytest.fixture(scope="module", params=["tiny_encoder", "tiny_mpnet"])
def both(request, tmp_path_factory) -> tuple[Model, Model]:
    """A model in torch and the same in ONNX Runtime."""
    model = build(request.getfixturevalue(request.param))
    return model, tercet.load(export(model, tmp_path_factory.mktemp("onnx") / "model"))


def test_vectors_are_those_of_torch(both) -> None:
    model, exported = both
    assert exported.width == model.width
    assert np.abs(exported.embed(TEXTS) - model.embed(TEXTS)).max() < NEAR
    pieces = model.pieces(TEXTS)
    vectors = exported.engine.vectors(pieces, np.array([3, 0]))
    assert np.abs(vectors - model.engine.vectors(pieces)[[3, 0]]).max() < NEAR
    assert exported.embed([]).shape == (0, model.width)


@pytest.mark.parametrize(("task", "mode"), MODES)
def test_every_head_answers_as_in_torch(both, task: str, mode: str) -> None:
    model, exported = both
    inputs: Any = TEXTS if mode == "single" else PAIRS
    requested: Any = None if mode == "single" else mode
    wanted = model.predictions(task, inputs, requested)
    given = exported.predictions(task, inputs, requested)
    assert given.shape == wanted.shape
    assert given.dtype == np.float32
    assert np.abs(given - wanted).max() < 1e-4
    assert exported.predictions(task, [], mode).shape == model.predictions(task, [], mode).shape
    columns = [model.pieces(TEXTS), model.pieces(TEXTS[::-1])][: 1 if mode == "single" else 2]
    raw = [each.engine.outputs(task, mode, columns) for each in both]
    assert np.abs(raw[0] - raw[1]).max() < 1e-4
    assert np.abs(raw[0] - raw[0][0]).max() > 1e-3  # so the head does look at its input
    assert exported.engine.output_width(task, mode) == raw[1].shape[1]
    assert exported.engine.reads_vectors(task, mode) == model.engine.reads_vectors(task, mode)


@pytest.mark.parametrize("pooling", ["cls", "max", "pooler"])
def test_other_poolings(tiny_encoder: Path, tmp_path: Path, pooling: str) -> None:
    model = build(tiny_encoder, pooling=pooling, tasks={})
    exported = tercet.load(export(model, tmp_path / "model"))
    assert np.abs(exported.embed(TEXTS) - model.embed(TEXTS)).max() < NEAR


def test_normalisation_is_inside_the_graph(both) -> None:
    import onnxruntime

    model, exported = both
    session = onnxruntime.InferenceSession(exported.engine.network.file)
    (ids, types, mask) = onnx_engine.rectangle(model.tokenizer.encode(TEXTS, max_tokens=40))
    feeds = {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}
    feeds = {given.name: feeds[given.name] for given in session.get_inputs()}
    (embeddings,) = session.run(["embeddings"], feeds)
    assert np.abs(embeddings - model.embed(TEXTS)).max() < NEAR


def test_batches_and_threads_change_nothing(both, monkeypatch: pytest.MonkeyPatch) -> None:
    _, exported = both
    whole = exported.embed(TEXTS)
    monkeypatch.setattr(onnx_engine, "MOST", 16)
    monkeypatch.setattr(onnx_engine, "LEAST", 16)
    monkeypatch.setattr(onnx_engine, "threads", lambda: 3)
    seen: list[tuple[int, int]] = []
    parts = exported.embed(TEXTS, progress=lambda done, total: seen.append((done, total)))
    assert np.abs(whole - parts).max() < NEAR
    assert seen[-1] == (len(set(TEXTS)), len(set(TEXTS)))
    assert len(seen) > 2


def test_int8_is_near(tiny_encoder: Path, tmp_path: Path) -> None:
    model = build(tiny_encoder)
    exported = tercet.load(export(model, tmp_path / "model", "int8"))
    cosines = (exported.embed(TEXTS) * model.embed(TEXTS)).sum(axis=1)
    assert 0.99 < cosines.min() < cosines.max() < 1.0 - 1e-7
    wanted = np.array([found.probabilities for found in model.sentiment(TEXTS)])
    given = np.array([found.probabilities for found in exported.sentiment(TEXTS)])
    assert np.abs(given - wanted).max() < 0.05


def test_int8_reads_loud_neurons_by_themselves(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounding, "SHARE", 32)
    model = build(tiny_encoder)
    for layer in model.network.encoder.layers:
        layer.feed_forward.expand.bias.data[7] = 100.0
    roundings = rounding.find_roundings(model.network.encoder, model.tokenizer)
    contracts = [found for name, found in roundings.items() if name.endswith("contract")]
    assert len(contracts) == len(model.network.encoder.layers)
    assert all(7 in found.apart and found.step < 0.1 for found in contracts)
    exported = tercet.load(export(model, tmp_path / "model", "int8"))
    cosines = (exported.embed(TEXTS) * model.embed(TEXTS)).sum(axis=1)
    assert cosines.min() > 0.99


def test_int8_divides_loud_inputs(tiny_encoder: Path, tmp_path: Path) -> None:
    model = build(tiny_encoder)
    for layer in model.network.encoder.layers:
        layer.attention_norm.weight.data[3] = 60.0
    expected = model.embed(TEXTS)
    roundings = rounding.find_roundings(model.network.encoder, model.tokenizer)
    divisors = roundings["layers.0.feed_forward.expand"].divisors
    assert divisors.argmax() == 3
    assert divisors[3] > 5 * np.median(divisors)
    assert (model.embed(TEXTS) == expected).all()  # since measuring changes nothing
    exported = tercet.load(export(model, tmp_path / "model", "int8"))
    cosines = (exported.embed(TEXTS) * expected).sum(axis=1)
    assert cosines.min() > 0.999


@pytest.mark.parametrize("encoder", ["tiny_encoder", "tiny_mpnet"])
def test_int8_vectors_do_not_depend_on_the_batch(request, tmp_path: Path, encoder: str) -> None:
    model = build(request.getfixturevalue(encoder), tasks={})
    network = tercet.load(export(model, tmp_path / "model", "int8")).engine.network
    loud = "!" * 60  # would change the steps of a batch that it is in
    texts = [*TEXTS, loud, *(text[:60] for text in rounding.calibration_texts()[::12])]

    def vectors(chosen: list[str]) -> Any:
        return network.vectors(
            *onnx_engine.rectangle(model.tokenizer.encode(chosen, max_tokens=40))
        )

    alone = np.concatenate([vectors([text]) for text in texts])
    assert np.abs(vectors(texts) - alone).max() < 1e-6
    assert np.abs(vectors(texts[::-1])[::-1] - alone).max() < 1e-6


def test_int8_of_real_weights_is_near_and_does_not_depend_on_the_batch(
    minilm: Path, real_data: Path, tmp_path: Path
) -> None:
    model = tercet.load(minilm, device="cpu")
    exported = tercet.load(export(model, tmp_path / "model", "int8"))
    (texts,) = read_texts(real_data / "cs224n" / "quora-dev.csv", ["sentence1"])
    vectors = exported.embed(texts[:64])
    cosines = (vectors * model.embed(texts[:64])).sum(axis=1)
    assert cosines.mean() > 0.998
    assert cosines.min() > 0.995
    alone = np.concatenate([exported.embed([text]) for text in texts[:32]])
    assert np.abs(vectors[:32] - alone).max() < 1e-6


def test_scalings_count(tiny_encoder: Path, tmp_path: Path) -> None:
    model = build(tiny_encoder)
    plain = model.predictions("paraphrase", PAIRS)
    scalings = {
        "sentiment": {"single": Scaling(temperature=3.0)},
        "paraphrase": {"cross": Scaling(temperature=0.5, shift=-1.0)},
    }
    model.info = model.info.model_copy(update={"scalings": scalings})
    exported = tercet.load(export(model, tmp_path / "model"))
    for task, inputs in (("sentiment", TEXTS), ("paraphrase", PAIRS)):
        wanted = model.predictions(task, inputs)
        assert np.abs(exported.predictions(task, inputs) - wanted).max() < NEAR
    assert np.abs(model.predictions("paraphrase", PAIRS) - plain).max() > NEAR


def test_a_saved_copy_answers_alike(both, tmp_path: Path) -> None:
    _, exported = both
    exported.save(tmp_path / "copy")
    copy = tercet.load(tmp_path / "copy")
    assert (copy.embed(TEXTS) == exported.embed(TEXTS)).all()
    assert (copy.similarity(PAIRS) == exported.similarity(PAIRS)).all()


def test_torch_is_not_imported(both) -> None:
    _, exported = both
    program = (
        "import sys, tercet\n"
        f"model = tercet.load({str(exported.engine.network.folder)!r})\n"
        "model.embed(['a']), model.sentiment(['a']), model.similarity([('a', 'b')])\n"
        "print(*{'torch', 'onnx', 'scipy', 'sklearn', 'pyarrow', 'transformers'} & {*sys.modules})"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "\n", "")


def test_what_needs_torch_is_refused(both) -> None:
    _, exported = both
    with pytest.raises(TercetError, match="holds ONNX graphs, which can neither be trained"):
        _ = exported.network
    with pytest.raises(TercetError, match="run on the CPU, not on 'cuda'"):
        tercet.load(exported.engine.network.folder, device="cuda")


def test_a_head_on_hidden_states_is_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    block = {**LABELS, "single": {"head": {"kind": "layers", "layers": 1}, "objective": CLASSES}}
    model = build(tiny_encoder, tasks={"tone": TaskSpec.model_validate(block)})
    with pytest.raises(TercetError, match=r"The head of tone\.single is of kind `layers`"):
        export(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("file", ["model.onnx", "heads/sentiment.single.onnx", "tercet.json"])
def test_a_damaged_folder_is_told_in_one_sentence(both, tmp_path: Path, file: str) -> None:
    _, exported = both
    for damage in ("cut", "gone", "other"):
        exported.save(tmp_path / damage)
        path = tmp_path / damage / file
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] if damage == "cut" else b"<html></html>")
        if damage == "gone":
            path.unlink()
        with pytest.raises(TercetError) as result:
            tercet.load(tmp_path / damage).sentiment(["a"])
        assert "\n" not in str(result.value)
        assert str(tmp_path / damage) in str(result.value)


def test_a_graph_with_a_name_that_is_not_text_is_told_in_one_sentence(
    both, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _, exported = both
    exported.save(tmp_path / "model")
    path = tmp_path / "model" / "heads" / "sentiment.single.onnx"
    # The first use of an input that is now another's name: the message about it is not text.
    path.write_bytes(path.read_bytes().replace(b"vectors", b"\xf6ectors", 1))
    with pytest.raises(TercetError, match=r"sentiment.single.onnx: cannot be read"):
        tercet.load(tmp_path / "model").sentiment(["a"])
    assert capfd.readouterr().out == ""


def write_constant(path: Path, value: np.ndarray, *, like: Path) -> None:
    """A graph with the inputs and the properties of another, which always gives `value`."""
    graph = onnx.load(like)
    name = graph.graph.output[0].name
    constant = onnx.helper.make_node(
        "Constant", [], [name], value=onnx.numpy_helper.from_array(value)
    )
    kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
    output = onnx.helper.make_tensor_value_info(name, kind, value.shape)
    for field in ("node", "initializer", "output", "value_info"):
        graph.graph.ClearField(field)
    graph.graph.node.append(constant)
    graph.graph.output.append(output)
    path.write_bytes(graph.SerializeToString())


@pytest.mark.parametrize(
    "make",
    [
        lambda width: np.ones((1, width), np.float32),  # numpy would give it to all rows
        lambda width: np.ones(width, np.float32),
        lambda width: np.ones((3, 1, width), np.float32),
        lambda width: np.ones((3, width), np.int64),
        lambda width: np.full((3, width), np.nan, np.float32),
        lambda width: np.ones((), np.float32),
    ],
)
@pytest.mark.parametrize(
    ("file", "width"), [("model.onnx", 32), ("heads/sentiment.single.onnx", 3)]
)
def test_a_graph_with_wrong_outputs_is_told_in_one_sentence(
    both, tmp_path: Path, file: str, width: int, make: Callable[[int], np.ndarray]
) -> None:
    _, exported = both
    exported.save(tmp_path / "model")
    path = tmp_path / "model" / file
    write_constant(path, make(width), like=path)
    with pytest.raises(TercetError, match=rf"{path.name}: gives") as result:
        tercet.load(tmp_path / "model").sentiment(["a", "b", "c"])
    assert "\n" not in str(result.value)


def test_without_the_extra_one_sentence(both, monkeypatch, tmp_path: Path) -> None:
    model, exported = both
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(TercetError, match=r"needs ONNX Runtime: .*in a clone: .* '.\[onnx\]'"):
        tercet.load(exported.engine.network.folder)
    monkeypatch.setitem(sys.modules, "onnx", None)
    for name in [name for name in sys.modules if name.startswith("tercet.nn.onnx.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "tercet.network.head_graph", raising=False)
    with pytest.raises(TercetError, match=r"pip install 'tercet\[onnx\]'"):
        export(model, tmp_path / "model")


def test_even_batches_take_each_row_once_and_pad_little() -> None:
    lengths = np.random.default_rng(0).integers(3, 40, 500)
    found = even_batches(lengths, budget=256)
    assert sorted(np.concatenate(found)) == list(range(500))
    sizes = [len(rows) * lengths[rows].max() for rows in found]
    assert max(sizes) <= 256
    assert sum(sizes) < 1.05 * lengths.sum()
    assert [len(rows) for rows in even_batches(np.array([300, 5]), budget=256)] == [1, 1]
    assert even_batches(np.zeros(0, np.int64), budget=256) == []
