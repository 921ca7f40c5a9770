"""`tercet.fit` on the tiny encoder: what it takes, what it leaves, and what it never does."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import random
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tercet
from tercet.errors import ArgumentError, TercetError
from tercet.fitting import by_dev, by_folds, planning
from tercet.fitting import fit as fitting
from tercet.fitting.budget import NO_TIME, TRAINING, USED, Budget
from tercet.fitting.choosing import Comparison
from tercet.fitting.result import TaskScore
from tercet.fitting.sources import Given, gather
from tercet.infer.engine import Engine
from tercet.model import Model
from tercet.progress import Progress
from tercet.recipe import Recipe
from tercet.training.listener import Silent

WEIGHTS = ("model.safetensors", "heads.safetensors")
SHORT = 0.001
"""Minutes in which nothing is tuned."""
Rows = list[dict[str, Any]]
TEAMS = {"film desk": "film plot", "music": "guitar guitar", "weather": "rain rain"}
FILLERS = ["the", "a", "how", "is", "it", "long", "good", "of", "dull"]
TAGS = {"cinema": "film", "music": "guitar", "weather": "rain"}


def team_rows(count: int = 60, *, seed: int = 1) -> Rows:
    """Three classes, told by their words."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        team = list(TEAMS)[number % 3]
        words = [*draw.sample(FILLERS, 4), *TEAMS[team].split()]
        draw.shuffle(words)
        rows.append({"text": f"{' '.join(words)} {number}", "team": team})
    return rows


def same_rows(count: int = 60) -> Rows:
    """Whether two texts are about the same word."""
    draw = random.Random(2)
    words = ["film", "guitar", "rain", "plot", "book"]
    rows = []
    for number in range(count):
        first, other = draw.sample(words, 2)
        second = first if number % 2 else other
        rows.append(
            {
                "question": f"what is {first} {number}",
                "other": f"tell me about {second} {number + 500}",
                "same": "yes" if number % 2 else "no",
            }
        )
    return rows


def grade_rows(count: int = 60) -> Rows:
    """Grades from 1 to 10: how many of three words two texts have in common."""
    draw = random.Random(3)
    words = [*FILLERS, *TAGS.values()]
    rows = []
    for number in range(count):
        common = number % 4
        drawn = draw.sample(words, 6 - common)
        second = [*drawn[:common], *drawn[3:]]
        grade = 1 + 3 * common if number % 5 else 2 + 2 * common
        rows.append({"a": " ".join(drawn[:3]), "b": " ".join(second), "grade": grade})
    return rows


def tag_rows(count: int = 60) -> Rows:
    """Any number of three tags."""
    draw = random.Random(4)
    rows = []
    for number in range(count):
        tags = [tag for tag in TAGS if draw.random() < 0.5]
        words = draw.sample(FILLERS, 3) + [TAGS[tag] for tag in tags] * 2
        draw.shuffle(words)
        rows.append({"text": f"{' '.join(words)} {number}", "tags": tags})
    return rows


