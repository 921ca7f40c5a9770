"""Fixtures for all tests: tiny encoders and sample data; real ones and a browser where they are."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# Set before torch is first imported, and inherited by the processes that tests start.
THREADS = "1" if "PYTEST_XDIST_WORKER" in os.environ else "2"
os.environ.setdefault("OMP_NUM_THREADS", THREADS)
os.environ.setdefault("HF_HUB_OFFLINE", "1")
if not Path("/dev/nvidiactl").exists():
    # Without a GPU its kernels are interpreted, which Triton decides when it is imported.
    os.environ.setdefault("TRITON_INTERPRET", "1")

CHROMIUM = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --renderer-process-limit=1 "
    "--disable-site-isolation-trials --disable-features=SitePerProcess,BackForwardCache"
)
TINY: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    # Wider than usual, so that a wrong bias or a skipped layer changes the result visibly.
    "initializer_range": 0.1,
}


def real_weights(name: str) -> Path:
    """The folder of a registry entry that is already on this machine, or skip."""
    from tercet import weights

    folder = weights.present(name)
    if folder is None:
        pytest.skip(f"no weights of {name} here; set TERCET_WEIGHTS or run: tercet weights {name}")
    return folder


@pytest.fixture
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models are loaded on the CPU by default, also by commands, where answers are compared digit
    by digit: a GPU computes in bf16."""
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.fixture(scope="session")
def minilm() -> Path:
    return real_weights("all-minilm-l6-v2")


@pytest.fixture(scope="session")
def mpnet() -> Path:
    return real_weights("all-mpnet-base-v2")


@pytest.fixture(scope="session")
def real_data() -> Path:
    folder = os.environ.get("TERCET_DATA")
    if not folder:
        pytest.skip("no real data here; set TERCET_DATA")
    return Path(folder)


@pytest.fixture(scope="session")
def encode_pairs() -> Callable[..., Any]:
    """Tokens of joined pairs, by a tokenizer; tests are skipped where the reference, `tokenizers`,
    cuts them differently."""
    import tokenizers
    from tokenizers import models, pre_tokenizers

    from tercet.text.template import longest_first

    backend = tokenizers.Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    for room, first, second in product(range(1, 7), range(1, 7), range(1, 7)):
        backend.enable_truncation(room)
        ids = backend.encode("a " * first, "b " * second).ids
        kept = longest_first(np.array([first]), np.array([second]), room=room)
        if [ids.count(0), ids.count(1)] != [int(side[0]) for side in kept]:
            pytest.skip(f"tokenizers {tokenizers.__version__} cuts pairs differently")

    def encode(tokenizer: Any, pairs: Sequence[tuple[str, str]], *, max_tokens: int) -> Any:
        sides = [
            tokenizer.pieces([pair[side] for pair in pairs], limit=max_tokens) for side in (0, 1)
        ]
        return tokenizer.template.pair(*sides, max_tokens=max_tokens)

    return encode


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium without a window, on an empty page; its logs tell what pages say and fetch."""
    programs = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    program, driver = next(filter(None, programs), None), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("no Chromium here: install chromium and chromedriver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*CHROMIUM.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    # Its own first page would go on fetching parts while a test counts what ours fetches.
    started.get("about:blank")
    yield started
    started.quit()


@pytest.fixture(scope="session")
def sample_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The six files that the project composes itself, in the CS224N layout."""
    from tercet.data.sample import write_sample

    folder = tmp_path_factory.mktemp("sample")
    write_sample(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory, sample_data: Path) -> Path:
    """A random BERT with its tokenizer: 2 layers, 32 wide, 4 heads, 64 positions."""
    from tokenizers.processors import BertProcessing
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("tiny-bert")
    vocabulary = word_pieces(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], sample_data)
    config = BertConfig(vocab_size=len(vocabulary), max_position_embeddings=64, **TINY)
    save_random(BertModel, config, folder)
    ends = BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {"cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]", "unk": "[UNK]"}
    save_tokenizer(folder, vocabulary, ends, names, kind="BertTokenizer")
    return folder


@pytest.fixture(scope="session")
def tiny_mpnet(tmp_path_factory: pytest.TempPathFactory, sample_data: Path) -> Path:
    """A random MPNet with its tokenizer: 2 layers, 32 wide, 4 heads, 64 tokens (66 positions)."""
    from tokenizers.processors import RobertaProcessing
    from transformers import MPNetConfig, MPNetModel

    folder = tmp_path_factory.mktemp("tiny-mpnet")
    vocabulary = word_pieces(["<s>", "<pad>", "</s>", "[UNK]", "<mask>"], sample_data)
    config = MPNetConfig(
        vocab_size=len(vocabulary),
        max_position_embeddings=66,
        relative_attention_num_buckets=32,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        **TINY,
    )
    save_random(MPNetModel, config, folder)
    ends = RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    names = {"cls": "<s>", "sep": "</s>", "pad": "<pad>", "mask": "<mask>", "unk": "[UNK]"}
    names |= {"bos": "<s>", "eos": "</s>"}
    save_tokenizer(folder, vocabulary, ends, names, kind="MPNetTokenizer")
    return folder


