from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import tercet
from tercet.cli.app import main

TEXTS = ["a film", "An hour too long, and dull!"]


@pytest.fixture
def export(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Exit code, stdout and stderr of a call."""

    def run(*arguments: object) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["tercet", "export", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        result = capsys.readouterr()
        return end.value.code, result.out, result.err

    return run


def test_an_export_embeds_as_the_model_does(export, tiny_mpnet: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    out = tmp_path / "exported"
    code, result, talk = export(tiny_mpnet, "--format", "sentence-transformers", "--out", out)
    assert (code, result) == (0, "")
    assert str(out) in talk
    ours = tercet.load(tiny_mpnet, device="cpu").embed(TEXTS)
    assert np.abs(SentenceTransformer(str(out), device="cpu").encode(TEXTS) - ours).max() < 1e-5
    assert (tercet.load(out, device="cpu").embed(TEXTS) == ours).all()


@pytest.mark.parametrize(("form", "near"), [("onnx", 0.99999), ("onnx-int8", 0.99)])
def test_onnx_embeds_nearly_as_the_model_does(
    export, tiny_encoder: Path, tmp_path: Path, form: str, near: float
) -> None:
    out = tmp_path / "exported"
    code, result, talk = export(tiny_encoder, "--format", form, "--out", out)
    assert (code, result, talk.count("\n")) == (0, "", 1)
    assert str(out) in talk
    ours = tercet.load(tiny_encoder, device="cpu").embed(TEXTS)
    assert (tercet.load(out).embed(TEXTS) * ours).sum(axis=1).min() > near
    # Graphs are the end of the way: they cannot be exported again, nor replaced by other things.
    code, _, talk = export(out, "--format", form, "--out", tmp_path / "again")
    assert code == 2
    assert "holds ONNX graphs" in talk
    assert [path.name for path in tmp_path.iterdir()] == ["exported"]


def test_without_a_model_the_one_that_ships_is_written(
    export, tiny_mpnet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tercet.load(tiny_mpnet, device="cpu")
    model.save(tmp_path / "shipped")
    monkeypatch.setattr("tercet.folders.finding.SHIPPED_FOLDER", tmp_path / "shipped")
    assert export("--out", tmp_path / "exported")[0] == 0
    exported = tercet.load(tmp_path / "exported", device="cpu")
    assert (exported.embed(TEXTS) == model.embed(TEXTS)).all()


def test_mistakes_leave_nothing_behind(export, tiny_mpnet: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.txt").write_text("mine", "utf-8")
    new = tmp_path / "new"
    for arguments, result in [
        ([tiny_mpnet, "--out", full], "not overwritten"),
        ([full, "--out", new], "is not a model"),
        ([tiny_mpnet, "--out", new, "--format", "pickle"], "--format"),
        ([tiny_mpnet], "--out"),
    ]:
        code, out, talk = export(*arguments)
        assert (code, out) == (2, "")
        assert result in talk
        assert talk.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
