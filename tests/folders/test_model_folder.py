from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file, save_file

import tercet
from tercet.errors import TercetError
from tercet.folders.model_card import ModelInfo
from tercet.folders.model_folder import Parts
from tercet.folders.onnx_folder import export_onnx
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.specs import DataSpec, Pooling, TaskSpec
from tercet.text.tokenizer import Tokenizer

POOLINGS: list[Pooling] = ["cls", "pooler", "mean", "max"]
TEXTS = ["a film that is worth a look", "dull", "", "An hour too long, and then some! " * 9]
PAIRS = [(TEXTS[0], TEXTS[1]), (TEXTS[1], TEXTS[3])]
MLP = {"kind": "mlp", "hidden": [8]}
TASKS = {
    name: TaskSpec.model_validate(block)
    for name, block in {
        "sentiment": {
            "data": {"layout": "cs224n-sst"},
            "labels": ["bad", "good | great"],
            "single": {"head": MLP, "objective": {"kind": "cross-entropy"}},
        },
        "similarity": {
            "data": {"train": ["a.csv"], "texts": ["s1", "s2"], "label": "grade"},
            "range": [0, 5],
            "bi": {"head": {"kind": "cosine"}, "objective": {"kind": "mean-absolute-error"}},
            "cross": {"head": MLP, "objective": {"kind": "mean-squared-error"}},
        },
    }.items()
}


def build(folder: Path, *, pooling: Pooling = "mean", **facts: Any) -> Model:
    torch.manual_seed(1)
    network = Network(load_encoder(folder), pooling=pooling, tasks=TASKS)
    for parameter in network.parameters():
        parameter.data.add_(torch.randn_like(parameter), alpha=0.05)
    facts = {"encoder": "tiny", "max_tokens": 40, "tasks": TASKS} | facts
    return Model(network, Tokenizer.load(folder), ModelInfo(pooling=pooling, **facts))


@pytest.fixture(scope="module", params=["bert", "mpnet"])
def encoder(request, tiny_encoder: Path, tiny_mpnet: Path) -> Path:
    return tiny_encoder if request.param == "bert" else tiny_mpnet


