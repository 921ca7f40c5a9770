"""A model of several depths and widths in the commands, an index, a server and an evaluation."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import tercet
from tercet.cli.app import main
from tercet.errors import TercetError
from tercet.evaluation.scaling import calibrate
from tercet.folders.model_card import DepthInfo, ModelInfo
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.specs import Scaling, TaskSpec
from tercet.text.tokenizer import Tokenizer

TEXTS = ["a quiet film", "how do i read a book ?", "a man is playing the guitar", "dull"]
TASKS = {
    "sentiment": {
        "data": {"layout": "cs224n-sst"},
        "labels": ["negative", "somewhat negative", "neutral", "somewhat positive", "positive"],
        "single": {
            "head": {"kind": "mlp", "hidden": [16]},
            "objective": {"kind": "cross-entropy"},
        },
    },
    "similarity": {
        "data": {"layout": "cs224n-sts"},
        "range": [0, 5],
        "bi": {"head": {"kind": "cosine"}, "objective": {"kind": "mean-squared-error"}},
        "cross": {"head": {"kind": "mlp"}, "objective": {"kind": "mean-squared-error"}},
    },
}


@pytest.fixture(scope="module")
def folder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two layers that also answers after one, and whose vectors can be cut."""
    scalings: Any = {"sentiment": {"single": Scaling(temperature=2.0)}}
    info = ModelInfo(
        encoder="tiny",
        pooling="mean",
        max_tokens=64,
        tasks={name: TaskSpec.model_validate(block) for name, block in TASKS.items()},
        widths=[8, 16],
        depths={1: DepthInfo(hidden=[4], scalings=scalings)},
    )
    torch.manual_seed(0)
    network = Network(
        load_encoder(tiny_encoder), pooling="mean", tasks=info.tasks, depths=info.tasks_by_depth()
    )
    for parameter in [*network.heads.parameters(), *network.depths.parameters()]:
        torch.nn.init.normal_(parameter, std=0.5)
    folder = tmp_path_factory.mktemp("deep") / "model"
    Model(network, Tokenizer.load(tiny_encoder), info).save(folder)
    return folder


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    file = tmp_path / "texts.csv"
    file.write_text("id,text\n" + "".join(f"t{n},{text}\n" for n, text in enumerate(TEXTS)))
    return file


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[object, str, str]]:
    """Exit code, stdout and stderr of a command."""

    def call(*arguments: object) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["tercet", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        result = capsys.readouterr()
        return end.value.code, result.out, result.err

    return call


def test_a_command_embeds_at_a_depth_and_a_width(run, folder, texts, tmp_path) -> None:
    out = tmp_path / "vectors.npy"
    options = ["--model", folder, "--layers", 1, "--width", 8]
    assert run("embed", texts, "--out", out, *options)[0] == 0
    expected = tercet.load(folder, layers=1).embed(TEXTS, width=8)
    np.testing.assert_allclose(np.load(out), expected, atol=1e-6)
    code, _, message = run("embed", texts, "--out", out, "--model", folder, "--layers", 3)
    assert code == 2
    assert "it answers after 1 and 2." in message
    code, _, message = run("embed", texts, "--out", out, "--model", folder, "--width", 9)
    assert code == 2
    assert "its widths are 8, 16, 32" in message


def test_a_command_predicts_with_the_calibration_of_a_depth(run, folder) -> None:
    options = ["--model", folder, "--layers", 1]
    code, found, _ = run("predict", "sentiment", "--text", TEXTS[0], *options)
    assert code == 0
    model = tercet.load(folder, layers=1)
    (expected,) = model.predictions("sentiment", TEXTS[:1])
    given = list(json.loads(found)["probabilities"].values())
    np.testing.assert_allclose(given, expected, atol=1e-3)
    raw = model.engine.outputs("sentiment", "single", [model.pieces(TEXTS[:1])])
    scaled = np.exp(raw[0] / 2.0)
    np.testing.assert_allclose(expected, scaled / scaled.sum(), rtol=1e-5)


def test_an_index_remembers_its_depth_and_its_width(run, folder, texts, tmp_path) -> None:
    pytest.importorskip("lance")
    out = tmp_path / "some.index"
    options = ["--model", folder, "--layers", 1, "--width", 8]
    assert run("index", texts, "--out", out, *options)[0] == 0
    index = tercet.Index.open(out)
    assert (index.layers, index.width) == (1, 8)
    assert index.search(TEXTS[2], top=1)[0][0].text == TEXTS[2]
    assert index.model.depths == [1]
    with pytest.raises(TercetError, match="this is another"):
        tercet.Index.open(out, tercet.load(folder))
    more = tmp_path / "more.csv"
    more.write_text("id,text\nx,a long day\n")
    code, _, message = run("index", more, "--out", out, "--add", "--layers", 2)
    assert code == 2
    assert "--layers: an index has its own" in message
    assert run("index", more, "--out", out, "--add")[0] == 0
    code, found, _ = run("search", out, "a long day", "--top", 1, "--model", folder)
    assert code == 0
    assert json.loads(found)["id"] == "x"


@pytest.mark.parametrize("form", ["sentence-transformers", "onnx-int8"])
def test_a_depth_is_exported_alone(run, folder, tmp_path, form) -> None:
    pytest.importorskip("onnxruntime")
    out = tmp_path / "out"
    assert run("export", folder, "--layers", 1, "--format", form, "--out", out)[0] == 0
    exported, model = tercet.load(out), tercet.load(folder, layers=1)
    assert exported.info.depths is None
    assert exported.widths == [8, 16, 32]
    cosines = (exported.embed(TEXTS) * model.embed(TEXTS)).sum(axis=1)
    assert cosines.min() > (0.99 if form == "onnx-int8" else 0.99999)


def test_a_server_has_the_layers_of_its_setting(folder: Path) -> None:
    pytest.importorskip("fastapi")
    from tercet.serve.loading import load_model
    from tercet.serve.settings import Settings

    settings = Settings(
        model=str(folder), layers=1, index=None, keys=None, listed_keys=None, origins=[],
        allowed_hosts=[], max_inputs=64, max_tokens=None, max_body=200_000, long_inputs=None,
        queue_inputs=256, queue_tokens=8192, batch_tokens=None, max_wait=60.0, timeout=120.0,
    )  # fmt: skip
    assert load_model(settings).model.depths == [1]


def test_evaluation_draws_accuracy_against_speed_of_all_depths(
    run, folder, sample_data, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("tercet.evaluation.suites.depths.SENTENCES", 64)
    document, report = tmp_path / "metrics.json", tmp_path / "report.html"
    options = ["--data", sample_data, "--rows", 20, "--json", document, "--report", report]
    code, shown, _ = run("evaluate", folder, "--suite", "depths", *options)
    assert code == 0
    assert "2 layers" in shown
    found = json.loads(document.read_text("utf-8"))["suites"]["depths"]
    assert found["depths"].keys() == {"1", "2"}
    for depth in found["depths"].values():
        assert depth["tasks"].keys() == {"sentiment", "similarity"}
        assert depth["tasks"]["similarity"].keys() == {"cross", "bi"}
        assert all(rate > 0 for rate in depth["sentences_per_second"].values())
    alone = tercet.load(folder, layers=1)
    expected = tercet.evaluate(alone, sample_data, rows=20, progress=False).suites["tasks"]
    metric = expected.tasks["sentiment"].best.metrics["accuracy"].value
    assert found["depths"]["1"]["tasks"]["sentiment"]["single"]["accuracy"]["value"] == metric
    page = report.read_text("utf-8")
    device = tercet.load(folder).engine.machine()["device"]
    assert f"Accuracy against speed, torch, {device}" in page
    assert "1 layers" in page
    code, _, message = run("evaluate", folder, "--layers", 1, "--suite", "depths", *options)
    assert code == 2
    assert "cannot measure a model with no lesser depths" in message


def test_calibration_fits_every_depth(folder: Path, sample_data: Path) -> None:
    info = calibrate(tercet.load(folder), sample_data)
    assert info.depths is not None
    for known in (info, info.depths[1]):
        assert known.scalings is not None
        assert known.scalings["sentiment"]["single"].temperature not in (1.0, 2.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depths": {"2": {}}}, "`depths` has 2, but the encoder has 2 layers"),
        ({"depths": {"1": {"hidden": [4000]}}}, "more than heads.safetensors holds"),
        ({"depths": {"1": {}}}, "requires"),
        ({"depths": None}, "belongs to no head"),
    ],
)
def test_a_damaged_folder_is_named(folder, tmp_path, change, message) -> None:
    copied = tmp_path / "copy"
    shutil.copytree(folder, copied)
    path = copied / "tercet.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change), "utf-8")
    with pytest.raises(TercetError, match=message):
        tercet.load(copied)


def test_tensors_of_a_depth_that_are_missing_are_named(folder: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copy"
    shutil.copytree(folder, copied)
    heads = load_file(copied / "heads.safetensors")
    own = [name for name in heads if name.startswith("depths/1/")]
    save_file({k: v for k, v in heads.items() if k != own[0]}, copied / "heads.safetensors")
    for layers in (None, 1):
        with pytest.raises(TercetError, match="is missing"):
            tercet.load(copied, layers=layers)
    assert tercet.load(copied, layers=2).embed(TEXTS).shape == (4, 32)