def word_pieces(special: list[str], sample: Path) -> list[str]:
    """Special tokens, single characters (so that every plain word can be spelt), sample words."""
    characters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    continued = [f"##{c}" for c in characters if c.isalnum()]
    text = " ".join(" ".join(row[2:]) for path in sample.glob("*.csv") for row in rows_of(path))
    words = sorted(set(re.findall(r"[a-z]{2,}", text.lower())))
    return [*special, *characters, *continued, *words]


def rows_of(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t"))


def save_random(model_class: Any, config: Any, folder: Path) -> None:
    """Write config.json and model.safetensors; biases and norms are made random too."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = model_class(config)
        with torch.no_grad():
            for parameter in vectors(model.parameters()):
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
    model.save_pretrained(folder)


def vectors(parameters: Iterable[Any]) -> Iterable[Any]:
    return (parameter for parameter in parameters if parameter.dim() == 1)


def save_tokenizer(
    folder: Path, vocabulary: list[str], ends: Any, names: dict[str, str], *, kind: str
) -> None:
    """Write tokenizer.json, tokenizer_config.json, special_tokens_map.json and vocab.txt."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    ids = {piece: index for index, piece in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token=names["unk"]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(sorted(set(names.values())))
    tokenizer.post_processor = ends
    tokenizer.save(str(folder / "tokenizer.json"))
    special = {f"{name}_token": piece for name, piece in names.items()}
    settings = special | {"do_lower_case": True, "tokenizer_class": kind, "model_max_length": 64}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    (folder / "special_tokens_map.json").write_text(json.dumps(special), "utf-8")
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", "utf-8")


ROWS = 60


def make_answers(
    task: str,
    mode: str,
    labels: Any,
    predictions: Any,
    *,
    classes: list[str] | None = None,
    **fields: Any,
) -> Any:
    """Answers with the metrics of their predictions."""
    import numpy as np

    from tercet.evaluation.answers import Answers
    from tercet.evaluation.bootstrap import estimates
    from tercet.evaluation.calibration import measure_calibration
    from tercet.evaluation.metrics import (
        classification_metrics,
        grade_metrics,
        multi_label_metrics,
    )
    from tercet.specs import decisions

    labels = np.asarray(labels)
    predictions = np.asarray(predictions, np.float64)
    if classes is not None:
        predictions = predictions.reshape(len(labels), len(classes))
    found = predictions
    if labels.ndim == 2:
        found = decisions(predictions, fields.get("thresholds"))
        values = multi_label_metrics(labels, found)
    else:
        values = (grade_metrics if classes is None else classification_metrics)(labels, found)
    fields.setdefault("metrics", estimates(values, labels, found, 1))
    return Answers(
        task=task,
        mode=mode,
        metric=next(iter(values)),
        classes=classes,
        labels=labels,
        predictions=predictions,
        calibration=None if classes is None else measure_calibration(labels, predictions),
        **fields,
    )


def make_task(*modes: Any, file: str = "dev.csv") -> Any:
    from tercet.evaluation.suites.tasks import TaskResult

    return TaskResult([], [file], {answers.mode: answers for answers in modes})


def make_texts() -> dict[str, tuple[list[str], ...]]:
    words = [
        "a",
        "quiet",
        "film",
        "about",
        "nothing",
        "that",
        "stays",
        "with",
        "you",
        "for",
        "a",
        "very",
        "long",
        "time",
    ]
    first = [f"{' '.join(words[: 2 + row % 12])} {row}" for row in range(ROWS)]
    second = [text.upper() for text in first]
    return {"sentiment": (first,), "paraphrase": (first, second), "similarity": (first, second)}


def make_tasks(skill: float, seed: int, texts: dict[str, tuple[list[str], ...]]) -> Any:
    import numpy as np

    from tercet.evaluation.suites.tasks import TasksResult

    truth, noise = np.random.default_rng(7), np.random.default_rng(seed)
    classes, pairs = truth.integers(0, 3, ROWS), truth.integers(0, 2, ROWS)
    grades = truth.uniform(0, 5, ROWS)
    scores = noise.normal(size=(ROWS, 3)) + 2.0 * skill * np.eye(3)[classes]
    likely = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    same = 1 / (1 + np.exp(-noise.normal(size=ROWS) - skill * (2 * pairs - 1)))
    both = np.stack([1 - same, same], axis=1)
    predicted = np.clip(skill * grades + noise.normal(size=ROWS), 0, 5)
    names = ["negative", "neutral", "positive"], ["different", "paraphrase"]
    answers = [
        make_answers(
            "sentiment",
            "single",
            classes,
            likely,
            classes=names[0],
            texts=texts.get("sentiment", ()),
        ),
        make_answers(
            "paraphrase", "bi", pairs, both, classes=names[1], texts=texts.get("paraphrase", ())
        ),
        make_answers("similarity", "bi", grades, predicted, texts=texts.get("similarity", ())),
    ]
    tasks = {each.task: make_task(each, file=f"{each.task}-dev.csv") for each in answers}
    return TasksResult(tasks, {"mean": 0.7, "mean-shifted": 0.75})


def make_evaluation(
    name: str = "model",
    *,
    skill: float = 1.0,
    seed: int = 0,
    texts: dict[str, tuple[list[str], ...]] | None = None,
    suites: dict[str, Any] | None = None,
) -> Any:
    """skill: how closely predictions follow the labels"""
    from tercet.evaluation.evaluation import Evaluation

    texts = make_texts() if texts is None else texts
    return Evaluation(
        model={
            "name": name,
            "encoder": "tiny",
            "recipe": "tercet/demo",
            "width": 32,
            "tasks": ["sentiment", "paraphrase", "similarity"],
        },
        data="sample",
        versions={"tercet": "0.1.0", "torch": "2.13.0"},
        machine={"device": "cpu", "gpu": None, "threads": 2},
        seconds=1.5,
        suites={"tasks": make_tasks(skill, seed, texts), **(suites or {})},
    )


def make_suites(missing: list[Any] | None = None) -> dict[str, Any]:
    """Results of the suites beyond `tasks`."""
    import numpy as np

    from tercet.evaluation.metrics import Estimate
    from tercet.evaluation.suites.geometry import GeometryResult, Projection, Spectrum
    from tercet.evaluation.suites.robustness import ChangeResult, Example, RobustnessResult
    from tercet.evaluation.suites.robustness.word_order import OrderResult
    from tercet.evaluation.suites.sts import SetResult, StsResult
    from tercet.evaluation.suites.transfer import TransferResult, TransfersResult

    half, none = Estimate(0.5, (0.4, 0.6)), Estimate(None)
    grades, cosines = np.array([0.0, 1.0, 4.0, 5.0]), np.array([0.1, 0.2, 0.9, 0.8])
    whole = SetResult(0, half, none, grades, cosines)
    fewer = SetResult(0, half, none, grades[:3], cosines[:3])
    example = Example(("It is.",), ("It is not.",), 0, 2)
    change = ChangeResult(10, False, "accuracy", 0.9, 0.8, 0.3, [example])
    order = OrderResult(10, half, 0.75, 4, None, {"lexical_overlap": 0.9})
    points = np.array([[row % 7, row % 5] for row in range(40)], float)
    texts = [f"sentence {row}" for row in range(40)]
    plane = Projection(points, texts, ["sentiment", "paraphrase"] * 20, [0.3, 0.2])
    return {
        "sts": StsResult(
            {"STS12": whole, "STS-B": whole}, {"STS12": whole, "STS-B": fewer}, missing or []
        ),
        "transfer": TransfersResult({"MR": TransferResult(10, {"accuracy": half}, [1.0])}),
        "robustness": RobustnessResult(
            {"PAWS": {"paraphrase": {"bi": order}}},
            {"sentiment": {"single": {"negation": change}}},
            {"sentiment": ["negative", "neutral", "positive"]},
        ),
        "geometry": GeometryResult(
            0.2, -2.0, None, 40, Spectrum(np.array([0.5, 0.3, 0.2]), 2.8), plane
        ),
    }


@pytest.fixture
def answers() -> Any:
    """Makes answers with the metrics of their predictions."""
    return make_answers


@pytest.fixture
def task() -> Any:
    """Makes a task's result of answers, one per mode."""
    return make_task


@pytest.fixture
def evaluation() -> Any:
    """Makes evaluations by hand."""
    return make_evaluation


@pytest.fixture
def suites() -> Any:
    """Makes results of the suites beyond `tasks`."""
    return make_suites


@pytest.fixture
def texts() -> dict[str, tuple[list[str], ...]]:
    return make_texts()
