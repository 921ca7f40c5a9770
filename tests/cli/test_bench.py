from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tercet.cli import bench as bench_module
from tercet.cli import rates
from tercet.cli.app import main
from tercet.infer import half


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    """Exit code, stdout and stderr of a call."""

    def run(*arguments: str) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["tercet", "bench", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        result = capfd.readouterr()
        return end.value.code, result.out, result.err

    return run


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bench_module, "FOLDER", tmp_path)
    return tmp_path


def test_all_are_listed(bench) -> None:
    code, out, _ = bench("--list")
    assert code == 0
    lines = dict(line.split("\t") for line in out.splitlines())
    assert "sentence-transformers" in lines["embed"]
    assert {"embed", "latency", "startup"} <= lines.keys()
    assert not {"records", "real_data"} & lines.keys(), "what several share is not a benchmark"


def test_one_is_run_with_its_arguments(bench, scripts: Path) -> None:
    script = 'import sys\nif __name__ == "__main__": print(sys.argv[1:]); sys.exit(3)'
    (scripts / "echo.py").write_text(script, "utf-8")
    code, out, _ = bench("echo", "a", "--", "--peer", "b")
    assert (code, out.strip()) == (3, "['a', '--peer', 'b']")


def test_mistakes_are_one_sentence(bench, scripts: Path) -> None:
    code, _, talk = bench("embed")
    assert code == 2
    assert "not part of the installed package" in talk
    (scripts / "embed.py").write_text('"""Embedding."""\nif __name__ == "__main__": ...', "utf-8")
    (scripts / "shared.py").write_text('"""What several share."""', "utf-8")
    code, _, talk = bench("embd")
    assert code == 2
    assert talk.strip() == "error: Unknown benchmark 'embd'; known are embed."


@pytest.mark.usefixtures("on_cpu")
def test_this_machine_is_measured(bench, scripts: Path, monkeypatch, tiny_encoder: Path) -> None:
    """Without the repository, with whatever is installed."""
    monkeypatch.setattr(rates, "SINGLES", 2)
    monkeypatch.setattr(rates, "RUNS", 1)
    monkeypatch.setattr(half, "cpu_has", lambda _: False)
    arguments = ("--model", str(tiny_encoder), "--sentences", "64")
    code, out, _ = bench(*arguments)
    lines = [line.split("\t") for line in out.splitlines()]
    assert code == 0
    assert lines[0][:3] == ["library", "sentences/s", "ratio"]
    names = ["sentence-transformers", "tercet", "tercet onnx, CPU", "tercet onnx-int8, CPU"]
    assert [line[0] for line in lines[1:]] == names
    assert lines[1][2] == lines[1][4] == "1.00"
    assert all(float(line[2]) > 0 and float(line[5]) > 0.99 for line in lines[1:])
    found = rates.importlib.util.find_spec
    absent = {"sentence_transformers", "onnxruntime"}
    monkeypatch.setattr(
        rates.importlib.util, "find_spec", lambda name: None if name in absent else found(name)
    )
    code, out, talk = bench(*arguments)
    assert code == 0
    assert [line.split("\t")[0] for line in out.splitlines()[1:]] == ["tercet"]
    monkeypatch.setattr(half, "cpu_has", lambda instructions: instructions == "amx_bf16")
    _, out, _ = bench(*arguments)
    rows = {line.split("\t")[0]: line.split("\t")[5] for line in out.splitlines()[1:]}
    assert rows.keys() == {"tercet", "tercet bf16"}
    assert rows["tercet"] == "1.0000"
    assert float(rows["tercet bf16"]) > 0.99
    assert "pip install sentence-transformers" in talk
    assert "pip install 'tercet[onnx]'" in talk