@pytest.mark.parametrize("pooling", POOLINGS)
def test_what_is_saved_embeds_the_same_everywhere(encoder, pooling, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, AutoTokenizer

    model = build(encoder, pooling=pooling)
    folder = tmp_path / "model"
    model.save(folder)
    ours = model.embed(TEXTS)
    theirs = SentenceTransformer(str(folder), device="cpu")
    assert theirs.max_seq_length == 40
    assert np.abs(ours - theirs.encode(TEXTS)).max() < 1e-5

    bare, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    kept = bare.state_dict()
    stored = load_file(folder / "model.safetensors")
    assert stored.keys() <= kept.keys()
    assert all(torch.equal(stored[name], kept[name]) for name in stored)
    ids = tokenizer(TEXTS, truncation=True, max_length=40)["input_ids"]
    tokens = model.tokenizer.encode(TEXTS, max_tokens=40)
    assert [id_ for row in ids for id_ in row] == tokens.ids.tolist()


@pytest.mark.parametrize("pooling", POOLINGS)
def test_saved_and_loaded_it_predicts_the_same(encoder, pooling, tmp_path: Path) -> None:
    model = build(encoder, pooling=pooling)
    model.save(tmp_path / "model")
    again = tercet.load(tmp_path / "model", device="cpu")
    assert again.info == model.info
    assert (again.embed(TEXTS) == model.embed(TEXTS)).all()
    assert again.sentiment(TEXTS) == model.sentiment(TEXTS)
    for mode in ("cross", "bi"):
        assert (again.similarity(PAIRS, mode) == model.similarity(PAIRS, mode)).all()


def test_a_run_folder_stands_for_its_model(tiny_encoder: Path, tmp_path: Path) -> None:
    model = build(tiny_encoder)
    model.save(tmp_path / "run" / "model")
    (tmp_path / "run" / "metrics.jsonl").write_text("", "utf-8")
    assert (tercet.load(tmp_path / "run", device="cpu").embed(TEXTS) == model.embed(TEXTS)).all()


def test_the_folder_holds_no_pickle_and_names_no_machine(encoder: Path, tmp_path: Path) -> None:
    build(encoder, pooling="pooler").save(tmp_path / "model")
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= {".json", ".safetensors", ".txt", ".md"}
    for path in files:
        if path.suffix in (".json", ".md"):
            assert str(tmp_path) not in path.read_text("utf-8")
    assert list(tmp_path.iterdir()) == [tmp_path / "model"]


def test_another_user_may_read_what_was_saved(tiny_encoder: Path, tmp_path: Path) -> None:
    (tmp_path / "neighbour").touch()
    usual = (tmp_path / "neighbour").stat().st_mode
    build(tiny_encoder, pooling="pooler").save(tmp_path / "model")
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert {path.stat().st_mode for path in files} == {usual}


def test_the_card_tells_tasks_figures_and_use(tiny_encoder: Path, tmp_path: Path) -> None:
    figures = {"similarity": {"bi": {"pearson": 0.8125, "spearman": None}}}
    build(tiny_encoder, metrics=figures, recipe="tercet/quick").save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text("utf-8")
    assert card.startswith("---\nlibrary_name: sentence-transformers\n")
    for result in (
        "Recipe: tercet/quick.",
        "| sentiment | bad / good \\| great | single | not measured |",
        "| similarity | a grade from 0 to 5 | bi | pearson 0.812, spearman undefined |",
        "layout cs224n-sst; trained on ids-sst-train.csv; measured on ids-sst-dev.csv",
        "trained on a.csv",
        'model.predict("similarity", [("A", "B")])',
        "SentenceTransformer",
    ):
        assert result in card
    assert tercet.load(tmp_path / "model").info.metrics == figures


def test_examples_are_kept_and_shown_on_the_card(tiny_encoder: Path, tmp_path: Path) -> None:
    examples = {"sentiment": ["A *great*\nfilm."], "similarity": [["One.", "Two."]]}
    build(tiny_encoder, examples=examples).save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text("utf-8").splitlines()
    assert "  - A \\*great\\* film." in card
    assert "  - One. / Two." in card
    assert tercet.load(tmp_path / "model").info.examples == examples
    build(tiny_encoder).save(tmp_path / "without")
    assert "examples" not in (tmp_path / "without" / "tercet.json").read_text("utf-8")
    assert "## Examples" not in (tmp_path / "without" / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    "examples",
    [
        {"sentiment": ["a"] * 4},
        {"sentiment": ["a" * 201]},
        {"sentiment": [["a", "b"]]},
        {"similarity": ["a"]},
        {"similarity": [["a", "b", "c"]]},
        {"topic": ["a"]},
    ],
)
def test_examples_that_do_not_fit_are_refused(examples: Any) -> None:
    with pytest.raises(ValidationError, match="examples"):
        ModelInfo(encoder="tiny", pooling="mean", max_tokens=8, tasks=TASKS, examples=examples)


def test_the_card_measures_no_task_that_trains_heads_of_another(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    phrases = {"like": "sentiment", "data": DataSpec(layout="cs224n-sst-phrases")}
    further = TASKS["sentiment"].model_copy(update=phrases)
    build(tiny_encoder, tasks=TASKS | {"phrases": further}).save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text("utf-8")
    result = "- phrases: layout cs224n-sst-phrases; trained on sst-train-phrases.csv"
    assert result in card.splitlines()


def test_saving_replaces_a_model_folder_but_nothing_else(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    model = build(tiny_encoder)
    folder = tmp_path / "model"
    folder.mkdir()  # an empty one is taken
    model.save(folder)
    (folder / "old").write_text("x", "utf-8")
    tercet.load(folder).save(folder)  # also over itself
    assert not (folder / "old").exists()
    assert (tercet.load(folder, device="cpu").embed(TEXTS) == model.embed(TEXTS)).all()

    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("mine", "utf-8")
    file = tmp_path / "file"
    file.write_text("mine", "utf-8")
    for target, result in [(precious, "is not a model folder"), (file, "is a file")]:
        with pytest.raises(TercetError, match=result):
            model.save(target)
    assert [path.name for path in precious.iterdir()] == ["thesis.txt"]


def test_a_failed_save_keeps_the_older_folder(tiny_encoder, tmp_path, monkeypatch) -> None:
    model = build(tiny_encoder)
    model.save(tmp_path / "model")

    def full(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model.tokenizer, "save", full)
    with pytest.raises(TercetError, match="cannot be written: No space left"):
        model.save(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    tercet.load(tmp_path / "model").embed(TEXTS)


def edit(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / name
        content = json.loads(path.read_text("utf-8"))
        changed = change(content)
        path.write_text(json.dumps(content if changed is None else changed), "utf-8")

    return apply


def edit_heads(change: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        tensors = load_file(folder / "heads.safetensors")
        change(tensors)
        save_file(tensors, folder / "heads.safetensors")

    return apply


def cut(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:50])


def drop(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def edit_weights(change: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors")

    return apply


def first_of(tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    return tensors[min(tensors)]


def write(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


def scale(info: dict[str, Any], temperature: float) -> None:
    info["scalings"] = {"sentiment": {"single": {"temperature": temperature}}}


def mlp(info: dict[str, Any], **keys: Any) -> None:
    info["tasks"]["sentiment"]["single"]["head"] = {"kind": "mlp", **keys}


def template_id(number: int) -> Callable[[Any], None]:
    def change(tokenizer: Any) -> None:
        tokenizer["post_processor"]["sep"][1] = number

    return change


def break_charsmap(tokenizer: Any) -> None:
    """Rust panics when it reads this; it raises no Exception."""
    tokenizer["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}


def rename_task(info: dict[str, Any], name: str) -> None:
    info["tasks"][name] = info["tasks"].pop("sentiment")


WEIGHT = "sentiment.single.layers.0.weight"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (cut("heads.safetensors"), "heads.safetensors: cannot be read as safetensors"),
        (drop("heads.safetensors"), "heads.safetensors: is missing"),
        (edit_heads(lambda heads: heads.pop(WEIGHT)), f"'{WEIGHT}' is missing"),
        (edit_heads(lambda heads: heads.update(x=torch.ones(1))), "'x' belongs to no head"),
        (edit_heads(lambda heads: heads.update({WEIGHT: torch.ones(2, 2)})), r"shape \[2, 2\]"),
        (cut("tercet.json"), "tercet.json is not valid JSON"),
        (edit("tercet.json", lambda _: []), "holds a JSON list; it should be an object"),
        (edit("tercet.json", lambda info: info.update(format=2)), "upgrade Tercet"),
        (edit("tercet.json", lambda info: info.pop("format") and None), "`format` is None"),
        (edit("tercet.json", lambda info: info.pop("pooling") and None), "`pooling`"),
        (edit("tercet.json", lambda info: info.update(pooling="sum")), "`pooling`"),
        (edit("tercet.json", lambda info: info.update(surprise=1)), "`surprise`"),
        (edit("tercet.json", lambda info: info.update(max_tokens=65)), "takes at most 64"),
        (edit("tercet.json", lambda info: rename_task(info, "/tmp/mine")), "/tmp/mine"),
        (edit("tercet.json", lambda info: rename_task(info, "../mine")), "../mine"),
        (edit("tercet.json", lambda info: rename_task(info, "a.b")), "a.b"),
        (edit("tercet.json", lambda info: rename_task(info, "")), "tasks"),
        (edit_heads(lambda heads: heads[WEIGHT].fill_(torch.nan)), f"{WEIGHT}' holds a number"),
        (edit_weights(lambda all_: first_of(all_).view(-1)[3:4].fill_(torch.inf)), "not finite"),
        (edit("tercet.json", lambda info: scale(info, 0.0)), "temperature"),
        (edit("tercet.json", lambda info: scale(info, float("inf"))), "temperature"),
        (edit("tercet.json", lambda info: scale(info, 1e-300)), "temperature"),
        (edit("tercet.json", lambda info: mlp(info, hidden=[10**12])), "more than heads.saf"),
        (edit("tercet.json", lambda info: mlp(info, hidden=[300] * 9)), "'sentiment.single"),
        (edit("tercet.json", lambda info: mlp(info, kind="layers", layers=10**9)), "more than"),
        (edit("config.json", lambda c: c.update(num_hidden_layers=10**9)), "num_hidden_layers"),
        (edit("config.json", lambda c: c.update(num_hidden_layers=99)), "than model.safetensors"),
        (edit("config.json", lambda c: c.update(model_type=[{}])), "model_type is"),
        (edit("config.json", lambda c: c.update(vocab_size=10**12)), "vocab_size is 10"),
        (edit("config.json", lambda c: c.update(max_position_embeddings=10**12)), "than model"),
        (edit("config.json", lambda c: c.update(intermediate_size=10**15)), "intermediate_size"),
        (write("config.json", b"[" * 10**6), "config.json is not valid JSON"),
        (write("config.json", b'{"vocab_size": ' + b"9" * 5000 + b"}"), "is not valid JSON"),
        (write("tercet.json", b" " * (2**26 + 1)), "tercet.json has more than"),
        (edit("tercet.json", lambda info: info.update(plugins=["a"])), "model"),
        (edit("tercet.json", lambda info: info.update(tasks={"a": [{}]})), "tasks"),
        (edit("tokenizer.json", template_id(10**6)), "ids up to 1000000"),
        (edit("tokenizer.json", lambda t: t.update(model={"type": "WordPiece"})), "tokenizer"),
        (edit("tokenizer.json", break_charsmap), "is not a tokenizer definition"),
        (edit("tokenizer_config.json", lambda _: [3]), "is not a JSON object"),
        (cut("model.safetensors"), "model.safetensors"),
        (drop("tokenizer.json"), None),
        (drop("config.json"), "config.json"),
    ],
)
def test_a_spoilt_folder_is_told_in_one_sentence(tiny_encoder, tmp_path, spoil, message) -> None:
    build(tiny_encoder).save(tmp_path / "model")
    spoil(tmp_path / "model")
    if message is None:  # vocab.txt is enough
        assert tercet.load(tmp_path / "model").embed(TEXTS).shape == (4, 32)
        return
    with pytest.raises(TercetError, match=message) as error:
        tercet.load(tmp_path / "model")
    assert "\n" not in str(error.value)


def test_a_pooler_that_is_gone_is_missed(tiny_encoder: Path, tmp_path: Path) -> None:
    build(tiny_encoder, pooling="pooler").save(tmp_path / "model")
    weights = tmp_path / "model" / "model.safetensors"
    kept = {name: t for name, t in load_file(weights).items() if "pooler" not in name}
    save_file(kept, weights, metadata={"format": "pt"})
    with pytest.raises(TercetError, match="the encoder has no pooler"):
        tercet.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("task", "values", "message"),
    [
        ("tags", [0.5], "has 1 for the 2 labels of tags"),
        ("one", [0.5, 0.5], "names one.single, which has one class per input"),
        ("none", [0.5, 0.5], "names none.single, which has one class per input"),
        ("tags", [0.5, 1.5], "less than or equal to 1"),
    ],
)
def test_thresholds_must_fit_their_task(task: str, values: list[float], message: str) -> None:
    block = {
        "data": {"layout": "cs224n-sst"},
        "labels": ["a", "b"],
        "single": {"head": {"kind": "mlp"}, "objective": {"kind": "binary-cross-entropy"}},
    }
    tasks = {"tags": {**block, "multi_label": True}, "one": block}
    content = {"encoder": "tiny", "pooling": "mean", "max_tokens": 8, "tasks": tasks}
    ModelInfo.model_validate({**content, "thresholds": {"tags": {"single": [0.1, 0.9]}}})
    with pytest.raises(ValidationError, match=message):
        ModelInfo.model_validate({**content, "thresholds": {task: {"single": values}}})


def test_only_graphs_are_copied_from_an_onnx_folder(tiny_encoder: Path, tmp_path: Path) -> None:
    """A folder may hold links to any file of the machine."""
    model = build(tiny_encoder)
    export_onnx(
        tmp_path / "onnx", Parts(model.network, model.tokenizer, model.info), precision="fp32"
    )
    (tmp_path / "secret").write_text("mine", "utf-8")
    (tmp_path / "onnx" / "heads" / "notes.txt").symlink_to(tmp_path / "secret")
    tercet.load(tmp_path / "onnx").save(tmp_path / "copy")
    names = sorted(path.name for path in (tmp_path / "copy" / "heads").iterdir())
    assert names == ["sentiment.single.onnx", "similarity.bi.onnx", "similarity.cross.onnx"]
    loaded = tercet.load(tmp_path / "copy")
    assert (loaded.embed(TEXTS) == tercet.load(tmp_path / "onnx").embed(TEXTS)).all()


def test_a_graph_that_is_not_of_its_head_is_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    model = build(tiny_encoder)
    folder = tmp_path / "onnx"
    export_onnx(folder, Parts(model.network, model.tokenizer, model.info), precision="fp32")
    heads = folder / "heads"
    whole = (heads / "sentiment.single.onnx").read_bytes()
    # One output per row, which numpy would give to both classes.
    shutil.copyfile(heads / "similarity.cross.onnx", heads / "sentiment.single.onnx")
    with pytest.raises(TercetError, match=r"sentiment.single.onnx: gives outputs of shape"):
        tercet.load(folder).sentiment(TEXTS)
    (heads / "sentiment.single.onnx").write_bytes(whole)
    shutil.copyfile(heads / "sentiment.single.onnx", heads / "similarity.cross.onnx")
    with pytest.raises(TercetError, match=r"similarity.cross.onnx: gives outputs of shape"):
        tercet.load(folder).similarity(PAIRS)
    shutil.copyfile(heads / "similarity.cross.onnx", folder / "model.onnx")
    with pytest.raises(TercetError, match=r"model.onnx"):
        tercet.load(folder)


def test_the_card_holds_no_html_of_names_and_labels(tiny_encoder: Path, tmp_path: Path) -> None:
    script = "<script>alert(1)</script>"
    labelled = TASKS["sentiment"].model_copy(update={"labels": ["bad", script]})
    tasks = {**TASKS, "sentiment": labelled}
    build(tiny_encoder, encoder=f"tiny {script}", recipe=script, tasks=tasks).save(tmp_path / "m")
    card = (tmp_path / "m" / "README.md").read_text("utf-8")
    assert "<script" not in card
    assert card.count("&lt;script>") == 3
