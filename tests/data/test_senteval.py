from __future__ import annotations

from pathlib import Path

import pytest

from tercet.data.files import MissingFileError
from tercet.data.senteval import STS_SETS, read_folded, read_split, read_sts
from tercet.errors import TercetError


def write(folder: Path, name: str, content: str, encoding: str = "utf-8") -> None:
    path = folder / "senteval" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode(encoding))


def test_pairs_without_a_grade_are_left_out_and_counted(tmp_path: Path) -> None:
    for part in ("FNWN", "headlines", "OnWN"):
        write(tmp_path, f"STS/STS13-en-test/STS.input.{part}.txt", f'a {part}\t"b\nc\td\ne\tf\n')
        write(tmp_path, f"STS/STS13-en-test/STS.gs.{part}.txt", "1.5\n\n5\n")
    pairs = read_sts("STS13", tmp_path)
    assert pairs.first == ["a FNWN", "e", "a headlines", "e", "a OnWN", "e"]
    assert pairs.second[:2] == ['"b', "f"]
    assert pairs.grades.tolist() == [1.5, 5.0] * 3
    assert pairs.ungraded == 3


def test_grades_must_be_as_many_as_pairs_and_numbers(tmp_path: Path) -> None:
    for part in ("FNWN", "headlines", "OnWN"):
        write(tmp_path, f"STS/STS13-en-test/STS.input.{part}.txt", "a\tb\n")
        write(tmp_path, f"STS/STS13-en-test/STS.gs.{part}.txt", "1\n2\n")
    with pytest.raises(TercetError, match=r"gs\.FNWN\.txt: has 2 lines, but .* has 1 pairs"):
        read_sts("STS13", tmp_path)
    write(tmp_path, "STS/STS13-en-test/STS.gs.FNWN.txt", "high\n")
    with pytest.raises(TercetError, match="line 1: grade 'high' is not a finite number"):
        read_sts("STS13", tmp_path)


def test_classes_lie_in_files_of_their_own_in_latin_1(tmp_path: Path) -> None:
    write(tmp_path, "CR/custrev.neg", "bad \n naïve\x85 so\n", "latin-1")
    write(tmp_path, "CR/custrev.pos", "good\n")
    rows = read_folded("CR", tmp_path)
    assert rows.texts == (["bad", "naïve\x85 so", "good"],)
    assert rows.labels.tolist() == [0, 0, 1]


def test_splits_of_questions_and_pairs(tmp_path: Path) -> None:
    write(tmp_path, "TREC/TREC_10.label", "NUM:dist How far ?\nHUM:ind Who is José ?\n", "latin-1")
    questions = read_split("TREC", "test", tmp_path)
    assert questions.texts == (["How far ?", "Who is José ?"],)
    assert questions.labels.tolist() == [5, 3]
    header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
    write(tmp_path, "MRPC/msr_paraphrase_test.txt", header + '1\t7\t8\tHe "said\tHe did\r\n')
    pairs = read_split("MRPC", "test", tmp_path)
    assert pairs.texts == (['He "said'], ["He did"])
    assert pairs.labels.tolist() == [1]
    write(tmp_path, "SST/binary/sentiment-dev", "fine \t1\ndull\t2\n")
    with pytest.raises(TercetError, match="line 2: label '2' is not one of 0, 1"):
        read_split("SST-2", "dev", tmp_path)
    write(tmp_path, "SST/binary/sentiment-dev", "fine 1\n")
    with pytest.raises(TercetError, match="line 1: has 1 cells where at least 2"):
        read_split("SST-2", "dev", tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError) as result:
        read_sts("SICK-R", tmp_path)
    assert result.value.file == "SICK/SICK_test_annotated.txt"


def test_real_files_have_as_many_rows_as_published(real_data: Path) -> None:
    pairs = {name: len(read_sts(name, real_data).grades) for name in STS_SETS}
    assert pairs == {
        "STS12": 3108,
        "STS13": 1500,
        "STS14": 3750,
        "STS15": 3000,
        "STS16": 1186,
        "STS-B": 1379,
        "SICK-R": 4927,
    }
    folded = {
        name: len(read_folded(name, real_data).labels) for name in ("MR", "CR", "SUBJ", "MPQA")
    }
    assert folded == {"MR": 10_662, "CR": 3_775, "SUBJ": 10_000, "MPQA": 10_606}
    splits = [("SST-2", "train", 67_349), ("SST-2", "dev", 872), ("SST-2", "test", 1_821)]
    splits += [("TREC", "train", 5_452), ("TREC", "test", 500)]
    splits += [("MRPC", "train", 4_076), ("MRPC", "test", 1_725)]
    for name, split, rows in splits:
        found = read_split(name, split, real_data)
        assert {len(texts) for texts in found.texts} == {len(found.labels)} == {rows}
