"""Rows with several labels, pairs of three classes, and grades from 1 to 10: from files to answers
everywhere."""

from __future__ import annotations

import csv
import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score

import tercet as package
from tercet.errors import TercetError
from tercet.evaluation.scaling import calibrate
from tercet.model import LabelSet, Model, Prediction
from tercet.recipe import Recipe
from tercet.training.listener import Silent
from tercet.training.run import train_recipe

TAGS = {"cinema": "film", "music": "guitar", "weather": "rain"}
FILLERS = ["the", "a", "how", "is", "it", "long", "good", "of", "dull", "plot"]


def write_rows(path: Path, names: list[str], rows: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *rows])


def write_tags(folder: Path) -> None:
    """A text has a tag where it has the tag's word; every text has one tag or more."""
    draw = random.Random(3)
    sets = [s for size in (1, 2, 3) for s in itertools.combinations(TAGS, size)]
    for split, count in (("train", 240), ("dev", 60)):
        rows = []
        for _ in range(count):
            tags = draw.choice(sets)
            words = draw.sample(FILLERS, 3) + [TAGS[tag] for tag in tags]
            draw.shuffle(words)
            rows.append([" ".join(words), "; ".join(tags)])
        write_rows(folder / f"tags-{split}.csv", ["text", "tags"], rows)


def write_nli(folder: Path) -> None:
    """The second sentence repeats the first, negates it, or has to do with nothing in it."""
    draw = random.Random(4)
    for split, count in (("train", 240), ("dev", 60)):
        rows = []
        for number in range(count):
            first, other = draw.sample([*TAGS.values(), *FILLERS[4:]], 2)
            label = ["entailment", "neutral", "contradiction"][number % 3]
            second = {"entailment": first, "neutral": other, "contradiction": f"not {first}"}
            rows.append([f"it is {first}", f"it is {second[label]}", label])
        write_rows(folder / f"nli-{split}.csv", ["premise", "hypothesis", "label"], rows)


def write_grades(folder: Path) -> None:
    """Grades from 1 to 10: how many of three words two sentences have in common."""
    draw = random.Random(5)
    words = [*TAGS.values(), *FILLERS]
    for split, count in (("train", 240), ("dev", 60)):
        rows = []
        for number in range(count):
            common = number % 4
            drawn = draw.sample(words, 6 - common)
            second = [*drawn[:common], *drawn[3:]]
            rows.append([" ".join(drawn[:3]), " ".join(second), str(1 + 3 * common)])
        write_rows(folder / f"grades-{split}.csv", ["text1", "text2", "score"], rows)


