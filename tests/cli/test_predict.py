from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
import torch

from tercet.cli import predict as predict_module
from tercet.cli.app import main
from tercet.folders.model_card import ModelInfo
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer

pytestmark = pytest.mark.usefixtures("on_cpu")
MLP = {"kind": "mlp"}
TASKS = {
    name: TaskSpec.model_validate(block)
    for name, block in {
        "sentiment": {
            "data": {"layout": "cs224n-sst"},
            "labels": ["bad", "fair", "good"],
            "single": {"head": MLP, "objective": {"kind": "cross-entropy"}},
        },
        "paraphrase": {
            "data": {"layout": "cs224n-quora"},
            "labels": ["different", "paraphrase"],
            "cross": {"head": MLP, "objective": {"kind": "binary-cross-entropy"}},
            "bi": {
                "head": {"kind": "features", "features": ["absdiff"]},
                "objective": {"kind": "cross-entropy"},
            },
        },
        "similarity": {
            "data": {"layout": "cs224n-sts"},
            "range": [0, 5],
            "bi": {
                "head": {"kind": "cosine"},
                "objective": {"kind": "mean-squared-error", "targets": [0, 1]},
            },
        },
    }.items()
}
TEXTS = ["a good film", "dull , and too long by an hour", "naïve 😀"]
PAIRS = [(TEXTS[0], TEXTS[1]), (TEXTS[2], TEXTS[2])]


@pytest.fixture(scope="module")
def model(tiny_encoder: Path) -> Model:
    torch.manual_seed(0)
    network = Network(load_encoder(tiny_encoder), pooling="mean", tasks=TASKS)
    for parameter in network.heads.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    info = ModelInfo(encoder="tiny", pooling="mean", max_tokens=64, tasks=TASKS)
    return Model(network, Tokenizer.load(tiny_encoder), info)


