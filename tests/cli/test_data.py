"""`tercet data check` as users run it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tercet.cli.app import main


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["tercet", "data", "check", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("q\tr\tsame\na b\tc\t1\nc\ta  B\t0\nd\t\t1\n", "utf-8")
    return path


def test_findings_are_lines_with_tabs_in_a_pipe(
    pairs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, pairs, pairs, "--text", "q", "--text", "r", "--label", "same") == 0
    out, err = capsys.readouterr()
    lines = [line.split("\t") for line in out.splitlines()]
    assert lines[0] == ["file", "what", "found"]
    found = [line[1:] for line in lines if line[0] == pairs.name]
    assert ["columns", "q, r -> same"] in found
    assert ["bad row", "line 4: no text in column `r`"] in found
    assert ["duplicate texts", "1 (lines 2/3)"] in found
    assert ["label conflicts", "1 (lines 2/3)"] in found
    assert [f"{pairs.name} + {pairs.name}", "common pairs", "1 (lines 2/2)"] in lines
    assert err == ""


def test_findings_as_json(
    pairs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, pairs, "--text", "q", "--label", "same", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["files"][0]["rows"] == 3
    assert report["files"][0]["labels"]["counts"] == {"0": 1, "1": 2}
    assert report["overlaps"] == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.csv", "missing.csv: no such file"),
        (".", "is a folder"),
        ("pairs.tsv", "cannot tell which"),
    ],
)
def test_what_cannot_be_read_ends_with_two(
    pairs: Path,
    name: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, pairs.parent / name, "--label", "same") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_rows_that_training_files_imply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train, dev = tmp_path / "train.tsv", tmp_path / "dev.tsv"
    train.write_text("q\tr\tsame\na\tb\t1\nb\tc\t1\n", "utf-8")
    dev.write_text("q\tr\tsame\nA!\tc\t1\nd\te\t0\n", "utf-8")
    columns = ["--text", "q", "--text", "r", "--label", "same"]
    arguments = ["tercet", "data", "overlap", str(train), str(dev), *columns]

    def overlap(*more: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", [*arguments, *more])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    code, out, err = overlap()
    lines = [line.split("\t") for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert ["dev.tsv", "folded", "0 of 2", "0.0%", ""] in lines
    assert ["dev.tsv", "both texts", "1 of 2", "50.0%", "2"] in lines
    assert ["dev.tsv", "implied, label 1", "1 of 1", "100.0%", "2"] in lines
    code, out, err = overlap("--eval", str(train), "--json")
    (file,) = json.loads(out)["files"]
    assert (file["rows"], file["exact"]["count"]) == (2, 2)
    arguments[3:5] = [str(dev)]
    assert overlap()[0] == 2
