from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import tercet
from tercet.errors import TercetError
from tercet.folders.model_card import ModelInfo
from tercet.infer.engine import Engine
from tercet.model import Model, Prediction, Sentiment
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer

SENTENCES = [
    "a film that is worth a look",
    "dull",
    "",
    "The plot is long, and the cast is lost in it: an hour too much. " * 3,
    "good 😀 fun",
]
PAIRS = [(SENTENCES[0], SENTENCES[1]), (SENTENCES[3], SENTENCES[4]), ("same", "same")]
FEATURES = {"kind": "features", "features": ["u", "v", "absdiff", "cosine"]}
TASKS = {
    name: TaskSpec.model_validate(block)
    for name, block in {
        "sentiment": {
            "data": {"layout": "cs224n-sst"},
            "labels": ["awful", "bad", "fair", "good", "great"],
            "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
        },
        "paraphrase": {
            "data": {"layout": "cs224n-quora"},
            "labels": ["different", "paraphrase"],
            "cross": {
                "head": {"kind": "mlp", "hidden": [8]},
                "objective": {"kind": "binary-cross-entropy"},
            },
            "bi": {"head": FEATURES, "objective": {"kind": "cross-entropy"}},
        },
        "similarity": {
            "data": {"layout": "cs224n-sts"},
            "range": [1, 3],
            "bi": {
                "head": {"kind": "cosine", "projection": True},
                "objective": {"kind": "mean-squared-error", "targets": [0, 1]},
            },
        },
        "shape": {
            "data": {"layout": "quora-positives"},
            "bi": {"objective": {"kind": "multiple-negatives-ranking"}},
        },
    }.items()
}


def test_a_repeated_text_is_embedded_once(tiny_encoder: Path) -> None:
    model = build(tiny_encoder)
    seen: list[tuple[int, int]] = []
    texts = ["dull", "a film", "dull", "a  film"]
    vectors = model.embed(texts, progress=lambda done, of: seen.append((done, of)))
    assert seen[-1] == (2, 2)
    assert (vectors[0] == vectors[2]).all()
    assert np.abs(vectors - np.concatenate([model.embed([text]) for text in texts])).max() < 1e-5


def test_parts_that_are_tokenised_ahead_give_what_all_at_once_gives(
    tiny_encoder: Path, monkeypatch
) -> None:
    model = build(tiny_encoder)
    texts = [*SENTENCES, "dull", "one more"]
    pairs = PAIRS + [(b, a) for a, b in PAIRS]
    whole = [
        model.embed(texts),
        model.predictions("sentiment", texts),
        model.predictions("paraphrase", pairs, "cross"),
        model.predictions("paraphrase", pairs, "bi"),
    ]
    monkeypatch.setattr(Engine, "part_rows", property(lambda engine: 2))
    seen: list[tuple[int, int]] = []
    parts = [
        model.embed(texts, progress=lambda done, of, note="": seen.append((done, of))),
        model.predictions("sentiment", texts),
        model.predictions("paraphrase", pairs, "cross"),
        model.predictions("paraphrase", pairs, "bi"),
    ]
    for one, other in zip(whole, parts, strict=True):
        assert one.shape == other.shape
        assert np.abs(one - other).max() < 1e-5
    assert seen == sorted(seen)
    assert seen[-1] == (len(texts), len(texts))


def test_bf16_is_near_fp32_and_saves_the_same_weights(tiny_encoder: Path, tmp_path: Path) -> None:
    build(tiny_encoder).save(tmp_path / "model")
    exact = tercet.load(tmp_path / "model", device="cpu", precision="fp32")
    rough = tercet.load(tmp_path / "model", device="cpu", precision="bf16")
    vectors = rough.embed(SENTENCES)
    assert not np.array_equal(vectors, exact.embed(SENTENCES))
    assert (vectors * exact.embed(SENTENCES)).sum(axis=1).min() > 0.999
    rough.save(tmp_path / "again")
    names = ("model.safetensors", "heads.safetensors")
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "model" / name).read_bytes()


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(TercetError, match="`precision` is 'int3'; it is fp32 or bf16"):
        tercet.load(precision="int3")  # type: ignore[arg-type]


@pytest.mark.parametrize(("variable", "precision"), [("", "fp32"), ("bf16", "bf16")])
def test_the_environment_sets_the_usual_precision(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, variable: str, precision: str
) -> None:
    monkeypatch.setenv("TERCET_PRECISION", variable)
    assert tercet.load(tiny_encoder, device="cpu").precision == precision
    assert tercet.load(tiny_encoder, device="cpu", precision="fp32").precision == "fp32"