class Hearing(Silent):
    """Notes what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.works: list[str] = []

    def say(self, sentence: str) -> None:
        self.said.append(sentence)

    def working(self, what: str) -> AbstractContextManager[Progress]:
        self.works.append(what)
        return super().working(what)


Fit = Callable[..., Any]


def weights(folder: Path) -> list[bytes]:
    return [(folder / "model" / file).read_bytes() for file in WEIGHTS]


def write(path: Path, rows: list[dict[str, Any]], delimiter: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def pandas_of(rows: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(rows)


def polars_of(rows: Any) -> Any:
    return pytest.importorskip("polars").DataFrame(rows)


def arrow_of(rows: Any) -> Any:
    import pyarrow as pa

    return pa.Table.from_pylist(rows)


def dataset_of(rows: Any) -> Any:
    return pytest.importorskip("datasets").Dataset.from_list(rows)


def columns_of(rows: Any) -> Any:
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.fixture(scope="module")
def several(fit: Fit) -> tuple[Any, Hearing]:
    """Four tasks of every kind on one encoder, judged by cross-validation."""
    listener = Hearing()
    result = fit(
        team=pandas_of(team_rows()),
        same=same_rows(),
        alike=columns_of(grade_rows()),
        tags=arrow_of(tag_rows()),
        listener=listener,
    )
    return result, listener


@pytest.fixture(scope="module")
def plain(fit: Fit) -> Any:
    return fit(team=team_rows(30), minutes=SHORT)


@pytest.mark.parametrize("make", [pandas_of, polars_of, arrow_of, dataset_of, columns_of])
def test_tables_of_every_kind_are_the_same(fit: Fit, plain: Any, make: Any) -> None:
    other = fit(team=make(team_rows(30)), minutes=SHORT)
    assert weights(plain.folder) == weights(other.folder)
    assert plain.scores == other.scores


def test_every_task_is_fitted_and_answers(several: tuple[Any, Hearing]) -> None:
    result, _ = several
    assert list(result.scores) == ["team", "same", "alike", "tags"]
    metrics = {name: score.metric for name, score in result.scores.items()}
    assert metrics == {
        "team": "accuracy", "same": "accuracy", "alike": "pearson", "tags": "micro-f1"
    }  # fmt: skip
    for score in result.scores.values():
        assert score.rows == 60
        assert score.interval[0] <= score.value <= score.interval[1]
    assert result.scores["alike"].majority is None
    assert result.scores["team"].majority == pytest.approx(1 / 3)
    model = result.model
    (found,) = model.predict("team", ["how good is the rain rain"])
    assert found.name in TEAMS
    (labels,) = model.predict("tags", ["the film film is long"])
    assert set(labels.names) <= set(TAGS)
    (same,) = model.predict("same", [("what is rain", "tell me about rain")])
    assert same.name in ("no", "yes")
    (grade,) = model.predict("alike", [("a film", "a film")])
    assert 1.0 <= grade <= 10.0


def test_what_was_understood_and_measured_is_said(several: tuple[Any, Hearing]) -> None:
    _, listener = several
    said = listener.said
    assert said[0].startswith("Table `team`: 60 texts in `text`, 3 classes (film desk 33%")
    for name in ("team", "same", "alike", "tags"):
        assert any(s.startswith(f"{name}: simple baselines by") for s in said)
        assert any(s.startswith(f"{name}: tuned encoder") for s in said)
    assert any(s.startswith("The ") and s.endswith("trained on all rows.") for s in said)
    assert "tuning" in listener.works


def test_the_folder_is_complete(several: tuple[Any, Hearing], tmp_path: Path) -> None:
    result, _ = several
    names = {path.name for path in result.folder.iterdir()}
    assert names >= {
        "model", "recipe.toml", "report.html", "evaluation.json", "baselines.json", "summary.json",
        "data",
    }  # fmt: skip
    assert "checkpoints" not in names
    assert result.data == result.folder / "data"
    page = (result.folder / "report.html").read_text("utf-8")
    assert "cross-validation" in page
    assert result.report(tmp_path / "again.html").read_text("utf-8") == page
    baselines = json.loads((result.folder / "baselines.json").read_text())["tasks"]
    assert {n: b["linear"] for n, b in baselines.items()} == {
        name: score.linear for name, score in result.scores.items()
    }
    summary = json.loads((result.folder / "summary.json").read_text())
    assert "cross-validation" in summary["method"]
    info = result.model.info
    assert info.scalings.keys() == {"team", "same", "tags"}
    assert len(info.thresholds["tags"]["single"]) == 3
    for name, score in result.scores.items():
        (measured,) = info.metrics[name].values()
        assert measured[score.metric] == pytest.approx(score.value)
        assert f"  {name}: {score.metric} {score.value:.3f} (linear model" in repr(result)
        assert repr(score).endswith(f"{score.interval[1]:.3f}, 60 rows>")
    assert repr(result).startswith(f"FitResult in {result.folder}")
    assert result.warnings == summary["warnings"]
    assert result.evaluation.suites["tasks"].method == summary["method"]


def test_a_cross_validated_recipe_trains_again_to_the_same_weights(
    several: tuple[Any, Hearing], tmp_path: Path
) -> None:
    result, _ = several
    recipe = Recipe.load(result.folder / "recipe.toml")
    assert recipe == result.recipe
    again = tercet.train(recipe, data=result.data, out=tmp_path / "again", device="cpu")
    assert weights(again.folder) == weights(result.folder)
    assert again.model.info.scalings == result.model.info.scalings
    assert again.model.info.thresholds == result.model.info.thresholds


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts each call of an engine encodes."""
    counts: list[int] = []
    run = Engine._run

    def counted(engine: Engine, encode: Any, columns: Any, rows: Any, *further: Any) -> Any:
        counts.append(len(rows))
        return run(engine, encode, columns, rows, *further)

    monkeypatch.setattr(Engine, "_run", counted)
    return counts


def test_the_encoder_as_it_is_reads_each_text_once(fit: Fit, encoded: list[int]) -> None:
    """By three folds and the last training."""
    result = fit(team=team_rows(), same=same_rows(), minutes=SHORT)
    assert result.shortage is not None
    assert sum(encoded) == 60 + 2 * 60


def test_heads_of_a_tuned_encoder_read_what_it_gives_now(fit: Fit, encoded: list[int]) -> None:
    result = fit(team=team_rows())
    assert [stage.name for stage in result.recipe.stages] == ["first heads", "tune", "heads"]
    # The encoder as it is; each of three folds, trained and held out; the last training.
    assert sum(encoded) == 60 + 3 * 60 + 60


@pytest.fixture
def on_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were many rows: a share of them is dev."""
    monkeypatch.setattr(fitting, "FOLDED_ROWS", 10)


@pytest.mark.usefixtures("on_a_share")
def test_a_recipe_with_a_share_trains_again_to_the_same_weights(fit: Fit, tmp_path: Path) -> None:
    files = {
        "team": write(tmp_path / "team.csv", team_rows(120), delimiter=";"),
        "same": write(tmp_path / "same.csv", same_rows(80)),
    }
    result = fit(*files.values(), out=tmp_path / "run")
    assert result.data == tmp_path.resolve()
    assert not (result.folder / "data").exists()
    assert {n: task.data.dev for n, task in result.recipe.tasks.items()}["team"] == 0.15
    assert result.scores["team"].rows == 18
    again = tercet.train(
        result.folder / "recipe.toml", data=result.data, out=tmp_path / "again", device="cpu"
    )
    assert weights(again.folder) == weights(result.folder)
    assert again.model.info.scalings == result.model.info.scalings
    for name, score in result.scores.items():
        (metrics,) = again.dev[name].values()
        assert metrics[score.metric] == pytest.approx(score.value)


def settings_of(path: Path, *, judge: planning.Judge, epochs: float) -> planning.Settings:
    """What candidates for one file share."""
    return planning.Settings(
        sources=gather([path], {}, task=None, dev=None, given=Given(), folder=path.parent),
        folder=path.parent.resolve(),
        encoder={"name": "x"},
        onto=None,
        width=32,
        seed=1,
        judge=judge,
        epochs=epochs,
        precision="auto",
        decisions={},
    )


@pytest.mark.usefixtures("on_a_share")
def test_a_task_that_contrasts_has_the_labels_and_dev_rows_of_its_own_task(
    fit: Fit, tmp_path: Path
) -> None:
    from tercet.data.examples import read_examples

    path = write(tmp_path / "team.csv", team_rows(90))
    settings = settings_of(path, judge="share", epochs=1.0)
    tasks = planning.tuned_recipe(settings).tasks
    own = read_examples(tasks["team"], "train", tmp_path)
    contrast = read_examples(tasks["team-contrast"], "train", tmp_path)
    assert contrast.texts == own.texts
    assert contrast.labels is not None
    assert np.array_equal(contrast.labels, own.labels)


@pytest.mark.parametrize(("epochs", "length"), [(1.0, {"steps": 34}), (30.0, {"epochs": 30.0})])
def test_a_fold_trains_as_often_on_each_row_as_the_last_training(
    tmp_path: Path, epochs: float, length: dict[str, float]
) -> None:
    path = write(tmp_path / "team.csv", team_rows(90))
    settings = settings_of(path, judge="folds", epochs=epochs)
    recipe = planning.tuned_recipe(settings, share=2.0 / 3.0)
    tune = next(stage for stage in recipe.stages if stage.name == "tune")
    assert {key: getattr(tune, key) for key in length} == length
    steps = length.get("steps", 30.0 * 2)
    assert planning.tune_steps(settings, share=2.0 / 3.0) == steps + 2


@pytest.mark.parametrize(
    ("capabilities", "precision"),
    [({"avx512_bf16": True}, "bf16"), ({"amx_bf16": True}, "bf16"), ({"avx512_f": True}, "auto")],
)
def test_a_cpu_with_bf16_tunes_in_it(
    fit: Fit, monkeypatch: pytest.MonkeyPatch, capabilities: dict[str, bool], precision: str
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    monkeypatch.setattr(by_folds, "prefers_tuned", lambda _: True)
    result = fit(team=team_rows())
    tune = next(stage for stage in result.recipe.stages if stage.name == "tune")
    assert tune.precision == precision


def test_dev_files_judge(fit: Fit, tmp_path: Path) -> None:
    train, dev = (
        write(tmp_path / "t.csv", team_rows()),
        write(tmp_path / "d.csv", team_rows(21, seed=9)),
    )
    result = fit(train, dev=dev, task="team", out=tmp_path / "run")
    assert result.scores["team"].rows == 21
    assert result.recipe.tasks["team"].data.dev == ["d.csv"]
    mixed = fit(team=team_rows(), dev={"team": team_rows(21, seed=9)}, minutes=SHORT)
    assert mixed.scores["team"].rows == 21
    assert (mixed.folder / "data" / "team-dev.parquet").is_file()
    evaluated = tercet.evaluate(mixed.model, mixed.data)
    assert "accuracy" in repr(evaluated)


def test_classes_of_a_dataset_keep_their_names_and_numbers(fit: Fit) -> None:
    datasets = pytest.importorskip("datasets")
    names = ["weather", "film desk", "music", "unused"]
    dataset = datasets.Dataset.from_list(team_rows())
    dataset = dataset.cast_column("team", datasets.ClassLabel(names=names))
    result = fit(team=dataset, minutes=SHORT)
    assert result.model.tasks["team"].labels == names
    (prediction,) = result.model.predict("team", [dataset[0]["text"]])
    assert prediction.name == "film desk"
    # Measured on the numbers of the dataset, which stay those of its classes.
    measured = tercet.evaluate(result.model, {"team": dataset}).to_json()
    answers = measured["suites"]["tasks"]["tasks"]["team"]["modes"]["single"]
    assert answers["labels"] == list(dataset["team"])


def test_rows_to_measure_on_that_train_too_are_warned_about(fit: Fit) -> None:
    train, dev = team_rows(), team_rows(30, seed=2)
    dev[:6] = [{**row, "text": row["text"].upper() + "!"} for row in train[:6]]
    listener = Hearing()
    result = fit(team=train, dev={"team": dev}, minutes=SHORT, listener=listener)
    said = (
        "team: 6 of the 30 rows to measure on are training rows too, but for case and "
        "punctuation, so that scores for new texts may be lower: delete them from one of the two."
    )
    assert said in result.warnings
    # While there still is time to stop.
    assert listener.said.index(said) < listener.said.index(NO_TIME)
    result = fit(team=train, dev={"team": dev[6:]}, minutes=SHORT)
    assert not any("training rows too" in warning for warning in result.warnings)


def test_a_dev_file_that_cannot_be_used_is_refused_before_any_work(fit: Fit) -> None:
    listener = Hearing()
    with pytest.raises(TercetError, match="'other', expected a class from 0 to 2"):
        fit(team=team_rows(), dev=[{"text": "a film", "team": "other"}], listener=listener)
    assert listener.works == []
    assert len(listener.said) == 1


@pytest.mark.parametrize("has_dev", [False, True])
def test_rows_that_the_encoder_was_trained_on_are_warned_about(
    fit: Fit, tiny_encoder: Path, tmp_path: Path, *, has_dev: bool
) -> None:
    known, new = team_rows(30), team_rows(30, seed=2)
    recipe = fit(team=known, encoder=tiny_encoder, minutes=SHORT, out=tmp_path / "first").recipe
    recipe = recipe.model_copy(update={"record_rows": True})
    tercet.train(recipe, data=tmp_path / "first/data", out=tmp_path / "known")
    given = {"dev": [*known[:12], *new[12:]]} if has_dev else {}
    rows = new if has_dev else [*known[:12], *new[12:]]
    result = fit(team=rows, encoder=tmp_path / "known", minutes=SHORT, **given)
    answers = result.evaluation.to_json()["suites"]["tasks"]["tasks"]["team"]
    assert answers["seen"] == {"rows": 12, "implied": 0}
    unseen = answers["modes"]["single"]["without_seen_rows"]["accuracy"]["value"]
    assert (
        "team: the encoder that this fit starts from knows rows that it is measured on: 12 of 30 "
        "rows were trained on. Scores for new texts may be lower: without these rows, accuracy is "
        f"{unseen:.3f}."
    ) in result.warnings


def test_few_rows_and_further_kinds_of_task(fit: Fit) -> None:
    """Eight rows of each class, pairs of three classes, and grades of single texts."""
    nli = [
        {"premise": row["a"], "hypothesis": row["b"], "relation": ["no", "maybe", "yes"][n % 3]}
        for n, row in enumerate(grade_rows(24))
    ]
    length = [{"text": "film " * (1 + n % 7) + str(n), "stars": 1 + n % 7} for n in range(24)]
    listener = Hearing()
    result = fit(team=team_rows(24), nli=nli, length=length, listener=listener)
    assert [score.rows for score in result.scores.values()] == [24, 24, 24]
    assert result.recipe.tasks["nli"].labels == ["maybe", "no", "yes"]
    assert result.recipe.tasks["length"].range == (1.0, 7.0)
    assert "tuning" in listener.works
    assert result.scores["length"].value > 0.5
    found = result.model.predict("length", ["film film film film film film", "film"])
    assert found[0] > found[1]


def test_files_of_one_name_beside_a_table_stay_apart(fit: Fit, tmp_path: Path) -> None:
    for name, rows in (("a", team_rows(24)), ("b", same_rows(24))):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "rows.csv", rows)
    plain, packed = tmp_path / "a" / "rows.csv", tmp_path / "b" / "rows.csv.gz"
    packed.write_bytes(gzip.compress((tmp_path / "b" / "rows.csv").read_bytes()))
    result = fit(plain, packed, task=["team", "same"], tags=tag_rows(24), minutes=SHORT)
    assert {path.name for path in result.data.iterdir()} == {
        "team.csv", "same.csv.gz", "tags.parquet"
    }  # fmt: skip
    assert result.recipe.tasks["team"].labels == list(TEAMS)
    assert result.recipe.tasks["same"].labels == ["no", "yes"]


def test_files_of_one_name_are_shown_with_folder_and_task(tmp_path: Path) -> None:
    files = []
    for name in ("a/rows.csv", "b/rows.csv", "mail.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        files.append(write(tmp_path / name, team_rows(12)))
    sources = gather(files, {}, task=None, dev=None, given=Given(), folder=tmp_path)
    assert [fitting._shown(source, sources) for source in sources] == [
        "a/rows.csv (task rows)", "b/rows.csv (task rows-2)", "mail.csv"
    ]  # fmt: skip


def test_what_a_user_says_is_not_guessed(fit: Fit) -> None:
    rows = [
        {"subject": f"no {n}", "level": 1 + n % 3, "who": f"w{n // 2}", **row}
        for n, row in enumerate(team_rows())
    ]
    guessed = fit(rows, label="level", text="text", kind="grades", task="level", minutes=SHORT)
    assert guessed.scores["level"].metric == "pearson"
    assert guessed.recipe.tasks["level"].range == (1.0, 3.0)
    grouped = fit(team=rows, label="team", text="text", group="who", minutes=SHORT)
    assert list(grouped.scores) == ["team"]
    with pytest.raises(TercetError, match="no column `whom`"):
        fit(team=rows, label="team", text="text", group="whom", minutes=SHORT)


def test_rows_of_a_group_are_never_split_up(fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    real = by_folds.Folds

    def noting(*arguments: Any, **options: Any) -> Any:
        seen.append(real(*arguments, **options))
        return seen[-1]

    monkeypatch.setattr(by_folds, "Folds", noting)
    rows = [{**row, "who": f"w{n // 4}"} for n, row in enumerate(team_rows())]
    fit(team=rows, label="team", group="who", minutes=SHORT)
    numbers = seen[0]._numbers["team"].reshape(-1, 4)
    assert (numbers == numbers[:, :1]).all()
    assert len(np.unique(numbers)) == 3


def digests(model: Model, tasks: Any) -> dict[str, str]:
    texts = ["a quiet film", "how do i read a book ?", "a man is playing the guitar"]
    pairs = list(zip(texts, texts[::-1], strict=True))
    values = {"vectors": model.embed(texts)}
    for name in tasks:
        single = "single" in model.tasks[name].modes
        values[name] = model.predictions(name, texts if single else pairs)
    return {name: hashlib.sha256(value.tobytes()).hexdigest() for name, value in values.items()}


def test_a_task_is_added_onto_a_fit(fit: Fit, several: tuple[Any, Hearing]) -> None:
    before, _ = several
    listener = Hearing()
    after = fit(mood=team_rows(45), onto=before.folder, listener=listener)
    old = before.model.tasks
    assert digests(after.model, old) == digests(before.model, old)
    assert list(after.model.tasks) == [*old, "mood"]
    assert list(after.scores) == ["mood"]
    assert after.model.info.metrics.keys() == {*old, "mood"}
    for name in ("team", "tags"):
        assert after.model.info.metrics[name] == before.model.info.metrics[name]
        assert after.model.info.scalings[name] == before.model.info.scalings[name]
    assert after.recipe.onto == str(before.folder)
    out = after.folder.with_name("onto-again")
    again = tercet.train(after.recipe, data=after.data, out=out, device="cpu")
    assert weights(again.folder) == weights(after.folder)


def test_a_task_is_added_onto_the_shipped_model(fit: Fit) -> None:
    before = tercet.load("tercet/small", device="cpu")
    after = fit(mood=team_rows(24), onto="tercet/small", minutes=SHORT)
    assert digests(after.model, before.tasks) == digests(before, before.tasks)
    assert list(after.model.tasks) == [*before.tasks, "mood"]
    assert after.scores["mood"].value == after.scores["mood"].linear > 0.6
    # Where it was fitted, also on a machine with a GPU.
    assert after.model.engine.machine()["device"] == "cpu"


def test_the_linear_model_is_kept_where_there_is_no_time(fit: Fit) -> None:
    listener = Hearing()
    result = fit(team=team_rows(), minutes=SHORT, listener=listener)
    assert NO_TIME in listener.said
    assert "tune" not in {stage.name for stage in result.recipe.stages}
    # Judged by cross-validation and trained on all rows, since that is what was measured.
    assert result.scores["team"].rows == 60
    assert result.scores["team"].value == result.scores["team"].linear


@pytest.mark.usefixtures("on_a_share")
def test_many_rows_without_time_are_fitted_linearly(fit: Fit) -> None:
    listener = Hearing()
    result = fit(team=team_rows(), minutes=SHORT, listener=listener)
    assert NO_TIME in listener.said
    assert [stage.name for stage in result.recipe.stages] == ["heads"]


@pytest.mark.usefixtures("on_a_share")
def test_of_more_rows_than_there_is_time_for_some_are_drawn(
    fit: Fit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Budget, "rows", lambda self, settings, encoding: 60)
    monkeypatch.setattr(by_dev, "LEAST_OF_TASK", 10)
    files = {
        # Sorted by label, as files often are.
        "team": write(tmp_path / "team.csv", sorted(team_rows(90), key=itemgetter("team"))),
        "same": write(tmp_path / "same.csv", same_rows(30)),
    }
    listener = Hearing()
    result = fit(*files.values(), listener=listener, out=tmp_path / "run")
    tasks = result.recipe.tasks
    assert {name: tasks[name].data.draw for name in files} == {"team": 45, "same": 15}
    assert "There is time for 60 of the 120 rows; they are drawn at random." in listener.said
    assert result.shortage is not None
    assert "only 60 of the 120 rows were used" in result.shortage
    tune = result.recipe.stages[1]
    assert (tune.name, tune.epochs or tune.steps) == ("tune", 20)  # LEAST_STEPS: so few rows
    assert result.scores["team"].rows == 7
    assert [each.name for each in result.model.predict("team", ["rain rain"])] == ["weather"]
    again = tercet.train(result.recipe, data=result.data, out=tmp_path / "again", device="cpu")
    for name in WEIGHTS:
        ours, theirs = (folder / "model" / name for folder in (result.folder, again.folder))
        assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize(
    ("encoding", "rows"), [(10.0, 100_000), (15.7, 100_000), (31.4, 50_000), (10_000.0, 5000)]
)
def test_rows_that_there_is_time_for_are_tuned_on_once(
    tmp_path: Path, encoding: float, rows: int
) -> None:
    """Of 120 seconds 102 are planned with; all rows take 6.5 times as long as to encode them."""
    path = write(tmp_path / "team.csv", team_rows(30))
    settings = settings_of(path, judge="share", epochs=2.0)
    (source,) = settings.sources
    large = replace(settings, sources=[replace(source, look=replace(source.look, rows=100_000))])
    found = Budget(120.0, clock=lambda: 0.0).rows(large, encoding)
    assert found == pytest.approx(rows, rel=1e-3)


def test_a_share_judges_where_folds_take_too_long(
    fit: Fit, monkeypatch: pytest.MonkeyPatch
) -> None:
    epochs = Budget.epochs
    asked: list[int] = []

    def short(self: Any, settings: Any, encoding: float, *, trainings: int) -> float:
        asked.append(trainings)
        found = epochs(self, settings, encoding, trainings=trainings)
        return found / 2 if trainings == by_folds.FOLDS else found

    monkeypatch.setattr(Budget, "epochs", short)
    result = fit(team=team_rows(90))
    assert asked[:2] == [3, 1]
    assert result.recipe.tasks["team"].data.dev == 0.15
    assert result.scores["team"].rows == 14


def test_a_handful_of_rows_does_not_judge_where_folds_take_too_long(
    fit: Fit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Budget, "epochs", lambda self, *_, trainings: 10.0 - trainings)
    result = fit(team=team_rows(30))
    assert (result.scores["team"].rows, result.recipe.tasks["team"].data.dev) == (30, [])
    assert [stage.solve for stage in result.recipe.stages] == [True]
    assert result.shortage is not None
    assert "the encoder was not tuned" in result.shortage


@pytest.mark.parametrize(("epochs", "is_short"), [(9.9, False), (9.0, True)])
def test_a_hundredth_of_the_epochs_is_not_missed(
    fit: Fit, monkeypatch: pytest.MonkeyPatch, epochs: float, is_short: bool
) -> None:
    monkeypatch.setattr(Budget, "epochs", lambda *_, **__: epochs)
    dev = {"team": team_rows(15, seed=9)}
    shortage = fit(team=team_rows(24), dev=dev).shortage
    assert (shortage is not None) == is_short
    assert not is_short or "tuning had 9 epochs instead of 10." in shortage


@pytest.mark.parametrize("judge", ["folds", "share"])
def test_tuning_that_makes_it_worse_is_not_kept(
    fit: Fit, monkeypatch: pytest.MonkeyPatch, judge: str
) -> None:
    for name in ("RATE", "GENTLE_RATE", "HEAD_RATE"):
        monkeypatch.setattr(planning, name, 3.0)
    if judge == "share":
        monkeypatch.setattr(fitting, "FOLDED_ROWS", 10)
    listener = Hearing()
    result = fit(team=team_rows(120), listener=listener)
    assert "tuning" in listener.works
    assert any("linear model is kept" in sentence for sentence in listener.said)
    assert [stage.name for stage in result.recipe.stages] == ["heads"]
    assert (by_folds.AGAIN in listener.said) == (judge == "folds")
    assert result.scores["team"].value >= result.scores["team"].linear - 0.12
    assert result.scores["team"].value > 0.5


@pytest.mark.parametrize("worse", [1, 2])
def test_rows_are_dealt_out_again_where_tuning_is_worse(
    fit: Fit, monkeypatch: pytest.MonkeyPatch, worse: int
) -> None:
    """What the first folds say against tuning must not be chance; later ones may overrule it."""
    gains = [-0.3] * worse + [0.3] * (by_folds.SPLITS - worse)
    left = iter(gains)

    class Staged(Comparison):
        @cached_property
        def gain(self) -> float:  # type: ignore[override]
            return next(left)

    monkeypatch.setattr(by_folds, "Comparison", Staged)
    listener = Hearing()
    result = fit(team=team_rows(60), listener=listener)
    assert by_folds.AGAIN in listener.said
    assert next(left, None) is None  # all splits were judged
    kept = "tuned encoder" if worse == 1 else "linear model"
    assert f"The {kept} is kept and trained on all rows." in listener.said
    assert ("tune" in {stage.name for stage in result.recipe.stages}) == (worse == 1)


def test_a_task_that_others_hurt_is_warned_about(fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the terminal and at the top of the report, with what to do; chance is not hurt."""
    real = TaskScore.of
    linear = {"team": 0.99, "same": 0.79}

    def worse(answers: Any, baseline: Any) -> TaskScore:
        score = real(answers, baseline)
        return replace(score, value=0.7, interval=(0.6, 0.8), linear=linear[answers.task])

    monkeypatch.setattr(TaskScore, "of", worse)
    listener = Hearing()
    result = fit(team=team_rows(24), same=same_rows(24), minutes=SHORT, listener=listener)
    hurt = (
        "team: the files were judged together, and this one is clearly better off alone: fit "
        "team.parquet by itself."
    )
    assert hurt in result.warnings
    assert not any("same: the files" in warning for warning in result.warnings)
    assert f"Warning: {hurt}" in listener.said
    page = (result.folder / "report.html").read_text("utf-8")
    assert page.index(hurt) < page.index('class="cards"')
    alone = fit(team=team_rows(24), minutes=SHORT)
    assert alone.scores["team"].is_hurt
    assert not any("judged together" in warning for warning in alone.warnings)


def test_the_time_that_is_planned_covers_the_shortest_stage() -> None:
    """However few the rows, a stage has some steps: they must fit too."""
    from types import SimpleNamespace

    def epochs(left: float, *, rows: int) -> float:
        settings: Any = SimpleNamespace(batches=rows // planning.BATCH, epochs=10.0)
        budget = Budget(left / USED, clock=lambda: 0.0)
        return budget.epochs(settings, 1.0, trainings=1)

    step = TRAINING * 1.0 / 4
    assert epochs(49 * step, rows=128) == 0.0
    assert epochs(51 * step, rows=128) == 10.0
    assert epochs(51 * TRAINING / 40, rows=1280) == pytest.approx(51 / 40)
    assert epochs(-1.0, rows=128) == 0.0


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([{"text": f"row {n} of it", "team": "it"} for n in range(20)], {"label": "team"},
         "only one label, 'it'"),
        ([{"text": f"row {n} of it"} for n in range(20)], {}, "no column looks like a label"),
        (team_rows(12), {"kind": "sorts"}, r"`kind` is 'sorts'"),
        (team_rows(12), {"encoder": "x", "onto": "y"}, r"leave out `encoder`"),
        (team_rows(12), {"onto": "no-such-run"}, "no-such-run"),
        (team_rows(12), {"task": "two words"}, "two words"),
        ([{**row, "text": "it is always the same"} for row in team_rows(12)], {},
         "all rows have the same text or the same group"),
    ],
)  # fmt: skip
def test_mistakes_are_told_before_anything_is_written(
    fit: Fit, tmp_path: Path, rows: Any, options: Any, message: str
) -> None:
    with pytest.raises(TercetError, match=message):
        fit(rows, out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_a_folder_that_holds_files_is_refused(fit: Fit, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", "utf-8")
    with pytest.raises(ArgumentError, match="already holds files"):
        fit(team=team_rows(12), out=tmp_path)
    assert (tmp_path / "mine.txt").read_text("utf-8") == "mine"


@pytest.mark.parametrize("name", ["..", ".", "../..", "/{folder}/own"])
def test_a_task_that_is_named_like_a_path_costs_no_file(
    fit: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The run folder is named like the task, and is removed after a mistake."""
    here = tmp_path / "here"
    (here / "own").mkdir(parents=True)
    (here / "mine.txt").write_text("mine", "utf-8")
    monkeypatch.chdir(here)
    with pytest.raises(TercetError, match="the name of a task"):
        fit(team_rows(12), task=name.format(folder=here), out=None)
    assert sorted(path.name for path in here.iterdir()) == ["mine.txt", "own"]


def test_a_fit_that_fails_leaves_the_folder_of_another_alone(
    fit: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two are started at once, into one folder that both find empty."""
    out = tmp_path / "run"
    refused: list[str] = []
    read = fitting._settings

    def meanwhile(*given: Any, **options: Any) -> Any:
        monkeypatch.setattr(fitting, "_settings", read)
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        return read(*given, **options)

    def second() -> None:
        with pytest.raises(TercetError) as caught:
            fit(team=team_rows(12), minutes=SHORT, out=out, onto="no-such-run")
        refused.append(str(caught.value))

    monkeypatch.setattr(fitting, "_settings", meanwhile)
    result = fit(team=team_rows(24), minutes=SHORT, out=out)
    assert result.model.predict("team", ["x"])
    assert len(refused) == 1
    assert "another process trains in this folder" in refused[0]
    assert not (out / ".lock").exists()


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_trained(
    fit: Fit, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine", "utf-8")
    listener = Hearing()
    for out, why in (("file", "is a file"), ("file/run", r"cannot be written \(Not a directory\)")):
        with pytest.raises(ArgumentError, match=why):
            fit(team=team_rows(12), out=tmp_path / out, listener=listener)
    assert listener.works == []
    assert (tmp_path / "file").read_text("utf-8") == "mine"


def test_temporary_tables_are_removed(fit: Fit, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    fit(team=team_rows(24), minutes=SHORT)
    with pytest.raises(TercetError):
        fit(team=team_rows(24), label="none")
    assert list(tmp_path.glob("tercet-fit-*")) == []


def test_a_dev_file_judges_a_task_that_is_added(fit: Fit) -> None:
    """The files of the old task are elsewhere."""
    before = fit(team=team_rows(30), dev=team_rows(15, seed=9), minutes=SHORT)
    after = fit(same=same_rows(60), dev=same_rows(20), onto=before.folder, minutes=SHORT)
    assert list(after.scores) == ["same"]
    assert after.scores["same"].rows == 20
    assert list(after.model.tasks) == ["team", "same"]
    assert digests(after.model, ["team"]) == digests(before.model, ["team"])
    assert after.model.info.metrics["team"] == before.model.info.metrics["team"]
    assert [each.task for each in after.evaluation.suites["tasks"].answers()] == ["same"]


def test_a_model_reads_longer_texts_than_those_that_it_was_fitted_on(fit: Fit) -> None:
    rows = [{"text": text, "team": team} for team, text in TEAMS.items()] * 8
    model = fit(team=rows, minutes=SHORT).model
    assert model.info.max_tokens == 64  # of the tiny encoder
    model.predict("team", ["the film is long and good " * 8])
    assert model.describe_long() == []


def test_many_long_texts_are_read_whole_by_what_fit_chooses(fit: Fit) -> None:
    """What tells the classes comes after what the encoder reads at once."""
    before = "the plot is long and the cast is fine . " * 4
    rows = [{**row, "text": before + row["text"]} for row in team_rows(120)]
    listener = Hearing()
    result = fit(team=rows, minutes=SHORT, listener=listener)
    assert "100% of the texts are longer than 64 tokens: they are read whole" in " ".join(
        listener.said
    )
    assert (result.recipe.encoder.long, result.model.info.long) == ("windows", "windows")
    cut = fit(team=rows, minutes=SHORT, long="truncate")
    assert (cut.recipe.encoder.long, cut.model.info.long) == ("truncate", "truncate")
    assert result.scores["team"].value > cut.scores["team"].value + 0.15
    predicted = [each.name for each in result.model.predict("team", [row["text"] for row in rows])]
    right = [name == row["team"] for name, row in zip(predicted, rows, strict=True)]
    assert np.mean(right) > 0.6
    with pytest.raises(ArgumentError, match="`onto` keeps `long`"):
        fit(other=rows, onto=result.folder, long="truncate")


NO_TABLE = "neither a file nor a table, and `fit` has no argument of that name"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lable": "type"}, f"`lable` is 'type', {NO_TABLE} (did you mean `label`?)."),
        ({"minute": 5}, f"`minute` is 5, {NO_TABLE} (did you mean `minutes`?)."),
        ({"epochs": 3}, f"`epochs` is 3, {NO_TABLE}."),
        ({"minutes": "5"}, "`minutes` is '5'; it should be a number above 0."),
        ({"minutes": 0}, "`minutes` is 0; it should be a number above 0."),
        (
            {"label": "tema"},
            "Table `task`: no column `tema`; it has `text`, `team` (did you mean `team`?).",
        ),
        (
            {"dev": [{"text": "a pipe", "team": "mail"}]},
            "Table `task-dev` row 1: column `team` is 'mail', expected a class from 0 to 2 or its "
            "name (film desk, music, weather).",
        ),
    ],
)
def test_mistakes_in_arguments_are_named(fit: Fit, given: dict[str, Any], message: str) -> None:
    with pytest.raises(TercetError) as error:
        fit(team_rows(9), **given)
    assert str(error.value) == message


def test_a_task_that_a_model_has_is_refused_before_any_work(fit: Fit) -> None:
    listener = Hearing()
    with pytest.raises(ArgumentError) as error:
        fit(sentiment=team_rows(24), onto="tercet/small", listener=listener)
    assert str(error.value) == (
        "`onto` tercet/small: that model has a task `sentiment` already; give the new task another "
        "name with `task`."
    )
    assert error.value.arguments == ("onto", "task")
    assert not any("baselines" in sentence for sentence in listener.said)


def test_tables_in_memory_are_called_tables(fit: Fit, tmp_path: Path) -> None:
    listener = Hearing()
    file = write(tmp_path / "same.csv", same_rows(24))
    fit(file, team=team_rows(24), minutes=SHORT, listener=listener)
    assert listener.said[0].startswith("same.csv: 24 pairs")
    assert listener.said[1].startswith("Table `team`: 24 texts in `text`")


def test_progress_names_the_fold(fit: Fit) -> None:
    notes: dict[str, None] = {}

    class Noting(Silent):
        def working(self, what: str) -> AbstractContextManager[Progress]:
            def note_down(done: int, total: int | None = None, *, note: str = "") -> None:
                notes[note] = None

            return nullcontext(note_down)

    fit(team=team_rows(24), minutes=SHORT, listener=Noting())
    assert {"fold 1 of 3", "fold 2 of 3", "fold 3 of 3"} <= set(notes)