@pytest.fixture(scope="module")
def folder(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    model.save(folder)
    return folder


@pytest.fixture
def predict(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Exit code, parsed lines of stdout, and stderr of a call."""

    def run(*arguments: object, stdin: bytes = b"", model: bool = True):
        given = ["tercet", "predict", *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", given + (["--model", str(folder)] if model else []))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as end:
            main()
        result = capsys.readouterr()
        return end.value.code, [json.loads(line) for line in result.out.splitlines()], result.err

    return run


def test_sentences_from_the_command_line(predict, model: Model) -> None:
    code, lines, talk = predict("sentiment", "--text", TEXTS[0], "--text", TEXTS[2])
    assert (code, talk) == (0, "")
    found = model.sentiment([TEXTS[0], TEXTS[2]])
    assert [line["text"] for line in lines] == [TEXTS[0], TEXTS[2]]
    assert [(line["label"], line["name"]) for line in lines] == [(s.label, s.name) for s in found]
    for line, sentiment in zip(lines, found, strict=True):
        expected = dict(zip(["bad", "fair", "good"], sentiment.probabilities, strict=True))
        assert line["probabilities"] == pytest.approx(expected, abs=1e-6)


def test_pairs_from_the_command_line(predict, model: Model) -> None:
    texts = [part for text in PAIRS[0] + PAIRS[1] for part in ("--text", text)]
    for mode in ("cross", "bi"):
        _, lines, _ = predict("paraphrase", *texts, "--mode", mode)
        assert [(line["first"], line["second"]) for line in lines] == PAIRS
        shares = [line["probability"] for line in lines]
        assert shares == pytest.approx(model.paraphrase(PAIRS, mode).tolist(), abs=1e-6)
        for line, share in zip(lines, shares, strict=True):
            expected = {"different": 1 - share, "paraphrase": share}
            assert line["probabilities"] == pytest.approx(expected, abs=2e-6)
            assert line["label"] == int(share > 0.5)
            assert line["name"] == ["different", "paraphrase"][line["label"]]
    _, lines, _ = predict("similarity", *texts)
    assert [set(line) for line in lines] == [{"first", "second", "similarity"}] * 2
    assert lines[1]["similarity"] == pytest.approx(5)


def test_standard_input_is_answered_line_by_line_in_order(predict, monkeypatch) -> None:
    monkeypatch.setattr(predict_module, "BLOCK", 3)
    texts = [*TEXTS, "", *TEXTS, "last"]
    _, lines, _ = predict("sentiment", "-", stdin="\n".join(texts).encode())
    assert [line["text"] for line in lines] == texts
    _, lines, _ = predict("similarity", "-", stdin=b"a film\tthe film\r\nx\ty\n")
    assert [(line["first"], line["second"]) for line in lines] == [
        ("a film", "the film"),
        ("x", "y"),
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pairs.tsv", "sentence1\tsentence2\na film\tthe film\nx\ty\n"),
        ("pairs.csv", "sentence1,sentence2\na film,the film\nx,y\n"),
        (
            "pairs.jsonl",
            '{"sentence1": "a film", "sentence2": "the film"}\n{"sentence1":"x","sentence2":"y"}\n',
        ),
    ],
)
def test_pairs_from_a_file(predict, tmp_path: Path, name: str, content: str) -> None:
    file = tmp_path / name
    file.write_text(content, "utf-8")
    code, lines, _ = predict("similarity", file)
    assert code == 0
    assert [(line["first"], line["second"]) for line in lines] == [
        ("a film", "the film"),
        ("x", "y"),
    ]
    swapped = predict("similarity", file, "--column", "sentence2", "--column", "sentence1")[1]
    assert [line["first"] for line in swapped] == ["the film", "y"]


def test_sentences_from_a_file(predict, tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(TEXTS) + "\n", "utf-8")
    assert [line["text"] for line in predict("sentiment", file)[1]] == TEXTS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sentiment"], "either FILE"),
        (["sentiment", "x.txt", "--text", "a"], "either FILE"),
        (["sentiment", "no-such.txt"], "no-such.txt"),
        (["sentiment", "--text", "a", "--column", "b"], "--column"),
        (["sentiment", "--text", "a", "--mode", "bi"], "no mode `bi`, only single"),
        (["mood", "--text", "a"], "its heads are sentiment, paraphrase, similarity"),
        (["similarity", "--text", "a"], "a pair needs two"),
        (["similarity", "--text", "a", "--text", "b", "--mode", "cross"], "no mode `cross`"),
        (["similarity", "--text", "a", "--text", "b", "--mode", "fast"], "--mode"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(predict, arguments, message: str) -> None:
    code, lines, talk = predict(*arguments)
    assert (code, lines) == (2, [])
    assert message in talk
    assert talk.count("\n") == 1


def test_bad_standard_input_is_named_by_its_line(predict) -> None:
    code, _, talk = predict("similarity", "-", stdin=b"a\tb\nno tab\n")
    assert (code, "standard input line 2" in talk) == (2, True)
    code, _, talk = predict("sentiment", "-", stdin=b"fine\n\xff\xfe\n")
    assert (code, "standard input line 2: is not UTF-8" in talk) == (2, True)


def test_without_a_model_the_one_that_ships_answers(predict) -> None:
    code, lines, _ = predict("sentiment", "--text", "A quiet triumph.", model=False)
    assert code == 0
    assert "positive" in str(lines)


def test_without_a_model_where_none_ships_it_says_so(
    predict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tercet.folders.finding.SHIPPED_FOLDER", tmp_path / "absent")
    code, _, talk = predict("sentiment", "--text", "a", model=False)
    assert (code, "give a model folder" in talk) == (2, True)


def test_long_texts_are_counted_and_read_in_windows_where_that_is_asked(predict) -> None:
    long = "a good film . " * 40 + "dull and dull"
    code, (cut,), err = predict("sentiment", "--text", long)
    assert code == 0
    assert "1 of 1 text was longer than 64 tokens and was truncated (" in err
    assert "--long windows reads them whole." in err
    code, (whole,), err = predict("sentiment", "--text", long, "--long", "windows")
    assert code == 0
    assert "1 of 1 text was longer than 64 tokens and was read in windows." in err
    assert cut["probabilities"] != whole["probabilities"]
    assert "longer" not in predict("sentiment", "--text", "a good film")[2]