def test_an_unknown_precision_in_the_environment_is_refused(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERCET_PRECISION", "int3")
    with pytest.raises(TercetError, match="TERCET_PRECISION is 'int3'; it is fp32 or bf16"):
        tercet.load(tiny_encoder)


def build(folder: Path, *, pooling: str = "mean", tasks: dict[str, TaskSpec] = TASKS) -> Model:
    torch.manual_seed(0)
    network = Network(load_encoder(folder), pooling=pooling, tasks=tasks)
    for parameter in network.heads.parameters():
        torch.nn.init.normal_(parameter, std=0.3)  # so that predictions differ
    info = ModelInfo(encoder="tiny", pooling=pooling, max_tokens=48, tasks=tasks)
    return Model(network, Tokenizer.load(folder), info)


@pytest.fixture(scope="module")
def model(tiny_encoder: Path) -> Model:
    return build(tiny_encoder)


def test_embed_gives_rows_of_length_one(model: Model) -> None:
    vectors = model.embed(SENTENCES)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(SENTENCES), model.width)
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-6
    assert model.embed([]).shape == (0, model.width)


def test_sentiment_names_the_likeliest_class(model: Model) -> None:
    found = model.sentiment(SENTENCES)
    for sentiment in found:
        assert isinstance(sentiment, Sentiment)
        assert sum(sentiment.probabilities) == pytest.approx(1, abs=1e-5)
        assert sentiment.label == int(np.argmax(sentiment.probabilities))
        assert sentiment.name == TASKS["sentiment"].labels[sentiment.label]
    assert model.sentiment([]) == []


def test_paraphrase_and_similarity_are_probabilities_and_grades(model: Model) -> None:
    for mode in ("cross", "bi", None):
        found = model.paraphrase(PAIRS, mode=mode)
        assert found.dtype == np.float32
        assert found.shape == (3,)
        assert ((found >= 0) & (found <= 1)).all()
    assert (model.paraphrase(PAIRS) == model.paraphrase(PAIRS, mode="cross")).all()
    assert (model.paraphrase(PAIRS) != model.paraphrase(PAIRS, mode="bi")).any()
    grades = model.similarity(PAIRS)
    assert ((grades >= 0) & (grades <= 5)).all()
    assert grades[2] == pytest.approx(5, abs=1e-4)
    assert model.paraphrase([]).shape == model.similarity([]).shape == (0,)


def test_predict_answers_every_task(model: Model) -> None:
    assert set(model.tasks) == {"sentiment", "paraphrase", "similarity"}
    sentiment = model.predict("sentiment", SENTENCES)
    assert [type(found) for found in sentiment] == [Prediction] * len(SENTENCES)
    assert [found.label for found in sentiment] == [f.label for f in model.sentiment(SENTENCES)]
    for mode in ("cross", "bi"):
        both = model.predict("paraphrase", PAIRS, mode)
        shares = [found.probabilities[1] for found in both]
        assert shares == pytest.approx(model.paraphrase(PAIRS, mode).tolist())
    grades = model.predict("similarity", [list(pair) for pair in PAIRS])
    assert ((grades >= 1) & (grades <= 3)).all()  # on the task's own range
    assert (grades - 1) * 2.5 == pytest.approx(model.similarity(PAIRS))


def test_order_and_company_of_inputs_do_not_matter(model: Model) -> None:
    texts = SENTENCES * 7
    shuffled = np.random.default_rng(0).permutation(len(texts))
    vectors = model.embed(texts)
    again = model.embed([texts[row] for row in shuffled])
    assert np.abs(vectors[shuffled] - again).max() < 1e-5
    pairs = [(a, b) for a in SENTENCES for b in SENTENCES]
    for mode in ("cross", "bi"):
        alone = [model.paraphrase([pair], mode=mode)[0] for pair in pairs]
        assert model.paraphrase(pairs, mode=mode) == pytest.approx(alone, abs=1e-5)


def test_real_encoders_embed_as_in_sentence_transformers(minilm: Path, mpnet: Path) -> None:
    from sentence_transformers import SentenceTransformer

    texts = [*SENTENCES, "A man is playing a guitar on a stage.", " ".join(SENTENCES * 60)]
    for folder in (minilm, mpnet):
        ours = tercet.load(folder, device="cpu").embed(texts)
        theirs = SentenceTransformer(str(folder), device="cpu").encode(texts)
        assert np.abs(ours - theirs).max() < 1e-5


