from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from tercet.cli.app import main
from tercet.model import Model
from tercet.model_card import ModelInfo
from tercet.network import Network
from tercet.nn.folder import load_encoder
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer

TASKS = {
    name: TaskSpec.model_validate(block)
    for name, block in {
        "sentiment": {
            "data": {"layout": "cs224n-sst"},
            "labels": ["0", "1", "2", "3", "4"],
            "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
        },
        "similarity": {
            "data": {"layout": "cs224n-sts"},
            "range": [0, 5],
            "bi": {
                "head": {"kind": "cosine"},
                "objective": {"kind": "mean-squared-error", "targets": [0, 1]},
            },
        },
    }.items()
}


@pytest.fixture(scope="module")
def folder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    network = Network(load_encoder(tiny_encoder), pooling="mean", tasks=TASKS)
    info = ModelInfo(encoder="tiny", pooling="mean", max_tokens=64, tasks=TASKS)
    folder = tmp_path_factory.mktemp("saved") / "model"
    Model(network, Tokenizer.load(tiny_encoder), info).save(folder)
    return folder


@pytest.fixture
def evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    """Exit code, stdout and stderr of a call."""
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TERCET_DATA", raising=False)

    def run(*arguments: object) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["tercet", "evaluate", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        told = capsys.readouterr()
        return end.value.code, told.out, told.err

    return run


def test_a_pipe_gets_a_plain_table_and_the_file_the_same_figures(
    evaluate, folder: Path, sample_data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "figures.json"
    code, out, talk = evaluate(folder, "--data", sample_data, "--json", file, "--rows", 30)
    assert code == 0
    assert f"Wrote {file}." in talk
    lines = [line.split("\t") for line in out.splitlines()]
    assert lines[0] == ["task", "gear", "rows", "metric", "figure", "95 % interval"]
    metrics = ["accuracy*", "macro-f1", "pearson*", "spearman", "mean", "mean-shifted"]
    assert [line[3] for line in lines[1:]] == metrics
    written = json.loads(file.read_text("utf-8"))
    assert (written["schema"], written["suite"], written["encoder"]) == (1, "tasks", "tiny")
    assert set(written["versions"]) >= {"tercet", "torch"}
    sentiment = written["tasks"]["sentiment"]
    assert (sentiment["rows"], sentiment["skipped"]) == (30, [])
    accuracy = sentiment["gears"]["single"]["accuracy"]
    assert lines[1][2:5] == ["30", "accuracy*", f"{accuracy['value']:.4f}"]
    assert lines[1][5] == " to ".join(f"{bound:.4f}" for bound in accuracy["interval"])
    assert lines[5][4] == f"{written['overall']['mean']:.4f}"
    assert {path.name for path in tmp_path.iterdir()} == {"figures.json", "cache"}


def test_data_may_come_from_the_environment(evaluate, folder, sample_data, monkeypatch) -> None:
    monkeypatch.setenv("TERCET_DATA", str(sample_data))
    code, out, _ = evaluate(folder, "--rows", 5)
    assert code == 0
    assert "sentiment\tsingle\t5\taccuracy*" in out


def test_mistakes_are_one_sentence_and_exit_code_2(
    evaluate, folder: Path, sample_data: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments, told in [
        ([folder], "--data"),
        ([folder, "--data", tmp_path / "none"], "is no folder"),
        ([folder, "--data", empty], "ids-sst-dev.csv"),
        ([folder, "--data", sample_data, "--suite", "sts"], "--suite"),
        ([folder, "--data", sample_data, "--rows", "0"], "--rows"),
        ([folder, "--data", sample_data, "--json", tmp_path / "no" / "f.json"], "does not exist"),
        ([tiny_encoder, "--data", sample_data], "can only embed"),
        (["--data", sample_data], "give a model folder"),
    ]:
        code, out, talk = evaluate(*arguments)
        assert (code, out) == (2, "")
        assert told in talk
        assert talk.count("\n") == 1
