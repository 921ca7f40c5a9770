"""Bad inputs through the command line: exit code 2, one sentence, and nothing half-written."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tercet.data.sample import write_sample
from tercet.folders.model_card import ModelInfo
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.recipe import Recipe
from tercet.text.tokenizer import Tokenizer

Arguments = list[object]
STAGE = """
[[stages]]
steps = 1
batch = 4
"""


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything in order, in one folder, for a case to spoil one thing of it."""

    folder: Path

    @property
    def recipe(self) -> Path:
        return self.folder / "recipe.toml"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def encoder(self) -> Path:
        return self.folder / "encoder"

    @property
    def model(self) -> Path:
        return self.folder / "model"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def train(self, *changes: str, recipe: object = None, **options: object) -> Arguments:
        """The arguments that train, with --set changes and other options."""
        chosen = {"data": self.data, "out": self.out, "device": "cpu"} | options
        given = [part for name, value in chosen.items() for part in (f"--{name}", value)]
        given += [part for change in changes for part in ("--set", change)]
        return ["train", recipe or self.recipe, *given]

    def train_on(self, name: str, content: str | bytes, *changes: str) -> Arguments:
        """Train the sentiment task on a file of its own, with columns `text` and `grade`."""
        raw = content.encode() if isinstance(content, str) else content
        (self.data / name).write_bytes(raw)
        data = f'{{ train = "{name}", dev = "{name}", texts = "text", label = "grade" }}'
        return self.train(f"tasks.sentiment.data={data}", *changes)

    def edit(self, path: Path, old: str, new: str) -> None:
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")

    def cut(self, path: Path, *, to: float) -> None:
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * to)])

    def predict(self, task: str, *more: object, model: object = None) -> Arguments:
        return ["predict", task, *more, "--model", model or self.model]

    def halves(self) -> Path:
        """A file with half of a surrogate pair, which JSON can write and UTF-8 cannot."""
        file = self.folder / "halves.jsonl"
        file.write_text('{"text": "fine"}\n{"text": "dull \\ud83d"}\n', "utf-8")
        return file


@pytest.fixture(scope="session")
def whole_bench(
    tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path, write_recipe: Any
) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    write_sample(folder / "data", rows=12)
    shutil.copytree(tiny_encoder, folder / "encoder")
    recipe = write_recipe(STAGE)
    shutil.copy(recipe, folder / "recipe.toml")
    tasks = Recipe.load(recipe).tasks
    torch.manual_seed(0)
    network = Network(load_encoder(tiny_encoder), pooling="mean", tasks=tasks)
    info = ModelInfo(encoder="tiny", pooling="mean", max_tokens=24, tasks=tasks)
    Model(network, Tokenizer.load(tiny_encoder), info).save(folder / "model")
    return folder


