"""What `data check` finds in files that have every fault on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from tercet.data.checks import check_files
from tercet.errors import TercetError

FAULTY = """\tid\tsentence1\tsentence2\tis_duplicate
0\ta\tHow are you?\tHow do you do?\t1.0
1\tb\tHow are you?\tHow do you do?\t1
2\tc\thow  DO you do?\tHow are you?\t0.0
3\td\tone two three\tfour\t0.0
4\te\tno label\tat all\t
5\tf\t\tno first text\t1.0
6\tg\ta\tb\tnan
"""


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    path = tmp_path / "faulty.csv"
    # Enough sound rows that the label column counts as numbers in spite of a NaN.
    sound = "".join(f"{n}\tx\tleft {n}\tright {n}\t{n % 2}.0\n" for n in range(20))
    path.write_text(FAULTY + sound, "utf-8")
    return path


def test_one_file(faulty: Path) -> None:
    (found,) = check_files([faulty]).files
    assert (found.texts, found.label) == (["sentence1", "sentence2"], "is_duplicate")
    assert found.rows == 27
    assert [(bad.line, bad.value) for bad in found.bad] == [(6, ""), (7, ""), (8, "nan")]
    assert (found.duplicate_rows.count, found.duplicate_rows.lines) == (1, [[2, 3]])
    assert (found.duplicate_texts.count, found.duplicate_texts.lines) == (2, [[2, 3, 4]])
    assert (found.conflicts.count, found.conflicts.lines) == (1, [[2, 3, 4]])
    assert found.labels is not None
    assert (found.labels.lowest, found.labels.highest) == (0, 1)
    assert found.labels.counts == {"0": 12, "1": 12}
    assert (found.lengths.median, found.lengths.longest, found.lengths.longest_line) == (2, 4, 2)


def test_two_files_share_pairs_in_either_order(faulty: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(
        '{"sentence1": "FOUR", "sentence2": "one two  three"}\n'
        '{"sentence1": "left 3", "sentence2": "right 4"}\n',
        "utf-8",
    )
    (shared,) = check_files([faulty, other]).overlaps
    assert shared.pairs is not None
    assert (shared.pairs.count, shared.pairs.lines) == (1, [[5, 1]])
    assert shared.sentences.count == 4
    assert [12, 2] in shared.sentences.lines


def test_lists_count_for_each_of_their_labels(tmp_path: Path) -> None:
    path = tmp_path / "tags.jsonl"
    path.write_text(
        '{"text": "a", "label": ["x", "y"]}\n{"text": "b", "label": []}\n'
        '{"text": "c", "label": ["x"]}\n',
        "utf-8",
    )
    (found,) = check_files([path]).files
    assert not found.bad
    assert found.labels is not None
    assert found.labels.counts == {"x": 2, "y": 1}


def test_grades_words_and_no_labels(tmp_path: Path) -> None:
    grades = tmp_path / "grades.csv"
    grades.write_text("text,score\n" + "".join(f"t{n},{n / 10}\n" for n in range(40)), "utf-8")
    words = tmp_path / "words.tsv"
    words.write_text("a\tyes\nb\tno\nc\tno\n", "utf-8")
    bare = tmp_path / "bare.txt"
    bare.write_text("t1\nt1\n", "utf-8")
    report = check_files([grades, bare])
    assert report.files[0].labels is not None
    assert (report.files[0].labels.highest, report.files[0].labels.counts) == (3.9, None)
    assert report.files[1].labels is None
    assert report.files[1].duplicate_rows.count == 1
    assert report.overlaps[0].pairs is None
    assert report.overlaps[0].sentences.lines == [[3, 1]]
    (found,) = check_files([words], texts=["1"], label="2").files
    assert found.labels is not None
    assert found.labels.counts == {"no": 2, "yes": 1}
    assert found.bad == []


def test_columns_that_cannot_be_guessed_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("some words\tmore words\tyes\n", "utf-8")
    with pytest.raises(TercetError, match="cannot tell which columns are texts") as result:
        check_files([path])
    assert str(result.value).endswith("number: 1 ('some words'), 2 ('more words'), 3 ('yes').")


def test_quora_train_and_dev_share_no_pair(real_data: Path) -> None:
    course = real_data / "cs224n"
    report = check_files([course / "quora-train.csv", course / "quora-dev.csv"])
    train, dev = report.files
    assert (train.rows, len(train.bad)) == (68_317, 0)
    assert [bad.line for bad in dev.bad] == [2577, 14222]
    (shared,) = report.overlaps
    assert shared.pairs is not None
    assert shared.pairs.count == 0
    assert shared.sentences.count > 0
