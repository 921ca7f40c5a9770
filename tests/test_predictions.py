from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tercet.errors import TercetError
from tercet.predictions import (
    LabelSet,
    Prediction,
    Predictions,
    Sentiment,
    to_label_sets,
    to_predictions,
    unique_names,
)

CLASSES = ["awful", "bad", "fair", "good", "great"]
SHARES = np.array([[0.04, 0.1, 0.25, 0.6, 0.01]], np.float32)


def test_a_prediction_shows_its_best_classes_by_name() -> None:
    (found,) = to_predictions(SHARES, CLASSES, Sentiment)
    assert repr(found) == "Sentiment('good' 0.60; fair 0.25, bad 0.10, and 2 more)"
    (found,) = to_predictions(np.array([0.25], np.float32), ["no", "yes"], Prediction)
    assert repr(found) == "Prediction('no' 0.75; yes 0.25)"
    made = Prediction(1, "yes", [0.123456, 0.876544])
    assert repr(made) == "Prediction(label=1, name='yes', probabilities=[0.1235, 0.8765])"


def test_two_classes_and_three_have_the_same_shape() -> None:
    two = to_predictions(np.array([0.25, 0.75], np.float32), ["no", "yes"], Prediction)
    both = to_predictions(np.array([[0.75, 0.25], [0.25, 0.75]]), ["no", "yes"], Prediction)
    assert two == both == [Prediction(0, "no", [0.75, 0.25]), Prediction(1, "yes", [0.25, 0.75])]
    three = to_predictions(SHARES[:, 1:4], CLASSES[1:4], Prediction)
    assert two.to_arrow().schema.types[:2] == three.to_arrow().schema.types[:2]
    assert (two.to_arrow().num_columns, three.to_arrow().num_columns) == (4, 5)


def test_predictions_are_a_list() -> None:
    found = to_predictions(np.repeat(SHARES, 12, axis=0), CLASSES, Prediction)
    assert isinstance(found, list)
    assert found == list(found) == [*found]
    assert json.dumps(found, default=asdict) == json.dumps([asdict(row) for row in found])
    assert set(asdict(found[0])) == {"label", "name", "probabilities"}
    assert isinstance(found[2:4], Predictions)
    assert found[2:4].to_arrow() == found.to_arrow().slice(2, 2)


def test_predictions_print_a_line_each_and_not_all() -> None:
    found = to_predictions(np.repeat(SHARES, 1200, axis=0), CLASSES, Prediction)
    lines = repr(found).splitlines()
    assert lines[0] == "0: 'good' 0.60; fair 0.25, bad 0.10, and 2 more"
    assert len(lines) == 11
    assert lines[-1] == "and 1,190 more"
    assert repr(found[:0]) == "Predictions([])"


def test_html_is_escaped() -> None:
    page = to_predictions(np.array([0.9]), ["<b>", "a&b"], Prediction)._repr_html_()
    assert "<td>a&amp;b</td>" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_tables_have_a_probability_for_each_class() -> None:
    found = to_predictions(np.repeat(SHARES, 2, axis=0), CLASSES, Prediction)
    table = found.to_arrow()
    assert table.column_names == ["label", "name", *CLASSES]
    assert table.column("label").type == pa.int64()
    assert table.to_pylist()[1]["good"] == pytest.approx(0.6)
    frame = found.to_pandas()
    assert frame["name"].tolist() == ["good", "good"]
    assert frame["fair"].tolist() == pytest.approx([0.25, 0.25])
    assert to_predictions(SHARES[:0], CLASSES, Prediction).to_pandas().shape == (0, 7)


def test_a_class_called_as_a_column_gets_another_name() -> None:
    found = to_predictions(np.array([0.9]), ["name", "label"], Prediction)
    assert found.to_arrow().column_names == ["label", "name", "name_2", "label_2"]
    assert unique_names(["label", "name"], ["label", "x"], prefix="mood_") == ["mood_label", "name"]


TAGS = ["tea", "milk", "jam", "salt"]
INDEPENDENT = np.array([[0.9, 0.75, 0.25, 0.1], [0.2, 0.1, 0.05, 0.0], [1, 1, 1, 1]], np.float32)


def test_sets_of_labels_show_what_is_chosen_and_what_is_near() -> None:
    found = to_label_sets(INDEPENDENT, TAGS, None)
    assert isinstance(found, Predictions)
    assert found == [
        LabelSet([0, 1], ["tea", "milk"], INDEPENDENT[0].tolist()),
        LabelSet([], [], INDEPENDENT[1].tolist()),
        LabelSet([0, 1, 2, 3], TAGS, [1.0] * 4),
    ]
    assert repr(found).splitlines() == [
        "0: 'tea' 0.90, 'milk' 0.75; jam 0.25, salt 0.10",
        "1: none; tea 0.20, milk 0.10, and 2 more",
        "2: 'tea' 1.00, 'milk' 1.00, 'jam' 1.00, 'salt' 1.00",
    ]
    assert repr(found[0]) == "LabelSet('tea' 0.90, 'milk' 0.75; jam 0.25, salt 0.10)"
    made = LabelSet([1], ["yes"], [0.123456, 0.876544])
    assert repr(made) == "LabelSet(labels=[1], names=['yes'], probabilities=[0.1235, 0.8765])"
    assert set(asdict(found[0])) == {"labels", "names", "probabilities"}
    assert "<th>names</th>" in found._repr_html_()
    assert "<td>tea, milk</td><td>0.90</td>" in found._repr_html_()


def test_tables_of_sets_have_a_probability_and_a_mark_for_each_label() -> None:
    found = to_label_sets(INDEPENDENT, TAGS, [0.95, 0.1, 0.1, 0.1])
    frame = found.to_pandas()
    marks = [f"has_{name}" for name in TAGS]
    assert list(frame.columns) == ["labels", "names", *TAGS, *marks]
    assert frame["names"].tolist() == ["milk, jam, salt", "milk", "tea, milk, jam, salt"]
    assert frame["labels"].tolist() == ["1, 2, 3", "1", "0, 1, 2, 3"]
    np.testing.assert_array_equal(frame[TAGS].to_numpy(), INDEPENDENT)
    assert frame[marks].to_numpy().tolist() == [[0, 1, 1, 1], [0, 1, 0, 0], [1, 1, 1, 1]]
    assert found[1:].to_arrow() == found.to_arrow().slice(1)
    assert found[:0].to_arrow().schema == found.to_arrow().schema


def test_without_pandas_the_sentence_says_what_to_install(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(TercetError, match="pip install pandas"):
        to_predictions(SHARES, CLASSES, Prediction).to_pandas()
