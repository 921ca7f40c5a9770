from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tercet import evaluate
from tercet.errors import TercetError
from tercet.folders.model_card import ModelInfo
from tercet.model import Model
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
TEXTS = ["a dull film", "fun", "old people sing", "x"] * 3
GRADES = [row % 5 for row in range(12)]


@pytest.fixture(scope="module")
def model(tiny_encoder: Path) -> Model:
    torch.manual_seed(0)
    network = Network(load_encoder(tiny_encoder), pooling="mean", tasks=TASKS)
    info = ModelInfo(encoder="tiny", pooling="mean", max_tokens=64, tasks=TASKS)
    return Model(network, Tokenizer.load(tiny_encoder), info)


def test_a_folder_is_scored_as_by_the_command(
    model: Model, sample_data: Path, tmp_path: Path
) -> None:
    found = evaluate(model, sample_data, suites=["tasks"], rows=20)
    lines = repr(found).splitlines()
    assert lines[0] == f"Evaluation of tiny on {sample_data.name}"
    accuracy = found.to_json()["suites"]["tasks"]["tasks"]["sentiment"]["modes"]["single"]
    value = accuracy["metrics"]["accuracy"]["value"]
    assert lines[1].startswith(f"  sentiment: accuracy, mode single {value:.3f} (95 %: ")
    assert lines[2].startswith("  similarity: pearson, mode bi ")
    page = found.report(tmp_path / "report.html")
    assert "Mistakes</h2>" in page.read_text("utf-8")


def test_tables_in_memory_are_scored_by_task(model: Model) -> None:
    import pandas as pd
    import pyarrow as pa

    columns = {"sentence": TEXTS, "sentiment": GRADES}
    said = np.array([each.label for each in model.predict("sentiment", TEXTS)])
    for table in (
        pd.DataFrame(columns),
        pa.table(columns),
        columns,
        [{"text": text, "label": grade} for text, grade in zip(TEXTS, GRADES, strict=True)],
    ):
        found = evaluate(model, {"sentiment": table})
        assert list(found.to_json()["suites"]["tasks"]["tasks"]) == ["sentiment"]
        (headline,) = found.suites["tasks"].headlines()
        assert headline.estimate.value == pytest.approx(np.mean(said == GRADES))
        assert found.data == "tables"
    # The model itself keeps its tasks and data.
    assert model.tasks["sentiment"].data.layout == "cs224n-sst"
    assert list(model.tasks) == ["sentiment", "similarity"]


def test_one_file_for_a_model_with_one_task(model: Model, tmp_path: Path) -> None:
    file = tmp_path / "test.csv"
    rows = [f"{text},{grade}" for text, grade in zip(TEXTS, GRADES, strict=True)]
    file.write_text("\n".join(["text,label", *rows]), "utf-8")
    alone = model.with_tasks({"sentiment": model.tasks["sentiment"]})
    by_name = evaluate(model, {"sentiment": str(file)})
    assert evaluate(alone, file).suites["tasks"].values == by_name.suites["tasks"].values
    with pytest.raises(TercetError, match="which task of the model: it has sentiment, similarity"):
        evaluate(model, file)


def test_columns_of_files_and_tables_are_selected(model: Model, tmp_path: Path) -> None:
    rows = {"title": TEXTS[::-1], "body": TEXTS, "grade": GRADES, "other": [0] * 12}
    known = evaluate(model, {"sentiment": {"sentence": TEXTS, "sentiment": GRADES}})
    for text in ("body", ["body"]):
        found = evaluate(model, {"sentiment": rows}, text=text, label="grade")
        assert found.suites["tasks"].values == known.suites["tasks"].values
    alone = model.with_tasks({"sentiment": model.tasks["sentiment"]})
    file = tmp_path / "test.csv"
    lines = [
        f"{n},{text},{grade}" for n, (text, grade) in enumerate(zip(TEXTS, GRADES, strict=True))
    ]
    file.write_text("\n".join(["key,body,grade", *lines]), "utf-8")
    with pytest.raises(TercetError, match="select them with `text`"):
        evaluate(alone, file)
    found = evaluate(alone, file, text="body", label="grade")
    assert found.suites["tasks"].values == known.suites["tasks"].values


def test_mistakes_are_one_sentence(model: Model, sample_data: Path, tmp_path: Path) -> None:
    import pandas as pd

    for data, options, message in [
        (None, {}, "Give `data`"),
        (pd.DataFrame({"text": TEXTS}), {}, "Give `data`"),
        ({"mood": []}, {}, "no head for the task `mood`"),
        ({"sentiment": {"text": TEXTS, "x": TEXTS}}, {}, "is the label"),
        ({"sentiment": TEXTS}, {}, "^Table `sentiment`: Expected a table"),
        ({"sentiment": {"text": [], "label": []}}, {}, "^Table `sentiment`: contains no rows"),
        (tmp_path / "none.csv", {}, "it has sentiment, similarity"),
        ({"sentiment": {"text": TEXTS, "label": GRADES}}, {"suites": ["sts"]}, "`tasks` only"),
        (sample_data, {"suites": ["stss"]}, "stss"),
        (sample_data, {"label": "grade"}, "`text` and `label` are columns of labelled files"),
    ]:
        with pytest.raises(TercetError, match=message):
            evaluate(model, data, **options)


RUN = """
    name = "mine"
    summary = "one task"
    [encoder]
    name = "tiny"
    [tasks.sentiment]
    data = { layout = "cs224n-sst" }
    single = { head = { kind = "mlp" }, objective = { kind = "cross-entropy" } }
    [[stages]]
    name = "all"
    tasks = ["sentiment"]
    steps = 1
"""


def test_a_run_says_nothing_about_other_rows(
    model: Model, sample_data: Path, tmp_path: Path
) -> None:
    """Its simple baselines and warnings are about its own dev rows; that time was short is not."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "recipe.toml").write_text(RUN, "utf-8")
    (run / "metrics.jsonl").write_text("", "utf-8")
    scores = {"metric": "accuracy", "majority": 0.0, "linear": 1.0, "rows": 9, "method": "dev"}
    (run / "baselines.json").write_text(json.dumps({"tasks": {"sentiment": scores}}), "utf-8")
    summary = {"warnings": ["Too short.", "sentiment: never predicts 4."], "shortage": "Too short."}
    (run / "summary.json").write_text(json.dumps(summary), "utf-8")
    own = replace(evaluate(model, sample_data, rows=40), run=run)
    rows = {"sentiment": {"sentence": TEXTS, "sentiment": GRADES}}
    other = replace(evaluate(model, rows), run=run)
    of_own = own.report(tmp_path / "own.html").read_text("utf-8")
    of_other = other.report(tmp_path / "other.html").read_text("utf-8")
    for sentence in ("a linear model on the untouched encoder (1.000)", "never predicts 4."):
        assert sentence in of_own
        assert sentence not in of_other
    assert "Too short." in of_own
    assert "Too short." in of_other
