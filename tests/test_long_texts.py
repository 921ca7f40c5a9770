"""Long texts in windows: a model's answers are averages over them, wherever it is asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tercet
from tercet.data.examples import Examples
from tercet.data.table import build_table
from tercet.embed import staged
from tercet.embed.local import embed_file
from tercet.errors import ArgumentError, TercetError
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.evaluation import describe
from tercet.folders.model_card import ModelInfo
from tercet.folders.model_folder import Parts
from tercet.folders.onnx_folder import export_onnx
from tercet.model import Model, load
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.report.report import Report
from tercet.specs import Scaling, TaskSpec
from tercet.text.tokenizer import Tokenizer

MLP = {"kind": "mlp", "hidden": [8]}
TASKS = {
    name: TaskSpec.model_validate(block)
    for name, block in {
        "sentiment": {
            "data": {"layout": "cs224n-sst"},
            "labels": ["bad", "fair", "good"],
            "single": {"head": MLP, "objective": {"kind": "cross-entropy"}},
        },
        "paraphrase": {
            "data": {"layout": "cs224n-quora"},
            "labels": ["different", "paraphrase"],
            "cross": {"head": MLP, "objective": {"kind": "binary-cross-entropy"}},
            "bi": {
                "head": {"kind": "features", "features": ["u", "absdiff"]},
                "objective": {"kind": "cross-entropy"},
            },
        },
    }.items()
}
LONG = "the film is good and the plot is long . how is the guitar ? it is a dull rain . " * 6 + (
    "rain and rain and a book of dull rain , dull rain ."
)
OTHER = "a book of rain . what is the plot of the film ? it is good . " * 9
SHORT = "a good film"
TEXTS = [SHORT, LONG, "", OTHER, LONG]
PAIRS = [(SHORT, LONG), (LONG, OTHER), (SHORT, "dull"), (OTHER, SHORT)]


@pytest.fixture(scope="module")
def folder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Network(load_encoder(tiny_encoder), pooling="mean", tasks=TASKS)
        for parameter in network.heads.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
    info = ModelInfo(
        encoder="tiny", pooling="mean", max_tokens=32, long="windows", tasks=TASKS,
        scalings={"sentiment": {"single": Scaling(temperature=2.0)}},
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("long") / "model"
    Model(network, Tokenizer.load(tiny_encoder), info).save(folder)
    return folder


@pytest.fixture
def model(folder: Path) -> Model:
    return load(folder, device="cpu")


def by_hand(model: Model, columns: list[list[str]], values: Any) -> Any:
    """What `values` gives for the windows of each row, averaged by their weights."""
    windows = model.engine.windows([model.pieces(texts) for texts in columns])
    assert windows is not None
    found = values(windows.columns)
    return np.stack(
        [
            np.average(found[windows.owners == row], axis=0, weights=windows.weights[own])
            for row in range(len(columns[0]))
            for own in [windows.owners == row]
        ]
    )


def unit(vectors: Any) -> Any:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_vectors_are_averages_of_windows(model: Model) -> None:
    # An empty text has one window without pieces, which needs no average.
    texts = [text for text in TEXTS if text]
    wanted = by_hand(model, [texts], lambda columns: model.engine.vectors(*columns))
    assert np.abs(model.embed(texts) - unit(wanted)).max() < 1e-5
    assert np.abs(model.embed(TEXTS)[[0, 1, 3, 4]] - unit(wanted)).max() < 1e-5


def test_outputs_are_averaged_before_they_are_calibrated(model: Model) -> None:
    texts = [text for text in TEXTS if text]
    outputs = by_hand(
        model, [texts], lambda columns: model.engine.outputs("sentiment", "single", columns)
    )
    scaled = np.exp(outputs / 2.0)
    wanted = scaled / scaled.sum(axis=1, keepdims=True)
    assert np.abs(model.predictions("sentiment", texts) - wanted).max() < 1e-5


def test_pairs_are_averages_of_windows_in_both_modes(model: Model) -> None:
    first, second = (list(side) for side in zip(*PAIRS, strict=True))
    outputs = by_hand(
        model, [first, second], lambda columns: model.engine.outputs("paraphrase", "cross", columns)
    )
    wanted = 1 / (1 + np.exp(-outputs[:, 0]))
    assert np.abs(model.paraphrase(PAIRS, mode="cross") - wanted).max() < 1e-5
    vectors = model.engine.vectors(model.pieces([*first, *second]))
    rows = np.arange(len(PAIRS))
    outputs = model.engine.apply_head("paraphrase", "bi", vectors, [rows, rows + len(rows)])
    found = model.engine.predict("paraphrase", "bi", outputs)
    assert np.abs(model.predictions("paraphrase", PAIRS, "bi") - found).max() < 1e-6


def test_short_texts_are_read_as_ever(folder: Path, model: Model) -> None:
    cut = load(folder, device="cpu", long="truncate")
    assert (cut.embed([SHORT, ""]) == model.embed([SHORT, ""])).all()
    assert (cut.paraphrase(PAIRS[2:3]) == model.paraphrase(PAIRS[2:3])).all()
    assert np.abs(cut.embed([LONG]) - model.embed([LONG])).max() > 1e-3
    with pytest.raises(ArgumentError, match="`long` is 'all'; it is truncate or windows"):
        load(folder, long="all")  # type: ignore[arg-type]


def test_the_end_of_a_long_text_counts(model: Model) -> None:
    changed = LONG[: LONG.rindex("dull")] + "good good"
    assert np.abs(model.embed([LONG]) - model.embed([changed])).max() > 1e-4


def test_onnx_reads_the_same_windows(model: Model, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    parts = Parts(model.network, model.tokenizer, model.info)
    export_onnx(tmp_path / "onnx", parts, precision="fp32")
    exported = load(tmp_path / "onnx")
    assert exported.info.long == "windows"
    assert np.abs(exported.embed(TEXTS) - model.embed(TEXTS)).max() < 1e-5
    for mode in ("cross", "bi"):
        ours, theirs = (each.paraphrase(PAIRS, mode=mode) for each in (model, exported))
        assert np.abs(ours - theirs).max() < 1e-5


def test_what_was_too_long_is_counted(folder: Path, model: Model) -> None:
    model.embed(TEXTS)
    model.paraphrase(PAIRS, mode="cross")
    assert model.describe_long() == [
        "3 of 5 texts were longer than 32 tokens and were read in windows.",
        "3 of 4 pairs were longer than 32 tokens and were read in windows.",
    ]
    cut = load(folder, device="cpu", long="truncate")
    cut.sentiment(TEXTS)
    (sentence,) = cut.describe_long()
    assert sentence.startswith("3 of 5 texts were longer than 32 tokens and were truncated (")


def test_evaluation_gives_what_prediction_gives(model: Model) -> None:
    encoded = EncodedTexts(model)
    assert np.abs(encoded.embed(TEXTS) - model.embed(TEXTS)).max() < 1e-6
    found = encoded.predictions("sentiment", "single", [TEXTS])
    assert np.abs(found - model.predictions("sentiment", TEXTS)).max() < 1e-6
    sides = [list(side) for side in zip(*PAIRS, strict=True)]
    for mode in ("cross", "bi"):
        found = encoded.predictions("paraphrase", mode, sides)
        assert np.abs(found - model.predictions("paraphrase", PAIRS, mode)).max() < 1e-6


def test_a_report_says_what_was_too_long(model: Model) -> None:
    model.embed(TEXTS)
    evaluation = describe(model, {}, data="files", seconds=1.0)
    sentence = "3 of 5 texts were longer than 32 tokens and were read in windows."
    assert evaluation.notes == [sentence]
    assert evaluation.to_json()["long"] == [sentence]
    report = Report([evaluation])
    assert f"- Long texts: {sentence}" in report.to_markdown()
    assert sentence in report.to_html()


def test_a_resumed_file_counts_all_of_its_texts(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staged, "PART", 2)
    file = tmp_path / "texts.txt"
    file.write_text(f"{SHORT}\n{LONG}\n{SHORT}\n{OTHER}\n{LONG}", "utf-8")
    out, first = str(tmp_path / "vectors.npy"), load(folder)
    monkeypatch.setattr(staged, "_is_whole", lambda path: False)
    embedded: list[int] = []

    def stop(texts: Any, **more: Any) -> Any:
        embedded.append(len(texts))
        if len(embedded) == 2:
            raise KeyboardInterrupt
        return Model.embed(first, texts, **more)

    monkeypatch.setattr(first, "embed", stop)
    with pytest.raises(KeyboardInterrupt):
        embed_file(str(file), out, model=first)
    monkeypatch.undo()
    monkeypatch.setattr(staged, "PART", 2)
    again = load(folder)
    embed_file(str(file), out, model=again)
    assert again.describe_long() == [
        "3 of 5 texts were longer than 32 tokens and were read in windows."
    ]
    assert np.abs(np.load(out) - again.embed([SHORT, LONG, SHORT, OTHER, LONG])).max() < 1e-6


def test_an_index_remembers_how_its_texts_were_read(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("lance")
    index = tercet.Index.build(tmp_path / "texts.index", [SHORT, LONG, OTHER], load(folder))
    assert index.long == "windows"
    opened = tercet.Index.open(tmp_path / "texts.index")
    assert opened.search(LONG, top=1)[0][0].score > 0.999
    opened.model = load(folder, long="truncate")
    with pytest.raises(TercetError, match="load it with long='windows'"):
        opened.add(["a new text"], id_column=None)


def test_a_table_of_whole_texts_is_cut_in_training_and_read_in_windows(model: Model) -> None:
    count = np.arange(3)
    examples = Examples(
        texts=([SHORT, LONG, OTHER],), labels=count, lines=count, sources=0 * count,
        files=(Path("rows.csv"),), skipped=[],
    )  # fmt: skip
    reading = {"template": model.tokenizer.template, "max_tokens": 32}
    table = build_table(examples, model.tokenizer, limit=32, long="windows")
    cut = build_table(examples, model.tokenizer, limit=32)
    whole, first = (each.tokens(count, mode="single", **reading) for each in (table, cut))
    assert (whole.ids == first.ids).all()
    assert whole.truncated == 2
    assert (
        np.abs(
            unit(model.engine.vectors(table.columns[0])) - model.embed([SHORT, LONG, OTHER])
        ).max()
        < 1e-6
    )
    assert table.digest() != cut.digest()


def test_a_saved_model_keeps_its_choice_and_says_what_others_do(
    folder: Path, model: Model, tmp_path: Path
) -> None:
    assert model.info.long == "windows"
    card = (folder / "README.md").read_text("utf-8")
    assert "read in overlapping windows" in card
    assert "sentence-transformers ignores the rest" in card
    changed = load(folder, long="truncate")
    changed.save(tmp_path / "cut")
    assert load(tmp_path / "cut").info.long == "truncate"
    assert "Text beyond 32 tokens is ignored" in (tmp_path / "cut" / "README.md").read_text("utf-8")


def test_pieces_keep_their_ends(model: Model) -> None:
    pieces = model.pieces([SHORT, LONG])
    assert pieces.ends is not None
    other = replace(pieces, ends=None)
    joined = type(pieces).concat([pieces, other])
    assert joined.ends is not None
    assert joined.ends.sum() == pieces.ends.sum()
    assert joined.take(np.array([1])).ends is not None
    # The same pieces with other ends are other texts.
    assert len(joined.distinct()[0]) == 3