@pytest.fixture
def bench(whole_bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A copy whose recipe trains its own copy of the encoder; commands run inside it."""
    bench = Bench(tmp_path / "bench")
    shutil.copytree(whole_bench, bench.folder)
    text = bench.recipe.read_text("utf-8")
    name = next(line for line in text.splitlines() if line.startswith("name = '"))
    bench.edit(bench.recipe, name, f"name = '{bench.encoder}'")
    monkeypatch.chdir(bench.folder)
    return bench


Case = Callable[[Bench], Arguments]
CASES: dict[str, tuple[Case, tuple[str, ...]]] = {}


def bad(*message: str) -> Callable[[Case], Case]:
    """A case, and what its sentence must tell."""

    def keep(case: Case) -> Case:
        CASES[case.__name__] = case, message
        return case

    return keep


@bad("quora-train.csv", "no such file")
def missing_data_file(bench: Bench) -> Arguments:
    (bench.data / "quora-train.csv").unlink()
    return bench.train()


@bad("ids-sst-dev.csv", "no such file")
def missing_dev_file(bench: Bench) -> Arguments:
    (bench.data / "ids-sst-dev.csv").unlink()
    return bench.train()


@bad("--data", "absent", "no such folder")
def missing_data_folder(bench: Bench) -> Arguments:
    return bench.train(data=bench.folder / "absent")


@bad("sts-train.csv", "is a folder")
def folder_instead_of_file(bench: Bench) -> Arguments:
    (bench.data / "sts-train.csv").unlink()
    (bench.data / "sts-train.csv").mkdir()
    return bench.train()


@bad("ids-sst-train.csv", "no column `sentimant`", "did you mean `sentiment`?")
def wrong_column(bench: Bench) -> Arguments:
    return bench.train("tasks.sentiment.data.label=sentimant")


@bad("grades.csv", "no column 9")
def column_number_too_high(bench: Bench) -> Arguments:
    return bench.train_on("grades.csv", "text,grade\nfine,3\n", "tasks.sentiment.data.label=9")


@bad("grades.csv line 3", "`grade`", "'7'", "0 to 4")
def label_out_of_range(bench: Bench) -> Arguments:
    return bench.train_on("grades.csv", "text,grade\nfine,3\ndull,7\n")


@bad("grades.csv line 2", "'nan'")
def label_nan(bench: Bench) -> Arguments:
    return bench.train_on("grades.csv", "text,grade\nfine,nan\ndull,1\n")


@bad("grades.csv line 3", "'splendid'")
def label_word(bench: Bench) -> Arguments:
    return bench.train_on("grades.csv", "text,grade\nfine,3\ngood,splendid\n")


@bad("grades.csv line 3", "'1.5'")
def label_between_classes(bench: Bench) -> Arguments:
    return bench.train_on("grades.csv", "text,grade\nfine,3\ngood,1.5\n")


@bad("grades.csv line 3", "no label", "on_bad_row")
def label_missing(bench: Bench) -> Arguments:
    return bench.train_on("grades.csv", "text,grade\nfine,3\ngood,\n")


@bad("sts-train.csv line 2", "'5.5'", "0 to 5")
def grade_out_of_range(bench: Bench) -> Arguments:
    rows = "\tid\tsentence1\tsentence2\tsimilarity\n0\ta\tone\ttwo\t5.5\n"
    (bench.data / "sts-train.csv").write_text(rows, "utf-8")
    return bench.train()


@bad("grades.csv", "binary")
def binary_file(bench: Bench) -> Arguments:
    return bench.train_on("grades.csv", bytes(range(256)) * 20)


@bad("grades.csv line 3", "0xe9", "UTF-8")
def mixed_encodings(bench: Bench) -> Arguments:
    content = "text,grade\nnaïve,3\n".encode() + "café,2\n".encode("latin-1")
    return bench.train_on("grades.csv", content)


@bad("grades.csv", "UTF-16")
def utf_16(bench: Bench) -> Arguments:
    return bench.train_on("grades.csv", "text,grade\nfine,3\n".encode("utf-16"))


@bad("grades.csv", "is empty")
def empty_file(bench: Bench) -> Arguments:
    return bench.train_on("grades.csv", "")


@bad("grades.csv", "no rows")
def header_only(bench: Bench) -> Arguments:
    return bench.train_on("grades.csv", "text,grade\n")


@bad("grades.csv line 3", "4 cells where 2 are expected")
def ragged_rows(bench: Bench) -> Arguments:
    return bench.train_on("grades.csv", "text,grade\nfine,3\ngood,2,or,so\nbad,1\n")


@bad("grades.csv", "quot")
def quote_never_closed(bench: Bench) -> Arguments:
    rows = 'text,grade\n"fine,3\ngood,2\nbad,1\n'
    return bench.train_on("grades.csv", rows, "tasks.sentiment.data.quoting=true")


@bad("grades.csv.gz", "not a whole gzip file")
def gz_that_is_none(bench: Bench) -> Arguments:
    return bench.train_on("grades.csv.gz", "text,grade\nfine,3\n")


@bad("grades.csv.gz", "not a whole gzip file")
def gz_cut_short(bench: Bench) -> Arguments:
    whole = gzip.compress(b"text,grade\n" + b"fine,3\n" * 99)
    return bench.train_on("grades.csv.gz", whole[:-9])


@bad("grades.jsonl line 2", "not valid JSON")
def json_line_broken(bench: Bench) -> Arguments:
    return bench.train_on("grades.jsonl", '{"text": "fine", "grade": 3}\n{"text": "go\n')


@bad("grades.jsonl", "no line has a key `grade`")
def json_key_missing(bench: Bench) -> Arguments:
    return bench.train_on("grades.jsonl", '{"text": "fine", "stars": 3}\n')


@bad("grades.parquet", "not a whole Parquet file")
def parquet_that_is_none(bench: Bench) -> Arguments:
    return bench.train_on("grades.parquet", "text,grade\nfine,3\n")


@bad("grades.xlsx", "unknown kind of file `.xlsx`")
def unknown_kind_of_file(bench: Bench) -> Arguments:
    return bench.train_on("grades.xlsx", "text,grade\nfine,3\n")


@bad("cs224n-sstt", "did you mean `cs224n-sst`?")
def unknown_layout(bench: Bench) -> Arguments:
    return bench.train('tasks.sentiment.data={ layout = "cs224n-sstt" }')


@bad("tercet/quik", "did you mean `tercet/quick`?")
def unknown_recipe(bench: Bench) -> Arguments:
    return bench.train(recipe="tercet/quik")


@bad("absent.toml", "no such recipe file")
def missing_recipe_file(bench: Bench) -> Arguments:
    return bench.train(recipe=bench.folder / "absent.toml")


@bad("is a folder")
def recipe_is_a_folder(bench: Bench) -> Arguments:
    return bench.train(recipe=bench.data)


@bad("recipe.toml", "not valid TOML", "line")
def bad_toml(bench: Bench) -> Arguments:
    bench.edit(bench.recipe, "steps = 1", "steps = = 1")
    return bench.train()


@bad("cannot be read as a recipe")
def binary_recipe(bench: Bench) -> Arguments:
    bench.recipe.write_bytes(bytes(range(256)))
    return bench.train()


@bad("unknown key `stages.0.step`", "did you mean `steps`?")
def unknown_key(bench: Bench) -> Arguments:
    bench.edit(bench.recipe, "steps = 1", "step = 1")
    return bench.train()


@bad("`stages.0.batch`", "valid integer")
def wrong_type(bench: Bench) -> Arguments:
    bench.edit(bench.recipe, "batch = 4", 'batch = "four"')
    return bench.train()


@bad("key `stages` is missing")
def missing_key(bench: Bench) -> Arguments:
    bench.edit(bench.recipe, STAGE, "")
    return bench.train()


@bad("unknown key `encoder.poling`", "did you mean `pooling`?")
def unknown_key_by_set(bench: Bench) -> Arguments:
    return bench.train("encoder.poling=cls")


@bad("`encoder.pooling`", "median")
def wrong_value_by_set(bench: Bench) -> Arguments:
    return bench.train("encoder.pooling=median")


@bad("--set stages", "KEY=VALUE")
def malformed_set(bench: Bench) -> Arguments:
    return bench.train("stages")


@bad("--set stages.7.steps=1", "`7`")
def set_of_a_stage_that_is_not_there(bench: Bench) -> Arguments:
    return bench.train("stages.7.steps=1")


@bad("`surgery` needs", "together")
def surgery_without_together(bench: Bench) -> Arguments:
    return bench.train("stages.0.surgery=pcgrad")


@bad("names task `sentimant`", "did you mean `sentiment`?")
def stage_of_an_unknown_task(bench: Bench) -> Arguments:
    return bench.train('stages.0.tasks=["sentimant"]')


@bad("evaluation.score 'sentiment.pearson'")
def score_that_is_not_measured(bench: Bench) -> Arguments:
    return bench.train("evaluation.score=sentiment.pearson")


@bad("freezes everything")
def frozen_everything(bench: Bench) -> Arguments:
    frozen = ["encoder", "heads.sentiment", "heads.paraphrase", "heads.similarity"]
    return bench.train(f"stages.0.freeze={json.dumps(frozen)}")


@bad("layers.0-9", "from 0 to 1")
def frozen_layers_beyond_the_last(bench: Bench) -> Arguments:
    return bench.train('stages.0.freeze=["layers.0-9"]')


@bad("model.safetensors", "safetensors")
def corrupt_encoder(bench: Bench) -> Arguments:
    (bench.encoder / "model.safetensors").write_bytes(b"\xff" * 500)
    return bench.train()


@bad("model.safetensors", "safetensors")
def truncated_encoder(bench: Bench) -> Arguments:
    bench.cut(bench.encoder / "model.safetensors", to=0.5)
    return bench.train()


@bad("model.safetensors", "shape")
def encoder_of_another_shape(bench: Bench) -> Arguments:
    path = bench.encoder / "config.json"
    content = json.loads(path.read_text("utf-8")) | {"hidden_size": 64}
    path.write_text(json.dumps(content), "utf-8")
    return bench.train()


@bad("model.safetensors", "word_embeddings")
def encoder_without_a_tensor(bench: Bench) -> Arguments:
    path = bench.encoder / "model.safetensors"
    tensors = load_file(path)
    del tensors["embeddings.word_embeddings.weight"]
    save_file(tensors, path)
    return bench.train()


@bad("encoder", "no model.safetensors")
def encoder_without_weights(bench: Bench) -> Arguments:
    (bench.encoder / "model.safetensors").unlink()
    return bench.train()


@bad("pytorch_model.bin", "pickle")
def pickled_encoder(bench: Bench) -> Arguments:
    weights = bench.encoder / "model.safetensors"
    weights.rename(weights.with_name("pytorch_model.bin"))
    return bench.train()


@bad("config.json", "does not exist")
def encoder_without_config(bench: Bench) -> Arguments:
    (bench.encoder / "config.json").unlink()
    return bench.train()


@bad("config.json", "not valid JSON")
def encoder_with_broken_config(bench: Bench) -> Arguments:
    bench.cut(bench.encoder / "config.json", to=0.5)
    return bench.train()


@bad("config.json", "'gpt2'", "bert, mpnet")
def unknown_model_type(bench: Bench) -> Arguments:
    bench.edit(bench.encoder / "config.json", '"model_type": "bert"', '"model_type": "gpt2"')
    return bench.train()


@bad("tokenizer", "encoder has only")
def tokenizer_of_another_encoder(bench: Bench) -> Arguments:
    path = bench.encoder / "tokenizer.json"
    content = json.loads(path.read_text("utf-8"))
    vocabulary = content["model"]["vocab"]
    vocabulary |= {f"word{number}": len(vocabulary) + number for number in range(50)}
    path.write_text(json.dumps(content), "utf-8")
    return bench.train()


@bad("has no tokenizer")
def encoder_without_tokenizer(bench: Bench) -> Arguments:
    for name in ("tokenizer.json", "vocab.txt"):
        (bench.encoder / name).unlink()
    return bench.train()


@bad("tokenizer.json", "not a tokenizer definition")
def broken_tokenizer(bench: Bench) -> Arguments:
    bench.cut(bench.encoder / "tokenizer.json", to=0.5)
    return bench.train()


@bad("`encoder.max_tokens` is 65", "64 at most")
def more_tokens_than_positions(bench: Bench) -> Arguments:
    return bench.train("encoder.max_tokens=65")


@bad("no pooler")
def pooler_that_is_not_there(bench: Bench) -> Arguments:
    path = bench.encoder / "model.safetensors"
    kept = {name: t for name, t in load_file(path).items() if not name.startswith("pooler.")}
    save_file(kept, path)
    return bench.train("encoder.pooling=pooler")


@bad("no folder 'no such encoder'")
def unknown_encoder(bench: Bench) -> Arguments:
    return bench.train("encoder.name=no such encoder")


@bad("out", "is a file")
def out_is_a_file(bench: Bench) -> Arguments:
    bench.out.write_text("mine", "utf-8")
    return bench.train()


@bad("recipe.toml", "Not a directory")
def out_is_inside_a_file(bench: Bench) -> Arguments:
    return bench.train(out=bench.recipe / "out")


@bad("data", "already holds files")
def out_holds_files(bench: Bench) -> Arguments:
    return bench.train(out=bench.data)


@bad("nonsense", "cpu")
def unknown_device(bench: Bench) -> Arguments:
    return bench.train(device="nonsense")


@bad("'meta'", "cpu")
def device_that_holds_no_numbers(bench: Bench) -> Arguments:
    return bench.train(device="meta")


@bad("GPU 99", "torch sees")
def device_beyond_the_last(bench: Bench) -> Arguments:
    return bench.train(device="cuda:99")


@bad("--devise")
def unknown_option(bench: Bench) -> Arguments:
    return bench.train(devise="cpu")


@bad("is not a model")
def evaluate_no_model(bench: Bench) -> Arguments:
    return ["evaluate", bench.data, "--data", bench.data]


@bad("is a file")
def evaluate_a_file(bench: Bench) -> Arguments:
    return ["evaluate", bench.recipe, "--data", bench.data]


@bad("no folder '/no/such/model'")
def evaluate_nothing(bench: Bench) -> Arguments:
    return ["evaluate", "/no/such/model", "--data", bench.data]


@bad("can only embed")
def evaluate_a_plain_encoder(bench: Bench) -> Arguments:
    return ["evaluate", bench.encoder, "--data", bench.data]


@bad("nowhere", "is not a folder")
def evaluate_without_data(bench: Bench) -> Arguments:
    return ["evaluate", bench.model, "--data", bench.folder / "nowhere"]


@bad("suite", "moods")
def evaluate_an_unknown_suite(bench: Bench) -> Arguments:
    return ["evaluate", bench.model, "--data", bench.data, "--suite", "moods"]


@bad("figures.json", "folder")
def evaluate_into_a_missing_folder(bench: Bench) -> Arguments:
    figures = bench.folder / "absent" / "figures.json"
    return ["evaluate", bench.model, "--data", bench.data, "--json", figures]


@bad("no head for the task `mood`", "sentiment, paraphrase, similarity")
def predict_an_unknown_task(bench: Bench) -> Arguments:
    return bench.predict("mood", "--text", "fine")


@bad("can only embed")
def predict_with_a_plain_encoder(bench: Bench) -> Arguments:
    return bench.predict("sentiment", "--text", "fine", model=bench.encoder)


@bad("a pair needs two", "3")
def predict_one_text_too_many(bench: Bench) -> Arguments:
    return bench.predict("paraphrase", *["--text", "fine"] * 3)


@bad("no mode `bi`, only cross")
def predict_in_a_mode_that_is_not_there(bench: Bench) -> Arguments:
    return bench.predict("paraphrase", "--text", "a", "--text", "b", "--mode", "bi")


@bad("FILE", "--text")
def predict_nothing(bench: Bench) -> Arguments:
    return bench.predict("sentiment")


@bad("absent.csv", "no such file")
def predict_a_missing_file(bench: Bench) -> Arguments:
    return bench.predict("sentiment", bench.folder / "absent.csv")


@bad("ids-sst-dev.csv", "no column `phrase`")
def predict_a_missing_column(bench: Bench) -> Arguments:
    return bench.predict("sentiment", bench.data / "ids-sst-dev.csv", "--column", "phrase")


@bad("2 text columns needed, not 1")
def predict_pairs_of_one_column(bench: Bench) -> Arguments:
    return bench.predict("paraphrase", bench.data / "ids-sst-dev.csv")


@bad("halves.jsonl line 2", "half of a surrogate pair")
def predict_half_a_character(bench: Bench) -> Arguments:
    return bench.predict("sentiment", bench.halves())


@bad("halves.jsonl line 2", "half of a surrogate pair")
def embed_half_a_character(bench: Bench) -> Arguments:
    return ["embed", bench.halves(), "--model", bench.model, "--out", bench.folder / "v.npy"]


@bad("halves.jsonl line 2", "half of a surrogate pair")
def index_half_a_character(bench: Bench) -> Arguments:
    return ["index", bench.halves(), "--model", bench.model, "--out", bench.out]


@bad("halves.jsonl line 2", "half of a surrogate pair")
def mine_half_a_character(bench: Bench) -> Arguments:
    return ["mine", bench.halves(), "--model", bench.model, "--out", bench.folder / "pairs.csv"]


@bad("heads.safetensors", "safetensors")
def corrupt_heads(bench: Bench) -> Arguments:
    (bench.model / "heads.safetensors").write_bytes(b"\xff" * 100)
    return bench.predict("sentiment", "--text", "fine")


@bad("heads.safetensors", "missing")
def missing_heads(bench: Bench) -> Arguments:
    (bench.model / "heads.safetensors").unlink()
    return bench.predict("sentiment", "--text", "fine")


@bad("heads.safetensors", "shape")
def heads_of_other_classes(bench: Bench) -> Arguments:
    bench.edit(bench.model / "tercet.json", '"neutral",', "")
    return bench.predict("sentiment", "--text", "fine")


@bad("tercet.json", "format 9", "upgrade")
def model_of_a_newer_release(bench: Bench) -> Arguments:
    bench.edit(bench.model / "tercet.json", '"format": 1', '"format": 9')
    return bench.predict("sentiment", "--text", "fine")


@bad("tercet.json", "JSON")
def model_with_broken_json(bench: Bench) -> Arguments:
    bench.cut(bench.model / "tercet.json", to=0.5)
    return bench.predict("sentiment", "--text", "fine")


@bad("data", "not a model folder")
def export_into_a_foreign_folder(bench: Bench) -> Arguments:
    return ["export", bench.model, "--out", bench.data]


@bad("recipe.toml", "is a file")
def export_onto_a_file(bench: Bench) -> Arguments:
    return ["export", bench.model, "--out", bench.recipe]


@bad("--format", "tarball")
def export_in_an_unknown_form(bench: Bench) -> Arguments:
    return ["export", bench.model, "--out", bench.out, "--format", "tarball"]


@bad("is not a model")
def export_no_model(bench: Bench) -> Arguments:
    return ["export", bench.data, "--out", bench.out]


@bad("absent.csv", "no such file")
def check_a_missing_file(bench: Bench) -> Arguments:
    return ["data", "check", bench.folder / "absent.csv"]


@bad("trian")
def unknown_command(bench: Bench) -> Arguments:
    return ["trian"]


@pytest.mark.parametrize("name", CASES)
def test_bad_input(here: Any, bench: Bench, name: str) -> None:
    case, result = CASES[name]
    arguments = case(bench)
    before = tree(bench.folder)
    assert_told(here(*arguments), result)
    assert tree(bench.folder) == before


@pytest.mark.parametrize(
    "name", ["missing_data_file", "unknown_key", "truncated_encoder", "model_of_a_newer_release"]
)
def test_bad_input_of_a_real_process(tercet: Any, bench: Bench, name: str) -> None:
    case, result = CASES[name]
    arguments = case(bench)
    before = tree(bench.folder)
    assert_told(tercet.run(*arguments, cwd=bench.folder), result)
    assert tree(bench.folder) == before


def test_nothing_is_wrong_with_the_bench(here: Any, bench: Bench) -> None:
    pair = ["--text", "one", "--text", "two"]
    for arguments in (
        bench.train(),
        ["evaluate", bench.model, "--data", bench.data],
        bench.predict("sentiment", "--text", "fine"),
        bench.predict("paraphrase", *pair, "--mode", "cross"),
        ["export", bench.model, "--out", bench.folder / "exported"],
    ):
        ended = here(*arguments)
        assert ended.code == 0, ended.err


def assert_told(ended: Any, message: tuple[str, ...]) -> None:
    """A mistake: one sentence that tells all that it should, after whatever talk came before."""
    lines = ended.err.splitlines()
    assert ended.code == 2, ended.err
    assert "Traceback" not in ended.err
    assert [line for line in lines if line.startswith("error: ")] == lines[-1:]
    assert [part for part in message if part not in lines[-1]] == []
    assert ended.out == ""


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything in a folder, files with what they hold."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }
