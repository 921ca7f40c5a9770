"""Against scikit-learn code written apart: SentEval's classifiers as its authors describe them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict

import tercet
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.suites.transfer import Transfer, TransferTask

GRID = {"C": [0.25, 0.5, 1, 2, 4, 8]}
HALF_A_POINT = 0.005
# All rows take minutes: TERCET_WHOLE=1 asks for them.
WHOLE = bool(os.environ.get("TERCET_WHOLE"))
LONG = pytest.mark.skipif(not WHOLE, reason="takes minutes: set TERCET_WHOLE=1")


@pytest.fixture(scope="module")
def encoded(minilm: Path) -> EncodedTexts:
    return EncodedTexts(tercet.load(minilm, device="cpu"))


def lines_of(folder: Path, name: str, encoding: str) -> list[str]:
    return (folder / "senteval" / name).read_bytes().decode(encoding).removesuffix("\n").split("\n")


def copy(name: str, source: Path, target: Path, encoding: str, rows: int) -> None:
    """A file of a data folder with only its first rows."""
    path = target / "senteval" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = lines_of(source, name, encoding)[: None if WHOLE else rows]
    path.write_bytes(("\n".join(lines) + "\n").encode(encoding))


def search() -> GridSearchCV:
    splitter = StratifiedKFold(10, shuffle=True, random_state=1111)
    return GridSearchCV(LogisticRegression(tol=1e-6, max_iter=1_000), GRID, cv=splitter)


@pytest.mark.parametrize(
    ("task", "names"),
    [
        pytest.param("MR", ["MR/rt-polarity.neg", "MR/rt-polarity.pos"], marks=LONG),
        ("CR", ["CR/custrev.neg", "CR/custrev.pos"]),
        pytest.param("SUBJ", ["SUBJ/subj.objective", "SUBJ/subj.subjective"], marks=LONG),
        pytest.param("MPQA", ["MPQA/mpqa.neg", "MPQA/mpqa.pos"], marks=LONG),
    ],
)
def test_ten_folds_agree_with_a_nested_search(
    encoded, real_data: Path, tmp_path: Path, task: TransferTask, names: list[str], run
) -> None:
    for name in names:
        copy(name, real_data, tmp_path, "latin-1", 300)
    result = run(Transfer([task]), encoded, tmp_path)
    found = result.tasks[task]
    texts = [lines_of(tmp_path, name, "latin-1") for name in names]
    vectors = encoded.embed([text.strip() for side in texts for text in side])
    labels = np.repeat([0, 1], [len(side) for side in texts])
    outer = StratifiedKFold(10, shuffle=True, random_state=1111)
    predicted = cross_val_predict(search(), vectors, labels, cv=outer)
    expected = accuracy_score(labels, predicted)
    print(task, found.metrics["accuracy"].value, expected)
    assert found.metrics["accuracy"].value == pytest.approx(expected, abs=HALF_A_POINT)
    low, high = found.metrics["accuracy"].interval
    assert low < found.metrics["accuracy"].value < high
    assert (found.rows, len(found.penalties)) == (len(labels), 10)
    assert result.average is None


def test_sentiment_agrees_with_a_choice_on_dev(
    encoded, real_data: Path, tmp_path: Path, run
) -> None:
    sides = {}
    for split, rows in [("train", 1_000), ("dev", 200), ("test", 400)]:
        name = f"SST/binary/sentiment-{split}"
        copy(name, real_data, tmp_path, "utf-8", rows)
        cells = [line.split("\t") for line in lines_of(tmp_path, name, "utf-8")]
        vectors = encoded.embed([text.strip() for text, _ in cells])
        sides[split] = vectors, np.array([int(label) for _, label in cells])
    found = run(Transfer(["SST-2"]), encoded, tmp_path).tasks["SST-2"]
    fitted = [
        LogisticRegression(C=C, tol=1e-6, max_iter=1_000).fit(*sides["train"]) for C in GRID["C"]
    ]
    best = max(fitted, key=lambda model: model.score(*sides["dev"]))
    expected = best.score(*sides["test"])
    print("SST-2", found.metrics["accuracy"].value, expected)
    assert found.metrics["accuracy"].value == pytest.approx(expected, abs=HALF_A_POINT)
    assert found.rows == len(sides["test"][1])


def test_questions_agree_with_a_search_by_folds(
    encoded, real_data: Path, tmp_path: Path, run
) -> None:
    sides = {}
    for split, name in [("train", "TREC/train_5500.label"), ("test", "TREC/TREC_10.label")]:
        copy(name, real_data, tmp_path, "latin-1", 900)
        rows = [line.split(" ", 1) for line in lines_of(tmp_path, name, "latin-1")]
        vectors = encoded.embed([text.strip() for _, text in rows])
        sides[split] = vectors, [kind.split(":")[0] for kind, _ in rows]
    found = run(Transfer(["TREC"]), encoded, tmp_path).tasks["TREC"]
    fitted = search().fit(*sides["train"])
    expected = accuracy_score(sides["test"][1], fitted.predict(sides["test"][0]))
    print("TREC", found.metrics["accuracy"].value, expected)
    assert found.metrics["accuracy"].value == pytest.approx(expected, abs=HALF_A_POINT)
    assert found.rows == 500


def test_pairs_agree_on_features_of_both_vectors(
    encoded, real_data: Path, tmp_path: Path, run
) -> None:
    sides = {}
    for split, rows in [("train", 501), ("test", 401)]:
        name = f"MRPC/msr_paraphrase_{split}.txt"
        copy(name, real_data, tmp_path, "utf-8", rows)
        cells = [line.rstrip("\r").split("\t") for line in lines_of(tmp_path, name, "utf-8")[1:]]
        u, v = (encoded.embed([row[place].strip() for row in cells]) for place in (3, 4))
        labels = np.array([int(row[0]) for row in cells])
        sides[split] = np.hstack([abs(u - v), u * v]).astype(np.float64), labels
    found = run(Transfer(["MRPC"]), encoded, tmp_path).tasks["MRPC"]
    predicted = search().fit(*sides["train"]).predict(sides["test"][0])
    labels = sides["test"][1]
    accuracy, f1 = accuracy_score(labels, predicted), f1_score(labels, predicted)
    print("MRPC", [each.value for each in found.metrics.values()], accuracy, f1)
    assert found.metrics["accuracy"].value == pytest.approx(accuracy, abs=HALF_A_POINT)
    assert found.metrics["f1"].value == pytest.approx(f1, abs=HALF_A_POINT)


def test_missing_files_are_named_and_the_rest_is_measured(headed, tmp_path: Path, run) -> None:
    folder = tmp_path / "senteval/SUBJ"
    folder.mkdir(parents=True)
    for name, word in [("objective", "village"), ("subjective", "lovely")]:
        lines = [f"a {word} film {i}" for i in range(30)]
        (folder / f"subj.{name}").write_text("\n".join(lines) + "\n", "utf-8")
    result = run(Transfer(), headed, tmp_path)
    assert result.tasks.keys() == {"SUBJ"}
    assert result.tasks["SUBJ"].metrics["accuracy"].value == 1.0
    assert {each.task: each.file for each in result.missing} == {
        "MR": "MR/rt-polarity.neg",
        "CR": "CR/custrev.neg",
        "MPQA": "MPQA/mpqa.neg",
        "SST-2": "SST/binary/sentiment-train",
        "TREC": "TREC/train_5500.label",
        "MRPC": "MRPC/msr_paraphrase_train.txt",
    }
