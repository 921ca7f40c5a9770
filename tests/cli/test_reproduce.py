from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tercet.cli.app import main
from tercet.nn.fingerprint import fingerprint
from tercet.nn.folder import load_encoder
from tercet.recipe import bundled
from tercet.reproduce.contrasts import CONTRASTS
from tercet.reproduce.runs import Outcome


def test_experiments_run_resume_and_fail_alone(
    tiny_encoder: Path,
    sample_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    out = tmp_path / "out"
    # The sample has no CFIMDB, so the second cannot train.
    names = ["sbert/cfimdb-finetune", "siamese/sts-mse"]
    # Whoever has the reports' encoder puts it into a folder of its name.
    shutil.copytree(tiny_encoder, tmp_path / "weights" / "bert-base-uncased")
    monkeypatch.setenv("TERCET_WEIGHTS", str(tmp_path / "weights"))
    options = ["--encoder", "bert-base-uncased", "--data", sample_data, "--out", out, "--jobs", 2]
    changes = ["--set", "stages.0.epochs=0.05", "--set", "encoder.max_tokens=24"]

    def reproduce(names: list[str], *, code: int) -> None:
        arguments = ["tercet", "reproduce", *names, *options, *changes, "--train-scores"]
        monkeypatch.setattr(sys, "argv", [str(argument) for argument in arguments])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == code

    reproduce(names, code=2)
    result = capsys.readouterr()
    assert result.out.strip() == str(out / "table.md")
    assert "sbert/cfimdb-finetune with seed 11711 failed: " in result.err
    assert "error: 1 of 2 experiments failed; the table says why." in result.err
    reproduce(names, code=2)
    table = json.loads((out / "table.json").read_text())
    start = f"bert-base-uncased {fingerprint(load_encoder(tiny_encoder))}"
    assert table["facts"]["weights at the start"] == start
    rows = table["rows"]
    assert [row["name"] for row in rows] == names
    assert "ids-cfimdb-train.csv" in rows[0]["failures"][0]
    assert rows[1]["published"] == {"similarity": 0.62}
    assert len(rows[1]["measured"]["similarity"]["values"]) == 1
    assert (out / "figure.svg").is_file()
    assert -1.0 <= rows[1]["measured_train"]["similarity"] <= 1.0
    # The second call found the first one's run finished.
    assert "1 of 2 are finished already." in capsys.readouterr().err
    # A third one, of another name, keeps both rows, the failed one with its reason.
    reproduce(["siamese/sts-l1"], code=0)
    later = json.loads((out / "table.json").read_text())["rows"]
    assert [row["name"] for row in later] == [names[0], "siamese/sts-l1", names[1]]
    assert [later[0], later[2]] == rows


def test_all_experiments_with_one_encoder_are_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[list[str], list[str]]] = []

    def note(names: list[str], **options: Any) -> list[Outcome]:
        calls.append((names, options["changes"]))
        return []

    monkeypatch.setattr("tercet.reproduce.runs.run_all", note)
    arguments = ["reproduce", "--all", "--encoder", "bert-base-uncased", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["tercet", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    (names, changes) = calls[0]
    reports = [recipe.name for recipe in bundled() if recipe.parse().report is not None]
    assert sorted(names) == sorted(reports)
    compared = {name for each in CONTRASTS for name in (each.first, each.second)}
    assert set(names[: len(compared)]) == compared
    assert changes == ["encoder.name=bert-base-uncased"]
    monkeypatch.setattr(sys, "argv", ["tercet", *arguments, "simcse"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
