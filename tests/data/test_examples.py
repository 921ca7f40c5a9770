"""Every row of a split is taken, or named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tercet.data.examples import (
    BadRow,
    Examples,
    describe_skipped,
    read_examples,
    read_once,
    read_texts,
)
from tercet.data.layouts import Split
from tercet.errors import TercetError
from tercet.specs import TaskSpec

MakeTask = Callable[..., TaskSpec]
DIRTY = """\tid\tsentence1\tsentence2\tis_duplicate
0\ta\t one \ttwo\t0.0
1\tb\tthree\tfour\t
2\tc\tfive\t\t
3\td\tsix\tseven\t1.0
"""


@pytest.fixture
def dirty(tmp_path: Path) -> Path:
    (tmp_path / "quora-dev.csv").write_text(DIRTY, "utf-8")
    return tmp_path


def test_bad_rows_fail_by_default(make_task: MakeTask, dirty: Path) -> None:
    with pytest.raises(TercetError) as caught:
        read_examples(make_task("paraphrase", layout="cs224n-quora"), "dev", dirty)
    result = str(caught.value)
    assert f"{dirty / 'quora-dev.csv'} line 3: no label in column `is_duplicate`" in result
    assert "2 of 4 rows are bad" in result
    assert '`on_bad_row = "skip"`' in result


def test_bad_rows_are_skipped_and_listed_where_allowed(make_task: MakeTask, dirty: Path) -> None:
    task = make_task("paraphrase", layout="cs224n-quora", on_bad_row="skip")
    examples = read_examples(task, "dev", dirty)
    assert examples.texts == (["one", "six"], ["two", "seven"])
    assert examples.labels is not None
    assert examples.labels.dtype == np.int64
    assert examples.labels.tolist() == [0, 1]
    assert examples.lines.tolist() == [2, 5]
    assert [(bad.line, bad.column) for bad in examples.skipped] == [
        (3, "is_duplicate"),
        (4, "sentence2, is_duplicate"),
    ]
    result = describe_skipped(examples.skipped)
    assert result.startswith("Skipped 2 bad rows: quora-dev.csv line 3 (no label in column")
    assert "line 4 (no text in column `sentence2` and no label" in result


def test_the_real_quora_dev_has_two_bad_rows(make_task: MakeTask, real_data: Path) -> None:
    task = make_task("paraphrase", layout="cs224n-quora", on_bad_row="skip")
    examples = read_examples(task, "dev", real_data)
    assert len(examples) == 20_212
    assert [bad.line for bad in examples.skipped] == [2577, 14222]
    strict = make_task("paraphrase", layout="cs224n-quora")
    with pytest.raises(TercetError, match=r"quora-dev\.csv line 2577: .*2 of 20,214 rows"):
        read_examples(strict, "dev", real_data)


def test_many_skipped_rows_make_a_short_sentence() -> None:
    skipped = [BadRow("a.csv", line, "label", "", "no label") for line in range(1, 1001)]
    result = describe_skipped(skipped)
    assert result.endswith("a.csv line 5 (no label) and 995 more.")
    assert describe_skipped([]) == ""


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("sentiment", "x\t5\n", "line 1: column `2` is '5', expected a class from 0 to 4"),
        ("sentiment", "x\t0\ny\tnan\n", "line 2: column `2` is 'nan', expected a class"),
        ("similarity", "x\t5.1\n", "line 1: column `2` is '5.1', expected a number from 0 to 5"),
        ("similarity", "x\tinf\n", "line 1: column `2` is 'inf', expected a number from 0 to 5"),
    ],
)
def test_a_wrong_label_always_fails(
    make_task: MakeTask, tmp_path: Path, kind: str, content: str, message: str
) -> None:
    (tmp_path / "a.tsv").write_text(content, "utf-8")
    texts = [1, 1] if kind == "similarity" else [1]
    task = make_task(kind, train="a.tsv", texts=texts, label=2, on_bad_row="skip")
    with pytest.raises(TercetError) as caught:
        read_examples(task, "train", tmp_path)
    assert f"{tmp_path / 'a.tsv'} {message}" in str(caught.value)


def test_words_outside_the_label_map_are_bad_rows(make_task: MakeTask, tmp_path: Path) -> None:
    rows = "a\tb\tentailment\nc\td\tneutral\ne\tf\tnot_entailment\n"
    (tmp_path / "pairs.tsv").write_text(rows, "utf-8")
    words = {"entailment": 1, "not_entailment": 0}
    task = make_task("paraphrase", layout="nli-pairs", label_map=words, on_bad_row="skip")
    examples = read_examples(task, "train", tmp_path)
    assert examples.labels is not None
    assert examples.labels.tolist() == [1, 0]
    (bad,) = examples.skipped
    assert (bad.line, bad.value) == (2, "neutral")
    assert "label_map has only entailment, not_entailment" in bad.reason


def test_a_label_map_chooses_rows_of_a_task_without_labels(
    make_task: MakeTask, tmp_path: Path
) -> None:
    (tmp_path / "pairs.tsv").write_text("a\tb\tentailment\nc\td\tneutral\n", "utf-8")
    spec = {"layout": "nli-pairs", "on_bad_row": "skip"}
    plain = read_examples(make_task("ranking", **spec), "train", tmp_path)
    assert plain.labels is None
    assert len(plain) == 2
    chosen = make_task("ranking", **spec, label_map={"entailment": 1})
    examples = read_examples(chosen, "train", tmp_path)
    assert examples.labels is None
    assert examples.texts == (["a"], ["b"])


def test_texts_are_cut_into_sentences_in_training_alone(
    make_task: MakeTask, tmp_path: Path
) -> None:
    rows = "A fine film . See it !\t1\n10/10 .\t0\nDull?<br />Very .\t1\n"
    for name in ("a.tsv", "b.tsv"):
        (tmp_path / name).write_text(rows, "utf-8")
    files = {"train": "a.tsv", "dev": "b.tsv", "texts": [1]}
    task = make_task("simcse", **files, sentences=True)
    examples = read_examples(task, "train", tmp_path)
    assert examples.texts == (["A fine film .", "See it !", "10/10 .", "Dull?", "Very ."],)
    assert examples.lines.tolist() == [1, 1, 2, 3, 3]
    assert examples.sources.tolist() == [0] * 5
    assert read_examples(task, "dev", tmp_path).texts[0][0] == "A fine film . See it !"


def test_sentences_of_texts_have_no_labels_and_one_column(
    make_task: MakeTask, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"`data.sentences` have no labels"):
        make_task("sentiment", train="a.tsv", texts=[1], label=2, sentences=True)
    (tmp_path / "a.tsv").write_text("a\tb\n", "utf-8")
    two = make_task("ranking", train="a.tsv", texts=[1, 2], sentences=True)
    with pytest.raises(TercetError, match="splits one text column, not 2"):
        read_examples(two, "train", tmp_path)


def test_pairs_are_made_of_the_sentences_of_all_columns(
    make_task: MakeTask, tmp_path: Path
) -> None:
    for name in ("a.tsv", "b.tsv"):
        (tmp_path / name).write_text("one\ttwo\t1\nthree\tfour\t0\n", "utf-8")
    files = {"train": "a.tsv", "dev": "b.tsv", "texts": [1, 2], "label": 3}
    task = make_task("taught", **files, pairs={"random": 5})
    examples = read_examples(task, "train", tmp_path)
    assert examples.texts == (["one", "two", "three", "four"],)
    assert examples.lines.tolist() == [1, 1, 2, 2]
    assert read_examples(task, "dev", tmp_path).texts == (["one", "three"], ["two", "four"])


def test_several_files_are_read_one_after_the_other(make_task: MakeTask, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("one\t1\ntwo\t2\nmore\t3\n", "utf-8")
    (tmp_path / "b.jsonl").write_text('{"1": "three", "2": 4}\n', "utf-8")
    task = make_task("sentiment", train=["a.tsv", "b.jsonl"], texts=["1"], label="2", limit=2)
    examples = read_examples(task, "train", tmp_path)
    assert examples.texts == (["one", "two", "three"],)
    assert examples.sources.tolist() == [0, 0, 1]
    assert examples.lines.tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        ("sentiment", {"texts": [1]}, "needs `data.label`"),
        ("paraphrase", {"texts": [1], "label": 2}, "reads 2 text columns, but `data.texts` has 1"),
        ("triplet", {"texts": [1, 2]}, "reads 3 text columns"),
        ("ranking", {"texts": [1]}, "reads 2 text columns"),
    ],
)
def test_columns_must_fit_the_modes(
    make_task: MakeTask, tmp_path: Path, kind: str, data: dict[str, object], message: str
) -> None:
    with pytest.raises(TercetError, match=message):
        read_examples(make_task(kind, train="a.tsv", **data), "train", tmp_path)


def write_tickets(folder: Path, rows: int = 60) -> None:
    lines = [f"Ticket {row // 2}\t{row % 4 // 2}\tuser {row // 12}\n" for row in range(rows)]
    (folder / "tickets.tsv").write_text("".join(lines), "utf-8")


def test_a_share_of_the_training_rows_is_dev(make_task: MakeTask, tmp_path: Path) -> None:
    write_tickets(tmp_path)
    task = make_task("sentiment", train="tickets.tsv", dev=0.2, texts=[1], label=2)
    train, dev = (read_examples(task, split, tmp_path) for split in ("train", "dev"))
    assert len(dev) == 12
    assert len(train) == 48
    assert not set(train.texts[0]) & set(dev.texts[0])
    assert train.labels is not None
    assert dev.labels is not None
    assert np.bincount(dev.labels).tolist() == [6, 6]
    assert sorted([*train.lines, *dev.lines]) == list(range(1, 61))
    both = read_once({"a": task}, tmp_path)
    for split, examples in (("train", train), ("dev", dev)):
        assert both("a", split).texts == examples.texts


def test_rows_of_one_group_are_on_one_side(make_task: MakeTask, tmp_path: Path) -> None:
    write_tickets(tmp_path)
    data = {"train": "tickets.tsv", "texts": [1], "label": 2, "group": 3}
    task = make_task("sentiment", dev=0.2, **data)
    lines = read_examples(task, "dev", tmp_path).lines
    assert len(lines) == 12
    assert len({(line - 1) // 12 for line in lines.tolist()}) == 1
    with pytest.raises(ValueError, match="`group` keeps rows together where `dev` is a share"):
        make_task("sentiment", dev="tickets.tsv", **data)


def test_a_share_needs_labels_that_the_teacher_gives_in_training(
    make_task: MakeTask, tmp_path: Path
) -> None:
    rows = "".join(f"one {row}\ttwo {row}\t{row % 6}\n" for row in range(30))
    (tmp_path / "pairs.tsv").write_text(rows, "utf-8")
    task = make_task("taught", train="pairs.tsv", dev=0.2, texts=[1, 2], label=3)
    assert read_examples(task, "train", tmp_path).labels is None
    dev = read_examples(task, "dev", tmp_path)
    assert dev.labels is not None
    assert dev.labels.dtype == np.float32


def test_connected_pairs_are_remarked_on(make_task: MakeTask, tmp_path: Path) -> None:
    rows = "".join(f"same\ttwo {row}\t{row % 2}\n" for row in range(30))
    (tmp_path / "pairs.tsv").write_text(rows, "utf-8")
    task = make_task("paraphrase", train="pairs.tsv", dev=0.2, texts=[1, 2], label=3)
    assert "only equal pairs" in read_examples(task, "dev", tmp_path).remark
    assert not read_examples(task, "train", tmp_path).remark


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_row_may_have_several_labels_or_none(
    make_task: MakeTask, tmp_path: Path, name: str
) -> None:
    contents = {
        "a.csv": 'text,tags\nx,"billing, refund"\ny,\nz,refund\n',
        "a.jsonl": '{"text": "x", "tags": ["billing", "refund"]}\n{"text": "y", "tags": []}\n'
        '{"text": "z", "tags": "refund"}\n',
    }
    (tmp_path / name).write_text(contents[name], "utf-8")
    data = {"train": name, "texts": "text", "label": "tags"}
    separated = {"label_separator": ","} if name == "a.csv" else {}
    examples = read_examples(make_task("tags", **data, **separated), "train", tmp_path)
    assert examples.labels is not None
    assert examples.labels.dtype == np.int64
    assert examples.labels.tolist() == [[1, 1], [0, 0], [0, 1]]
    assert not examples.skipped


def test_a_separator_needs_several_labels(make_task: MakeTask, tmp_path: Path) -> None:
    data = {"train": "a.csv", "texts": "text", "label": "tags", "label_separator": ","}
    with pytest.raises(TercetError, match=r"`data.label_separator` needs `multi_label = true`"):
        read_examples(make_task("sentiment", **data), "train", tmp_path)


def test_rows_of_one_source_are_read_from_a_file_of_several(
    make_task: MakeTask, tmp_path: Path
) -> None:
    lines = ["a\tb\tentailment\tsnli-1", "c\td\tneutral\tmnli", "e\tf\tneutral\tsnli-2"]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines), "utf-8")
    keys = {
        "layout": "nli-pairs",
        "dev": ["pairs.tsv"],
        "label_map": {"entailment": 1, "neutral": 0},
    }
    task = make_task("paraphrase", **keys, where={"column": 4, "matches": "snli-*"})
    examples = read_examples(task, "train", tmp_path)
    assert examples.texts == (["a", "e"], ["b", "f"])
    assert examples.lines.tolist() == [1, 3]
    assert examples.remark == "Only rows whose column `4` matches snli-*."
    assert len(read_examples(task, "dev", tmp_path)) == 3
    task = make_task("paraphrase", **keys, where={"column": 4, "matches": ["fever", "anli"]})
    with pytest.raises(TercetError, match="Column `4` of no row matches fever or anli"):
        read_examples(task, "train", tmp_path)


def test_nothing_left_is_told(make_task: MakeTask, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("text\tlabel\nx\t\n", "utf-8")
    task = make_task("sentiment", dev="a.tsv", texts="text", label="label", on_bad_row="skip")
    with pytest.raises(TercetError, match=r"no rows are left\. Skipped 1 bad row: a\.tsv line 2"):
        read_examples(task, "dev", tmp_path)
    (tmp_path / "pairs.tsv").write_text("one\tother\nwet\tdry\n", "utf-8")
    task = make_task("ranking", train="pairs.tsv", texts=["one", "other"], overlap=0.5)
    with pytest.raises(TercetError, match=r"left\. Only pairs that have 50% of their words in"):
        read_examples(task, "train", tmp_path)


def test_texts_for_prediction_keep_every_row(tmp_path: Path) -> None:
    lines = tmp_path / "a.txt"
    lines.write_text("one\n\ntwo\n", "utf-8")
    assert read_texts(lines) == (["one", "", "two"],)
    pairs = tmp_path / "a.csv"
    pairs.write_text("id,sentence1,sentence2\n1,a,b\n2,c,\n", "utf-8")
    assert read_texts(pairs, width=2) == (["a", "c"], ["b", ""])
    assert read_texts(pairs, ["sentence2"]) == (["b", ""],)
    with pytest.raises(TercetError, match="1 text column needed, not 2"):
        read_texts(pairs)
    with pytest.raises(TercetError, match="2 text columns needed, not 1"):
        read_texts(lines, width=2)


def test_rows_are_drawn_at_random_and_always_the_same(make_task: MakeTask, tmp_path: Path) -> None:
    rows = [f"text {number},{number % 2},{number // 4}" for number in range(40)]
    (tmp_path / "own.csv").write_text("\n".join(["text,label,author", *rows]), "utf-8")
    (tmp_path / "dev.csv").write_text("\n".join(["text,label,author", *rows[:9]]), "utf-8")
    own = {"train": "own.csv", "texts": "text", "label": "label"}

    def read(split: Split, **data: object) -> Examples:
        return read_examples(make_task("sentiment", **own, **data), split, tmp_path)

    every = read("train")
    drawn = read("train", draw=12, dev="dev.csv")
    places = [every.texts[0].index(text) for text in drawn.texts[0]]
    assert len(set(places)) == 12
    assert places == sorted(places)
    # Not the first rows: files are often sorted.
    assert max(places) > 30
    assert every.labels is not None
    assert drawn.labels is not None
    assert drawn.labels.tolist() == every.labels[places].tolist()
    assert drawn.lines.tolist() == every.lines[places].tolist()
    assert drawn.remark == "12 of 40 rows, drawn at random."
    assert read("train", draw=12, dev="dev.csv").texts == drawn.texts
    dev = read("dev", draw=3, dev="dev.csv")
    assert (len(dev), dev.remark) == (9, "")
    whole = read("train", draw=40)
    assert (whole.texts, whole.remark) == (every.texts, "")


def test_a_share_is_of_the_rows_that_are_drawn(make_task: MakeTask, tmp_path: Path) -> None:
    rows = [f"text {number},{number % 2},{number // 4}" for number in range(80)]
    (tmp_path / "own.csv").write_text("\n".join(["text,label,author", *rows]), "utf-8")
    own = {"train": "own.csv", "texts": "text", "label": "label", "draw": 40}
    (drawn,) = read_examples(make_task("sentiment", **own), "train", tmp_path).texts
    task = make_task("sentiment", **own, dev=0.25, group="author")
    (train,), (dev,) = (read_examples(task, side, tmp_path).texts for side in ("train", "dev"))
    assert sorted([*train, *dev]) == sorted(drawn)
    assert 6 <= len(dev) <= 14
    authors = [{int(text.split()[1]) // 4 for text in side} for side in (train, dev)]
    assert not authors[0] & authors[1]