def tree(encoder: Path) -> dict[str, Any]:
    def files(name: str) -> dict[str, str]:
        return {"train": f"{name}-train.csv", "dev": f"{name}-dev.csv"}

    three = {"kind": "cross-entropy"}
    return {
        "name": "kinds",
        "summary": "Several labels per row, three classes of pairs, and grades",
        "seed": 1,
        "encoder": {"name": str(encoder), "max_tokens": 24, "dropout": 0.0},
        "tasks": {
            "tags": {
                "data": {
                    **files("tags"),
                    "texts": "text",
                    "label": "tags",
                    "label_separator": ";",
                },
                "labels": list(TAGS),
                "multi_label": True,
                "class_weights": "balanced",
                "held_out": 0.2,
                "single": {
                    "head": {"kind": "mlp"},
                    "objective": {"kind": "binary-cross-entropy"},
                },
            },
            "nli": {
                "data": {**files("nli"), "texts": ["premise", "hypothesis"], "label": "label"},
                "labels": ["entailment", "neutral", "contradiction"],
                "cross": {"head": {"kind": "mlp"}, "objective": three},
                "bi": {
                    "head": {"kind": "features", "features": ["u", "v", "absdiff", "product"]},
                    "objective": three,
                },
            },
            "grades": {
                "data": {**files("grades"), "texts": ["text1", "text2"], "label": "score"},
                "range": [1, 10],
                "bi": {"head": {"kind": "cosine"}, "objective": {"kind": "mean-squared-error"}},
            },
        },
        "stages": [
            {
                "name": "train",
                "epochs": 8,
                "batch": 16,
                "optimiser": {"lr": 3e-3, "head_lr": 1e-2},
            }
        ],
        "checkpoint": {"every": 0},
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds")
    write_tags(folder)
    write_nli(folder)
    write_grades(folder)
    return folder


@pytest.fixture(scope="module")
def run(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_encoder: Path,
    data: Path,
    environment: dict[str, str],
) -> Path:
    """A trained run of all tasks."""
    out = tmp_path_factory.mktemp("runs") / "kinds"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERCET_CACHE", environment["TERCET_CACHE"])
        recipe = Recipe.from_tree(tree(tiny_encoder), where="kinds")
        train_recipe(recipe, data=data, out=out, device="cpu", listener=Silent())
    return out


@pytest.fixture(scope="module")
def model(run: Path) -> Model:
    return package.load(run, device="cpu")


def dev_rows(data: Path, name: str) -> list[dict[str, str]]:
    with (data / f"{name}-dev.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_several_labels_are_learnt_calibrated_and_predicted(
    run: Path, model: Model, data: Path
) -> None:
    summary = json.loads((run / "summary.json").read_text("utf-8"))
    metrics = summary["dev"]["tags"]["single"]
    assert list(metrics) == ["micro-f1", "macro-f1", "exact-match"]
    assert metrics["micro-f1"] > 0.9
    thresholds = model.info.thresholds
    assert thresholds is not None
    assert len(thresholds["tags"]["single"]) == 3
    assert model.info.scalings is not None
    assert list(model.info.scalings) == ["tags"]

    rows = dev_rows(data, "tags")
    found = model.predict("tags", [row["text"] for row in rows])
    names = list(TAGS)
    expected = np.array([[tag in row["tags"] for tag in names] for row in rows])
    predicted = np.array([[tag in row.names for tag in names] for row in found])
    assert f1_score(expected, predicted, average="micro") == pytest.approx(metrics["micro-f1"])
    for row in found:
        assert isinstance(row, LabelSet)
        assert row.names == [names[place] for place in row.labels]
        assert row.labels == [
            place
            for place, least in enumerate(thresholds["tags"]["single"])
            if row.probabilities[place] >= least
        ]


def test_thresholds_decide_which_labels_are_predicted(model: Model) -> None:
    text = "the film of a guitar is good"
    (plain,) = model.predict("tags", [text])
    for least, labels in (([0.0, 1.0, 0.0], [0, 2]), ([1.0] * 3, [])):
        info = model.info.model_copy(update={"thresholds": {"tags": {"single": least}}})
        (found,) = Model(model.network, model.tokenizer, info).predict("tags", [text])
        assert found.labels == labels
        assert found.probabilities == pytest.approx(plain.probabilities)


def test_three_classes_of_pairs_are_learnt_in_both_modes(
    run: Path, model: Model, data: Path
) -> None:
    metrics = json.loads((run / "summary.json").read_text("utf-8"))["dev"]["nli"]
    assert metrics["cross"]["accuracy"] > 0.5
    assert metrics["bi"]["accuracy"] > 0.5
    rows = dev_rows(data, "nli")
    pairs = [(row["premise"], row["hypothesis"]) for row in rows]
    for mode in ("cross", "bi"):
        found = model.predict("nli", pairs, mode)
        assert all(isinstance(each, Prediction) and len(each.probabilities) == 3 for each in found)
        right = [each.name == row["label"] for each, row in zip(found, rows, strict=True)]
        assert np.mean(right) == pytest.approx(metrics[mode]["accuracy"])


def test_grades_of_a_cosine_head_are_not_constant(run: Path, model: Model, data: Path) -> None:
    rows = dev_rows(data, "grades")
    found = np.asarray(model.predict("grades", [(row["text1"], row["text2"]) for row in rows]))
    expected = np.array([float(row["score"]) for row in rows])
    assert "targets = [" in (run / "recipe.toml").read_text("utf-8")
    assert np.corrcoef(found, expected)[0, 1] > 0.8
    means = [found[expected == grade].mean() for grade in (1, 4, 7, 10)]
    assert means == sorted(means)
    assert np.abs(found - expected).mean() < 2.0


def test_names_that_expect_one_class_refuse_several_labels(
    model: Model, tiny_encoder: Path
) -> None:
    tasks = dict.fromkeys(("sentiment", "paraphrase"), model.tasks["tags"])
    info = model.info.model_copy(update={"tasks": tasks, "thresholds": None, "scalings": None})
    renamed = Model(model.network, model.tokenizer, info)
    with pytest.raises(TercetError, match="several labels per input: use predict"):
        renamed.sentiment(["a"])
    with pytest.raises(TercetError, match="does not have two classes: use predict"):
        renamed.paraphrase([("a", "b")])


@pytest.mark.usefixtures("on_cpu")
def test_the_command_line_predicts_evaluates_and_compares(
    here: Any, run: Path, model: Model, data: Path, tmp_path: Path
) -> None:
    ended = here("predict", "tags", "--model", run, "--text", "a film of rain")
    assert ended.code == 0, ended.err
    (wanted,) = model.predict("tags", ["a film of rain"])
    assert json.loads(ended.out) == {
        "text": "a film of rain",
        "labels": wanted.labels,
        "names": wanted.names,
        "probabilities": pytest.approx(
            dict(zip(TAGS, wanted.probabilities, strict=True)), abs=1e-6
        ),
    }
    ended = here("predict", "nli", "--model", run, "--text", "it is rain", "--text", "it is film")
    assert set(json.loads(ended.out)) == {"first", "second", "label", "name", "probabilities"}

    document, report = tmp_path / "all.json", tmp_path / "all.html"
    markdown = tmp_path / "all.md"
    ended = here(
        *("evaluate", run, "--data", data, "--suite", "tasks", "--suite", "robustness"),
        *("--json", document, "--report", report, "--markdown", markdown),
    )
    assert ended.code in (0, 3), ended.err  # HANS and PAWS are not here
    assert "micro-f1*" in ended.out
    task = json.loads(document.read_text("utf-8"))["suites"]["tasks"]["tasks"]["tags"]
    answers = task["modes"]["single"]
    assert answers["thresholds"] == model.info.thresholds["tags"]["single"]
    assert np.shape(answers["labels"]) == np.shape(answers["predictions"]) == (60, 3)
    assert answers["uncut"] is None
    decided = np.array(answers["predictions"]) >= answers["thresholds"]
    expected = f1_score(answers["labels"], decided, average="macro")
    assert answers["metrics"]["macro-f1"]["value"] == pytest.approx(expected, abs=0.02)
    assert "tags, mode single: precision, recall and F1 of each" in markdown.read_text("utf-8")
    assert "All labels of a row are right" in report.read_text("utf-8")

    ended = here("evaluate", run, run, "--data", data, "--suite", "tasks")
    assert ended.code == 0, ended.err
    assert "exact-match" in ended.out


def test_a_labelled_file_with_several_labels_is_scored(
    here: Any, run: Path, model: Model, data: Path, tmp_path: Path
) -> None:
    rows = dev_rows(data, "tags")
    found = model.predict("tags", [row["text"] for row in rows])
    expected = np.array([[tag in row["tags"] for tag in TAGS] for row in rows])
    predicted = np.array([[tag in row.names for tag in TAGS] for row in found])
    wrong = int((expected != predicted).any(axis=1).sum())
    mistakes = tmp_path / "mistakes.csv"
    file = data / "tags-dev.csv"
    ended = here("evaluate", run, "--file", file, "--task", "tags", "--mistakes", mistakes)
    assert ended.code == 0, ended.err
    assert f"micro-f1*\t{f1_score(expected, predicted, average='micro'):.4f}" in ended.out
    with mistakes.open(encoding="utf-8", newline="") as opened:
        listed = list(csv.DictReader(opened))
    assert [row["file"] for row in listed] == ["tags-dev.csv"] * wrong
    frame = {"tags": {name: [row[name] for row in rows] for name in rows[0]}}
    assert "micro-f1" in repr(package.evaluate(model, frame))


@pytest.mark.parametrize(("form", "near"), [("onnx", 1e-4), ("onnx-int8", 0.1)])
def test_exported_graphs_predict_the_same_labels(
    here: Any, run: Path, model: Model, data: Path, tmp_path: Path, form: str, near: float
) -> None:
    ended = here("export", run, "--format", form, "--out", tmp_path / form)
    assert ended.code == 0, ended.err
    graphs = package.load(tmp_path / form)
    assert graphs.info.thresholds == model.info.thresholds
    texts = [row["text"] for row in dev_rows(data, "tags")]
    ours, theirs = model.predict("tags", texts), graphs.predict("tags", texts)
    probabilities = [[row.probabilities for row in rows] for rows in (ours, theirs)]
    np.testing.assert_allclose(*probabilities, atol=near)
    same = [a.labels == b.labels for a, b in zip(ours, theirs, strict=True)]
    assert np.mean(same) >= (1.0 if form == "onnx" else 0.9)


def test_the_model_card_names_labels_and_thresholds(run: Path) -> None:
    card = (run / "model" / "README.md").read_text("utf-8")
    assert "any number of cinema / music / weather" in card
    assert "Least probabilities of predicted labels of tags (single): cinema 0." in card


def test_calibrating_on_dev_chooses_no_thresholds(model: Model, data: Path) -> None:
    """Thresholds change predictions, which dev measures."""
    tags = model.tasks["tags"].model_copy(update={"held_out": 0.0})
    info = model.info.model_copy(
        update={"tasks": {**model.info.tasks, "tags": tags}, "thresholds": None}
    )
    calibrated = calibrate(Model(model.network, model.tokenizer, info), data)
    assert calibrated.thresholds is None
    assert calibrated.scalings is not None
    assert calibrated.scalings["tags"]["single"].shift == 0.0
