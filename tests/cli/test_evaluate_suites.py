from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from tercet.cli.app import main
from tercet.folders.model_card import ModelInfo
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer

PARAPHRASE = TaskSpec.model_validate(
    {
        "data": {"layout": "cs224n-quora"},
        "labels": ["different", "paraphrase"],
        "bi": {
            "head": {"kind": "features", "features": ["absdiff", "product"]},
            "objective": {"kind": "cross-entropy"},
        },
    }
)


@pytest.fixture(scope="module")
def folder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    tasks = {"paraphrase": PARAPHRASE}
    network = Network(load_encoder(tiny_encoder), pooling="mean", tasks=tasks)
    info = ModelInfo(encoder="tiny", pooling="mean", max_tokens=64, tasks=tasks)
    folder = tmp_path_factory.mktemp("run") / "model"
    Model(network, Tokenizer.load(tiny_encoder), info).save(folder)
    return folder


@pytest.fixture
def evaluate(monkeypatch: pytest.MonkeyPatch, capsys):
    """Exit code, stdout and stderr of a call."""

    def run(*arguments: object) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["tercet", "evaluate", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        output = capsys.readouterr()
        return end.value.code, output.out, output.err

    return run


def write(folder: Path, name: str, lines: list[str]) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", "utf-8")


@pytest.fixture
def data(sample_data: Path, tmp_path: Path) -> Path:
    """The dev data of the task, STS-B, one transfer task and PAWS."""
    rows = (sample_data / "quora-dev.csv").read_text("utf-8").splitlines()
    write(tmp_path, "quora-dev.csv", rows[:31])
    texts = [f"film {i} is good\tfilm {i} was {'good' if i % 2 else 'bad'}" for i in range(30)]
    graded = [f"a\tb\tc\t{i}\t{i % 6}\t{pair}" for i, pair in enumerate(texts)]
    write(tmp_path, "senteval/STS/STSBenchmark/sts-test.csv", graded)
    write(tmp_path, "senteval/CR/custrev.neg", [f"a bad film {i}" for i in range(20)])
    write(tmp_path, "senteval/CR/custrev.pos", [f"a good film {i}" for i in range(20)])
    write(tmp_path, "paws/dev.tsv", [f"{i}\t{pair}\t{i % 2}" for i, pair in enumerate(texts)])
    return tmp_path


def test_every_suite_has_its_tables_and_missing_files_are_named(evaluate, folder, data) -> None:
    code, out, talk = evaluate(folder, "--data", data, "--suite", "all")
    assert code == 3
    titles = [line[2:] for line in out.splitlines() if line.startswith("# ")]
    assert [title.partition(":")[0] for title in titles] == [
        "Tasks",
        "Tasks",
        "Semantic textual similarity",
        "Transfer",
        *["Robustness"] * 4,
        "Geometry",
    ]
    for start in (
        "paraphrase\taccuracy*\t",
        "STS-B\t",
        "Average of seven\tundefined",
        "CR\taccuracy\t",
        "PAWS\tparaphrase\tbi\t",
        "negation\tchanged\tparaphrase\tbi\t",
        "Uniformity\t-",
    ):
        assert f"\n{start}" in out
    assert "sts: SICK-R was not measured: SICK/SICK_test_annotated.txt is missing." in talk
    assert "transfer: MR was not measured: MR/rt-polarity.neg is missing." in talk
    assert "robustness: HANS was not measured: nli/eval/hans.tsv is missing." in talk


def test_suites_may_be_named_one_by_one(evaluate, folder, data) -> None:
    code, out, _ = evaluate(folder, "--data", data, "--suite", "geometry", "--suite", "tasks")
    assert code == 0
    titles = [line.partition(":")[0] for line in out.splitlines() if line.startswith("# ")]
    assert titles == ["# Tasks", "# Tasks", "# Geometry"]


def test_suites_that_need_heads_are_left_out_without(evaluate, tiny_encoder, data) -> None:
    code, out, talk = evaluate(tiny_encoder, "--data", data, "--suite", "tasks", "--suite", "sts")
    assert code == 3
    assert out.startswith("Set\tSpearman")
    assert "tasks: left out, since this model has no heads." in talk
    code, out, talk = evaluate(tiny_encoder, "--data", data, "--suite", "robustness")
    assert (code, out) == (2, "")
    assert "it can only embed" in talk