def test_a_plain_encoder_has_no_heads(tiny_encoder: Path) -> None:
    model = tercet.load(str(tiny_encoder))
    assert model.embed(["a"]).shape == (1, 32)
    with pytest.raises(TercetError, match="no head for the task `sentiment`; it can only embed"):
        model.sentiment(["a"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.embed("one string"), "a list of sentences"),
        (lambda model: model.embed(["fine", None]), r"position 1 is missing \(None\)"),
        (lambda model: model.embed(None), "Expected a list of sentences, not None"),
        (lambda model: model.paraphrase(None), "Expected a list of pairs, not None"),
        (lambda model: model.paraphrase([("a", "b"), ("a", None)]), "position 1 is missing"),
        (lambda model: model.embed(["fine", float("nan")]), r"position 1 is missing \(nan\)"),
        (lambda model: model.embed(3), "a list of sentences, not 3"),
        (lambda model: model.sentiment([("a", "b")]), "each a string"),
        (lambda model: model.paraphrase("ab"), "a list of pairs"),
        (lambda model: model.paraphrase(["ab"]), "pairs of two sentences"),
        (lambda model: model.paraphrase([("a", "b", "c")]), "pairs of two sentences"),
        (lambda model: model.paraphrase([("a", 3)]), "pairs of two strings"),
        (lambda model: model.similarity(PAIRS, mode="cross"), "no mode `cross`, only bi"),
        (lambda model: model.predict("sentiment", ["a"], "bi"), "no mode `bi`, only single"),
        (lambda model: model.predict("mood", ["a"]), "sentiment, paraphrase, similarity"),
        (lambda model: model.predict("shape", PAIRS), "trains vectors and has no head"),
    ],
)
def test_a_wrong_call_is_told_in_one_sentence(model: Model, call, message: str) -> None:
    with pytest.raises(TercetError, match=message):
        call(model)


def tables(columns: dict[str, list[str]]) -> list[object]:
    import pandas as pd
    import pyarrow as pa

    return [columns, pa.table(columns), pa.RecordBatch.from_pydict(columns), pd.DataFrame(columns)]


def test_a_table_is_not_taken_for_a_column(model: Model) -> None:
    for table in tables({"subject": ["dull", "fun"], "team": ["a", "b"]}):
        with pytest.raises(TercetError) as refusal:
            model.sentiment(table)
        assert str(refusal.value) == (
            "Expected sentences, not a table with the columns subject, team; "
            "give one column, such as table['subject']."
        )
        with pytest.raises(TercetError, match=r"such as list.zip.table.'subject'., table.'team'"):
            model.paraphrase(table)
        for call in (model.embed, lambda given: model.predict("sentiment", given)):
            with pytest.raises(TercetError, match="columns subject, team"):
                call(table)


def test_columns_arrays_and_generators_are_sentences(model: Model) -> None:
    import pandas as pd
    import pyarrow as pa

    expected = model.sentiment(SENTENCES)
    for texts in (
        tuple(SENTENCES),
        (text for text in SENTENCES),
        np.array(SENTENCES),
        np.array(SENTENCES, object),
        pd.Series(SENTENCES),
        pd.Series(SENTENCES, index=[9, 8, 7, 6, 5]),
        pd.DataFrame({"text": SENTENCES})["text"],
        pa.array(SENTENCES),
        pa.chunked_array([SENTENCES[:2], SENTENCES[2:]]),
        pa.table({"text": SENTENCES})["text"],
    ):
        assert model.sentiment(texts) == expected


def test_arrays_of_pairs(model: Model) -> None:
    import pandas as pd
    import pyarrow as pa

    expected = model.paraphrase(PAIRS)
    for pairs in (
        np.array(PAIRS),
        list(np.array(PAIRS)),
        np.array(PAIRS, object),
        (pair for pair in PAIRS),
        pd.Series(PAIRS),
        pd.DataFrame(PAIRS).to_numpy(),
        pa.array([list(pair) for pair in PAIRS]),
        zip(*zip(*PAIRS, strict=True), strict=True),
    ):
        assert np.array_equal(model.paraphrase(pairs), expected)


def test_missing_values_of_pandas_are_named(model: Model) -> None:
    import pandas as pd

    for column in (pd.Series(["a", None]), pd.Series(["a", pd.NA], dtype="string")):
        with pytest.raises(TercetError, match="the text at position 1 is missing"):
            model.sentiment(column)


def test_the_model_of_the_package_needs_no_name(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.save(tmp_path / "shipped")
    monkeypatch.setattr("tercet.folders.finding.SHIPPED_FOLDER", tmp_path / "shipped")
    expected = model.embed(["a fine film"])
    for loaded in (tercet.load(device="cpu"), tercet.load("tercet/small", device="cpu")):
        assert np.array_equal(loaded.embed(["a fine film"]), expected)
    # A folder of the same name is meant only when it is named.
    (tmp_path / "tercet/small").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert np.array_equal(tercet.load(device="cpu").embed(["a fine film"]), expected)


def test_load_needs_a_model(
    tmp_path: Path, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tercet.folders.finding.SHIPPED_FOLDER", tmp_path / "absent")
    file = tmp_path / "file"
    file.write_text("x", "utf-8")
    for source, result in [
        (None, "give a model folder"),
        (file, "is a file"),
        (tmp_path, "is not a model"),
    ]:
        with pytest.raises(TercetError, match=result):
            tercet.load(source)
    with pytest.raises(TercetError, match="'abacus' cannot be used"):
        tercet.load(tiny_encoder, device="abacus")
