from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tercet.cli.app import main
from tercet.folders.model_card import ModelInfo
from tercet.model import Model, load
from tercet.network.network import Network
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
        output = capsys.readouterr()
        return end.value.code, output.out, output.err

    return run


def test_a_pipe_gets_a_plain_table_and_the_file_the_same_figures(
    evaluate, folder: Path, sample_data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "figures.json"
    code, out, talk = evaluate(folder, "--data", sample_data, "--json", file, "--rows", 30)
    assert code == 0
    assert f"Wrote {file}." in talk
    lines = [line.split("\t") for line in out.splitlines()]
    assert lines[0] == ["# Tasks: Every metric of every mode; * marks the main metric of a task"]
    assert lines[1] == ["Task", "Metric", "Value", "95 % interval", "Mode", "Rows"]
    metrics = ["accuracy*", "macro-f1", "pearson*", "spearman", "mean", "mean-shifted"]
    assert [line[1] for line in lines[2:8]] == metrics
    written = json.loads(file.read_text("utf-8"))
    assert (written["schema"], list(written["suites"]), written["missing"]) == (3, ["tasks"], [])
    assert written["model"]["encoder"] == "tiny"
    assert written["data"] == sample_data.name
    assert set(written["versions"]) >= {"tercet", "torch"}
    tasks = written["suites"]["tasks"]
    sentiment = tasks["tasks"]["sentiment"]
    assert (sentiment["rows"], sentiment["skipped"]) == (30, [])
    single = sentiment["modes"]["single"]
    accuracy = single["metrics"]["accuracy"]
    assert np.shape(single["predictions"]) == (30, 5)
    said = np.argmax(single["predictions"], axis=1)
    assert np.mean(said == single["labels"]) == pytest.approx(accuracy["value"])
    assert lines[2][1:3] == ["accuracy*", f"{accuracy['value']:.4f}"]
    assert lines[2][3] == " to ".join(f"{bound:.4f}" for bound in accuracy["interval"])
    assert lines[2][4:] == ["single", "30"]
    assert lines[6][2] == f"{tasks['overall']['mean']:.4f}"
    ece = single["calibration"]["ece"]
    assert f"sentiment\tsingle\t{ece:.4f}\t" in out
    assert {path.name for path in tmp_path.iterdir()} == {"figures.json"}


def test_data_may_come_from_the_environment(evaluate, folder, sample_data, monkeypatch) -> None:
    monkeypatch.setenv("TERCET_DATA", str(sample_data))
    code, out, _ = evaluate(folder, "--rows", 5)
    assert code == 0
    assert re.search(r"sentiment\taccuracy\*\t.*\tsingle\t5\n", out)


def test_mistakes_are_one_sentence_and_exit_code_2(
    evaluate, folder: Path, sample_data: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("tercet.folders.finding.SHIPPED_FOLDER", tmp_path / "absent")
    for arguments, result in [
        ([folder], "--data"),
        ([folder, "--data", tmp_path / "none"], "is not a folder"),
        ([folder, "--data", sample_data, "--suite", "stss"], "--suite"),
        ([folder, "--data", sample_data, "--rows", "0"], "--rows"),
        ([folder, "--data", sample_data, "--json", tmp_path / "no" / "f.json"], "does not exist"),
        ([tiny_encoder, "--data", sample_data], "can only embed"),
        (["--data", sample_data], "give a model folder"),
    ]:
        code, out, talk = evaluate(*arguments)
        assert (code, out) == (2, "")
        assert result in talk
        assert talk.count("\n") == 1


def test_missing_files_are_named_and_the_rest_is_measured(
    evaluate, folder: Path, sample_data: Path, tmp_path: Path
) -> None:
    partial = tmp_path / "partial"
    partial.mkdir()
    (partial / "sts-dev.csv").write_bytes((sample_data / "sts-dev.csv").read_bytes())
    code, out, talk = evaluate(folder, "--data", partial, "--rows", 5)
    assert code == 3
    assert "tasks: sentiment was not measured: ids-sst-dev.csv is missing." in talk
    assert re.search(r"similarity\tpearson\*\t.*\tbi\t5\n", out)
    assert "overall\tmean\tundefined" in out


def test_a_report_and_markdown_are_written_beside_the_figures(
    evaluate, folder: Path, sample_data: Path, tmp_path: Path
) -> None:
    page, text = tmp_path / "report.html", tmp_path / "report.md"
    options = ["--data", sample_data, "--rows", 20, "--report", page, "--markdown", text]
    code, _, talk = evaluate(folder, *options)
    assert code == 0
    assert [f"Wrote {file}." in talk for file in (page, text)] == [True, True]
    assert "Mistakes</h2>" in page.read_text("utf-8")
    assert text.read_text("utf-8").startswith("# Evaluation of ")


def test_models_are_set_side_by_side(
    evaluate, folder: Path, sample_data: Path, tmp_path: Path
) -> None:
    page, figures = tmp_path / "report.html", tmp_path / "figures.json"
    options = ["--data", sample_data, "--rows", 20, "--report", page, "--json", figures]
    code, out, _ = evaluate(folder, folder, *options)
    assert code == 0
    lines = [line.split("\t") for line in out.splitlines()]
    verdicts = [line[-1] for line in lines if len(line) == 7]
    assert verdicts[0] == "Verdict"
    assert set(verdicts[1:]) == {"no clear difference"}
    written = json.loads(figures.read_text("utf-8"))
    assert [one["model"]["encoder"] for one in written["models"]] == ["tiny", "tiny"]
    assert {one["differences"][0]["p"] for one in written["comparison"]["contests"]} == {1.0}
    assert "Comparison of" in page.read_text("utf-8")


def test_mistakes_are_written_as_csv(
    evaluate, folder: Path, sample_data: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "sts-dev.csv").write_bytes((sample_data / "sts-dev.csv").read_bytes())
    lines = (sample_data / "ids-sst-dev.csv").read_text("utf-8").splitlines()[:21]
    cells = [line.split("\t") for line in lines]
    place = cells[0].index("sentence")
    for row in cells[1:]:
        row[place] = f"=2+2 {row[place]}"
    text = "\n".join("\t".join(row) for row in cells)
    (data / "ids-sst-dev.csv").write_text(text + "\n", "utf-8")
    file = tmp_path / "mistakes.csv"
    code, _, talk = evaluate(folder, "--data", data, "--mistakes", file)
    assert code == 0
    with file.open(encoding="utf-8", newline="") as opened:
        rows = [row for row in csv.DictReader(opened) if row["task"] == "sentiment"]
    ids = {row[cells[0].index("id")]: number for number, row in enumerate(cells, 1)}
    assert rows
    for row in rows:
        assert (row["file"], row["line"]) == ("ids-sst-dev.csv", str(ids[row["id"]]))
        assert row["text"].startswith("'=2+2 ")
        assert row["label"] != row["predicted"]
        assert 0.2 <= float(row["probability"]) <= 1.0
    assert f"{file}: {len(rows)} cells begin like a formula" in talk
    code, _, talk = evaluate(folder, "--data", data, "--suite", "geometry", "--mistakes", file)
    assert (code, "--suite tasks" in talk) == (2, True)


def test_a_bad_model_is_warned_of(evaluate, folder: Path, sample_data: Path) -> None:
    code, out, talk = evaluate(folder, "--data", sample_data)
    assert code == 0
    assert "Warning: sentiment: " in talk
    assert "Warning" not in out


def test_a_comparison_begins_with_a_verdict(evaluate, folder: Path, sample_data: Path) -> None:
    code, _, talk = evaluate(folder, folder, "--data", sample_data, "--rows", 20)
    assert code == 0
    assert "no difference beyond chance" in talk


LABELLED = "key,body,grade\n" + "".join(
    f"{row},{text},{row % 5}\n" for row, text in enumerate(["a dull film", "fun", "old", "x y"] * 5)
)


def test_a_labelled_file_is_scored(evaluate, folder: Path, tmp_path: Path) -> None:
    file, page, json_file = tmp_path / "t.csv", tmp_path / "r.html", tmp_path / "f.json"
    file.write_text(LABELLED, "utf-8")
    columns = ["--task", "sentiment", "--text", "body", "--label", "grade"]
    code, out, _ = evaluate(folder, "--file", file, *columns, "--report", page, "--json", json_file)
    assert code == 0
    assert re.search(r"sentiment\taccuracy\*\t.*\tsingle\t20\n", out)
    assert "similarity" not in out
    written = json.loads(json_file.read_text("utf-8"))
    task = written["suites"]["tasks"]["tasks"]["sentiment"]
    assert (task["files"], task["rows"], written["missing"]) == (["t.csv"], 20, [])
    assert task["modes"]["single"]["labels"] == [row % 5 for row in range(20)]
    texts = [line.split(",")[1] for line in LABELLED.splitlines()[1:]]
    said = [each.label for each in load(folder).predict("sentiment", texts)]
    assert np.argmax(task["modes"]["single"]["predictions"], axis=1).tolist() == said
    assert "Mistakes</h2>" in page.read_text("utf-8")


def test_columns_of_a_labelled_file_are_found(evaluate, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(LABELLED.replace("body", "text").replace("grade", "label"), "utf-8")
    assert evaluate(folder, "--file", file, "--task", "sentiment")[0] == 0
    # The names of the task's own data come first.
    own = LABELLED.replace("body", "sentence").replace("grade", "sentiment")
    file.write_text(own.replace("key", "label"), "utf-8")
    code, out, _ = evaluate(folder, "--file", file, "--task", "sentiment")
    assert code == 0
    assert "\tsingle\t20\n" in out


def test_mistakes_about_a_labelled_file(evaluate, folder: Path, sample_data, tmp_path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(LABELLED, "utf-8")
    for arguments, result in [
        (["--file", file], "--task must say which task of the model: it has sentiment, similarity"),
        (["--file", file, "--task", "mood"], "no head for the task `mood`"),
        (
            ["--file", file, "--task", "sentiment"],
            "which columns are texts; select them with --text, by name or number: `key`, `body`",
        ),
        (["--file", file, "--task", "sentiment", "--text", "body"], "select it with --label"),
        (["--file", file, "--task", "similarity", "--text", "body"], "select them with --text"),
        (["--file", tmp_path / "no.csv", "--task", "sentiment"], "no.csv: no such file"),
        (["--file", file, "--task", "sentiment", "--mistakes", file], "is the file that is read"),
        (["--file", file, "--task", "sentiment", "--json", file], "is the file that is read"),
        (["--file", file, "--suite", "all"], "--file goes with the suite `tasks` only"),
        (["--data", sample_data, "--label", "x"], "--label needs --file"),
        ([], "here or in TERCET_DATA; or with --file a labelled file."),
        (
            ["--file", file, "--task", "sentiment", "--text", "body", "--label", "key"],
            "t.csv line 7: column `key` is '5', expected",
        ),
    ]:
        code, out, talk = evaluate(folder, *arguments)
        assert (code, out) == (2, "")
        assert result in talk
        assert talk.count("\n") == 1


def test_training_rows_can_be_scored(evaluate, folder, sample_data, tmp_path) -> None:
    file = tmp_path / "train.json"
    options = ["--data", sample_data, "--split", "train"]
    code, _, _ = evaluate(folder, *options, "--json", file)
    assert code == 0
    result = json.loads(file.read_text())["suites"]["tasks"]
    assert result["split"] == "train"
    assert result["tasks"]["sentiment"]["files"] == ["ids-sst-train.csv"]
    lines = (sample_data / "ids-sst-train.csv").read_text("utf-8").splitlines()
    assert result["tasks"]["sentiment"]["rows"] == len(lines) - 1
    code, _, err = evaluate(folder, *options, "--suite", "all")
    assert code == 2
    assert "--split is train, which only the suite `tasks` measures." in err


def test_warnings_of_a_run_are_not_about_another_file(
    evaluate, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tercet.report.report import Report

    given: list[bool] = []
    plain = Report.__init__

    def noted(self: Any, evaluations: Any, **options: Any) -> None:
        given.append(options["other_rows"])
        plain(self, evaluations, **options)

    monkeypatch.setattr(Report, "__init__", noted)
    file = tmp_path / "t.csv"
    file.write_text(LABELLED.replace("body", "text").replace("grade", "label"), "utf-8")
    assert evaluate(folder, "--file", file, "--task", "sentiment")[0] == 0
    assert given == [True]
