"""Recipes: their keys, what overrides change, and the message for a mistake."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tercet.errors import TercetError
from tercet.recipe import Recipe, bundled, find_bundled
from tercet.specs import TaskSpec

TEXT = """
name = "mine"
summary = "Three tasks"

[encoder]
name = "all-minilm-l6-v2"

[tasks.sentiment]
data = { layout = "cs224n-sst" }
labels = ["bad", "good", "better"]
single = { head = { kind = "mlp" }, objective = { kind = "cross-entropy" } }

[tasks.paraphrase]
data = { train = "pairs.tsv", dev = ["a.tsv", "b.tsv"], texts = ["one", "two"], label = 3 }
labels = ["no", "yes"]

[tasks.paraphrase.bi]
head = { kind = "features", features = ["u", "v", "absdiff"] }
objective = { kind = "binary-cross-entropy" }

[tasks.paraphrase.cross]
head = { kind = "mlp", hidden = [16] }
objective = { kind = "binary-cross-entropy" }

[tasks.similarity]
data = { layout = "cs224n-sts" }
range = [0, 5]
bi = { head = { kind = "cosine" }, objective = { kind = "mean-squared-error", targets = [0, 1] } }

[tasks.contrast]
data = { train = ["lines.txt"], texts = 1 }
bi = { objective = { kind = "simcse" } }

[[stages]]
name = "first"
tasks = ["contrast"]
steps = 5

[[stages]]
name = "second"
tasks = ["sentiment", "paraphrase", "similarity"]
schedule = { kind = "together" }
surgery = "pcgrad"
epochs = 1
"""


@pytest.fixture(scope="module", autouse=True)
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All tests stand in a folder that holds mine.toml."""
    folder = tmp_path_factory.mktemp("recipes")
    (folder / "mine.toml").write_text(TEXT, "utf-8")
    with contextlib.chdir(folder):
        yield


def load(*overrides: str) -> Recipe:
    return Recipe.load("mine.toml", overrides)


def mistake(*overrides: str) -> str:
    with pytest.raises(TercetError) as result:
        load(*overrides)
    assert "\n" not in str(result.value)
    return str(result.value)


def test_what_is_left_out_has_its_default() -> None:
    recipe = load()
    assert recipe.encoder.pooling == "mean"
    assert recipe.stages[1].optimiser.lr == 2e-5
    assert recipe.tasks["paraphrase"].data.train == ["pairs.tsv"]
    assert recipe.tasks["contrast"].data.texts == [1]


def test_tasks_know_their_modes_and_metrics() -> None:
    tasks = load().tasks
    assert list(tasks["paraphrase"].modes) == ["cross", "bi"]
    assert [task.chosen_metric for task in tasks.values()][:3] == [
        "accuracy",
        "accuracy",
        "pearson",
    ]
    assert [task.predicts for task in tasks.values()] == [True, True, True, False]


def test_a_stage_without_tasks_trains_all() -> None:
    recipe = load("tasks.contrast.batch=8")
    assert recipe.stage_tasks(recipe.stages[0]) == ["contrast"]
    everything = recipe.stages[0].model_copy(update={"tasks": None})
    assert recipe.stage_tasks(everything) == list(recipe.tasks)


@pytest.mark.parametrize("bundle", bundled(), ids=lambda bundle: bundle.name)
def test_every_bundled_recipe_is_sound_and_survives_writing(tmp_path: Path, bundle: Any) -> None:
    recipe = bundle.parse()
    assert recipe.name == bundle.name
    assert bundle.text.startswith(f"# tercet train {bundle.name} ")
    written = tmp_path / "recipe.toml"
    written.write_text(recipe.to_toml(), "utf-8")
    assert Recipe.load(written) == recipe


def test_a_recipe_loads_by_name_and_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "copy"
    file.write_text(find_bundled("bertology/head-mod").text, "utf-8")
    assert Recipe.load("bertology/head-mod") == Recipe.load(file) == Recipe.load(str(file))


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("seed=7", "seed", 7),
        ("encoder.pooling=cls", "encoder.pooling", "cls"),
        ('encoder.pooling="cls"', "encoder.pooling", "cls"),
        ("encoder.name=bert-base-uncased", "encoder.name", "bert-base-uncased"),
        ("encoder.name=", "encoder.name", ""),
        ("encoder.name=a=b", "encoder.name", "a=b"),
        (" seed = 7", "seed", 7),
        ("stages.0.steps=9", "stages.0.steps", 9),
        ("stages.first.steps=9", "stages.0.steps", 9),
        ("stages.second.optimiser.lr=1e-3", "stages.1.optimiser.lr", 1e-3),
        ("tasks.similarity.range=[1, 3]", "tasks.similarity.range", [1.0, 3.0]),
        ("tasks.sentiment.labels.0=worst", "tasks.sentiment.labels.0", "worst"),
    ],
)
def test_overrides_set_one_value(override: str, path: str, value: object) -> None:
    before, after = load().model_dump(mode="json"), load(override).model_dump(mode="json")
    assert pluck(after, path) == value
    plant(after, path, pluck(before, path))
    assert before == after


def pluck(tree: Any, path: str) -> Any:
    for part in path.split("."):
        tree = tree[int(part) if isinstance(tree, list) else part]
    return tree


def plant(tree: Any, path: str, value: object) -> None:
    above, _, last = path.rpartition(".")
    node = pluck(tree, above) if above else tree
    node[int(last) if isinstance(node, list) else last] = value


@pytest.mark.parametrize(
    ("override", "lengths"),
    [
        ("stages.second.steps=5", (None, 5)),
        ("stages.1.epochs=2", (2.0, None)),
        ("stages.first.epochs=2", (2.0, None)),
    ],
)
def test_a_stage_is_given_its_length_in_steps_or_epochs(
    override: str, lengths: tuple[float | None, int | None]
) -> None:
    stage = load(override).stages[0 if "first" in override else 1]
    assert (stage.epochs, stage.steps) == lengths


def test_dev_is_files_or_a_share() -> None:
    assert load("tasks.sentiment.data.dev=a.csv").tasks["sentiment"].data.dev == ["a.csv"]
    data = load("tasks.sentiment.data.dev=0.15").tasks["sentiment"].data
    assert (data.dev, data.dev_share) == (0.15, 0.15)
    assert load().tasks["sentiment"].data.dev_share is None


def without(key: str) -> dict[str, Any]:
    tree = tomllib.loads(TEXT)
    above, _, last = key.rpartition(".")
    del pluck(tree, above)[last]
    return tree


@pytest.mark.parametrize(
    ("task", "key"), [("sentiment", "labels"), ("paraphrase", "labels"), ("similarity", "range")]
)
def test_labels_may_be_left_to_the_data(task: str, key: str) -> None:
    tree = without(f"tasks.{task}.{key}")
    recipe = Recipe.from_tree(tree, where="mine.toml")
    assert recipe.tasks[task].lacks == key
    assert recipe.tasks[task].chosen_metric == ("pearson" if key == "range" else "accuracy")
    assert all(other.lacks is None for name, other in load().tasks.items())


@pytest.mark.parametrize(
    ("task", "change", "message"),
    [
        ("sentiment", {"metric": "pearson"}, "does not fit"),
        ("sentiment", {"bi": {"objective": {"kind": "triplet"}, "head": {"kind": "mlp"}}}, "takes"),
        (
            "paraphrase",
            {"bi": {"head": {"kind": "cosine"}, "objective": {"kind": "mean-squared-error"}}},
            "needs `range`",
        ),
        (
            "sentiment",
            {"teacher": {"folder": "a", "weight": 1.0}},
            "objective `cross-entropy` needs `labels`",
        ),
    ],
)
def test_what_cannot_fit_any_labels_is_refused_without_them(
    task: str, change: dict[str, Any], message: str
) -> None:
    tree = without(f"tasks.{task}.labels")
    tree["tasks"][task] |= change
    with pytest.raises(TercetError, match=message):
        Recipe.from_tree(tree, where="mine.toml")


def test_later_overrides_win() -> None:
    assert load("seed=1", "seed=2").seed == 2


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed", "KEY=VALUE"),
        ("=3", "KEY=VALUE"),
        ("a..b=3", "KEY=VALUE"),
        ("encoder.name.x=1", "`name` is a value and has no keys"),
        ("encoder.name.x.y=1", "is inside a value"),
        ("stages.2.steps=1", "`2` is not a number from 0 to 1 nor one of the names first, sec"),
        ("stages.third.steps=1", "`third` is not a number"),
        (f"stages.{'9' * 5000}.steps=1", "is not a number from 0 to 1"),
    ],
)
def test_an_override_that_fits_nowhere_is_named(override: str, message: str) -> None:
    sentence = mistake(override)
    assert sentence.startswith(f"`overrides` {override}: ")
    assert message in sentence


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("sed=1", "unknown key `sed` (did you mean `seed`?)"),
        ("encoder.poling=cls", "unknown key `encoder.poling` (did you mean `pooling`?)"),
        ("stages.0.step=1", "unknown key `stages.0.step` (did you mean `steps`?)"),
        (
            "tasks.paraphrase.cross.head.drop_out=0.1",
            "unknown key `tasks.paraphrase.cross.head.drop_out` (did you mean `dropout`?)",
        ),
        (
            "tasks.sentimnt.weight=2.0",
            "key `tasks.sentimnt.data` is missing (did you mean `sentiment`?)",
        ),
        ("encoder.pooling=median", '`encoder.pooling` is "median"'),
        ("encoder.dropout=1.0", "`encoder.dropout` is 1.0: input should be less than 1"),
        ("seed=1.5", "`seed` is 1.5"),
        ("seed=x", '`seed` is "x"'),
        ("stages.0.optimiser.lr=nan", "`stages.0.optimiser.lr` is NaN"),
        ("stages.0.optimiser.lr=inf", "`stages.0.optimiser.lr` is Infinity"),
        ("stages=[]", "`stages` is []"),
        ("tasks.sentiment.single.head.kind=mlq", "mlp, features, cosine"),
        (
            "stages.0={epochs=1, steps=5}",
            "`stages.0`: needs exactly one of `epochs`, `steps` and `solve`",
        ),
        ("literal[=1", "unknown key `literal[`"),
        ("stages.0.shortened=[[5, 9], [4, 8]]", "`shortened` needs rising steps"),
        ("stages.0.shortened=[[9, 9]]", "`shortened` ends the stage at 9 after step 9"),
        ("stages.0={solve=true, shortened=[[1, 9]]}", "`solve` has no steps that could be"),
        ("stages.1.schedule.kind=random", '`surgery` needs `schedule.kind` = "together"'),
        ("stages.0.surgery=upgrad", '`surgery` needs `schedule.kind` = "together"'),
        ("stages.0.schedule.weights={contrast=1}", "no meaning for kind `round-robin`"),
        ("stages.1.schedule.order=['sentiment']", "no meaning for kind `together`"),
        ("stages.0.schedule.steps_per_epoch=5", "no meaning for kind `round-robin`"),
        ("stages.0.freeze=['layer.1']", "'layer.1' cannot be frozen"),
        ("stages.0.tasks=['contrst']", "names task `contrst`"),
        ("stages.0.tasks=['contrst']", "did you mean `contrast`?"),
        ("stages.0.freeze=['heads.sentment']", "did you mean `sentiment`?"),
        ("evaluation.score=best", "evaluation.score 'best' should be one of"),
        (
            "evaluation.score=contrast.pearson",
            "'contrast.pearson' should be one of",
        ),
        ("tasks.similarity.range=[5, 0]", "must go from low to high"),
        ("tasks.similarity.range=[-1e308, 1e308]", "single precision tells no grades apart"),
        ("tasks.similarity.labels=['a', 'b']", "not both"),
        ("tasks.similarity.metric=accuracy", "use one of pearson, spearman"),
        ("tasks.sentiment.metric=pearson", "use one of accuracy, macro-f1"),
        ("tasks.sentiment.labels=['a']", '`tasks.sentiment.labels` is ["a"]'),
        ("tasks.sentiment.single.objective.kind=binary-cross-entropy", "exactly two `labels`"),
        ("tasks.sentiment.single.objective.kind=mean-squared-error", "needs `range`"),
        ("tasks.similarity.bi.objective={kind='cross-entropy'}", "needs `labels`"),
        ("tasks.similarity.bi.head={kind='mlp'}", "`features` or `cosine`, not `mlp`"),
        ("tasks.paraphrase.cross.head={kind='cosine'}", "needs a head of kind `mlp`"),
        ("tasks.contrast.bi.head={kind='cosine'}", "takes no `head`"),
        (
            "tasks.paraphrase.bi={head={kind='cosine'}, objective={kind='cross-entropy'}}",
            "a `cosine` head gives one number",
        ),
        ("tasks.similarity.bi.head={kind='features', features=['w']}", 'features.0` is "w"'),
        ("tasks.similarity.bi.head={kind='features', features=[]}", "features` is []"),
        ("tasks.sentiment.single.head.activation=selu", 'activation` is "selu"'),
        ("tasks.similarity.bi.objective.targets=[1, 1]", "must go from low to high"),
        ("tasks.contrast.cross={objective={kind='simcse'}}", "use mode `single` or `bi`"),
        ("tasks.sentiment.single={objective={kind='cross-entropy'}}", "needs a `head`"),
        ("tasks.sentiment={data={layout='cs224n-sst'}}", "needs a mode"),
        ("tasks.sentiment.prior=0.4", "`prior` needs exactly two `labels`"),
        ("tasks.similarity.multi_label=true", "`multi_label` needs `labels`"),
        ("tasks.sentiment.multi_label=true", "`cross-entropy` learns one class per row"),
        ("tasks.sentiment.class_weights=[1, 2]", "`class_weights` has 2 for 3 `labels`"),
        ("tasks.sentiment.class_weights=[1, 2, 0]", "class_weights.2` is 0"),
        ("tasks.sentiment.class_weights=even", '`tasks.sentiment.class_weights` is "even"'),
        ("tasks.similarity.class_weights=balanced", "`class_weights` need `labels`"),
        ("tasks.similarity.bi.objective.targets=[0, 5]", "task `similarity`, mode `bi`: the head"),
        ("tasks.similarity.bi.objective.targets=[0, 5]", "cannot reach the `targets` [0.0, 5.0]"),
        ("tasks.contrast.data={texts=[1]}", "needs a `layout`, or `train` or `dev` files"),
        ("tasks.contrast.data={train='a.txt'}", "needs `texts`"),
        ("tasks.sentiment.data.dev=1.5", "`tasks.sentiment.data.dev`: 1.5 should be files, or a"),
        ("tasks.sentiment.data.dev=0", "0 should be files, or a share"),
        ("tasks.sentiment.data.dev=[1]", "`tasks.sentiment.data.dev.0` is 1"),
        ("tasks.contrast.data={dev=0.1, texts=[1]}", "`train` names no files"),
        ("tasks.contrast.data={train='a', dev=0.1, texts=1, sentences=true}", "not a share"),
        ("tasks.contrast.data.texts=[1, 2, 3, 4]", "one, two or three columns"),
        (f"stages.0.batch={'9' * 5000}", "`stages.0.batch` is"),
        (f"stages.0.batch=0x{'9' * 5000}", "cannot be read as a recipe"),
        (f"stages.0.batch={'[' * 10_000}", "`stages.0.batch` is"),
    ],
)
def test_a_mistake_is_told_with_its_path(override: str, message: str) -> None:
    sentence = mistake(override)
    assert sentence.startswith("mine.toml: ")
    assert message in sentence


TAGS = """
labels = ["a", "b", "c"]
multi_label = true
data = { layout = "cs224n-sst" }
single = { head = { kind = "mlp" }, objective = { kind = "binary-cross-entropy" } }
"""


def test_a_task_with_several_labels_has_an_output_for_each() -> None:
    task = TaskSpec.model_validate(tomllib.loads(TAGS))
    assert task.outputs("single") == 3
    assert task.metrics == ("micro-f1", "macro-f1", "exact-match")
    assert task.chosen_metric == "micro-f1"
    assert task.predict("single", np.zeros((2, 3), np.float32)).tolist() == [[0.5] * 3] * 2


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("subset = { share = 1.0, balanced = true }", "`subset.balanced` needs one class per row"),
        ('metric = "accuracy"', "use one of micro-f1, macro-f1, exact-match"),
        ("class_weights = [1, 2]", "2 for 3"),
    ],
)
def test_what_does_not_fit_several_labels_is_refused(keys: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TaskSpec.model_validate(tomllib.loads(f"{keys}\n{TAGS}"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": ["no", "yes"], "prior": 0.2}, "`prior` needs one of two classes"),
        ({"single": {"head": {"kind": "nearest", "count": 3}}}, "needs one class per row"),
        ({"multi_label": False}, "exactly two `labels`, or `multi_label = true`"),
    ],
)
def test_parts_that_need_one_class_per_row_say_so(changes: dict[str, Any], message: str) -> None:
    tree = tomllib.loads(TAGS)
    tree["single"] |= changes.pop("single", {})
    with pytest.raises(ValidationError, match=message):
        TaskSpec.model_validate(tree | changes)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"prior": 0.3}, "`prior` and `class_weights` both"),
        (
            {"subset": {"share": 0.5, "balanced": True}},
            "`subset.balanced` and `class_weights` both",
        ),
        ({"teacher": {"folder": ["x"], "weight": 1.0}}, "the teacher gives all of them"),
    ],
)
def test_class_weights_are_not_mixed_with_what_they_contradict(
    keys: dict[str, Any], message: str
) -> None:
    tree = {
        "data": {"layout": "cs224n-quora"},
        "labels": ["no", "yes"],
        "class_weights": "balanced",
        "cross": {"head": {"kind": "mlp"}, "objective": {"kind": "binary-cross-entropy"}},
    }
    with pytest.raises(ValidationError, match=message):
        TaskSpec.model_validate(tree | keys)


def graded(range_: list[float], **objective: Any) -> TaskSpec:
    """The task `grades` of a recipe that grades pairs by their cosine."""
    tree = tomllib.loads(TEXT)
    tree["stages"] = [{"name": "only", "epochs": 1}]
    task = {**tree["tasks"]["similarity"], "range": range_}
    task["bi"] = {"head": {"kind": "cosine"}, "objective": objective}
    tree["tasks"] = {"grades": task}
    return Recipe.from_tree(tree, where="mine.toml").tasks["grades"]


@pytest.mark.parametrize("kind", ["mean-squared-error", "mean-absolute-error"])
def test_a_cosine_head_gets_targets_that_it_can_reach(kind: str) -> None:
    task = graded([1, 10], kind=kind)
    assert task.modes["bi"].objective.targets == (0.0, 1.0)
    # The whole range of grades can be predicted.
    outputs = np.array([[-1.0], [0.0], [0.5], [1.0]], np.float32)
    assert task.predict("bi", outputs).tolist() == [1.0, 1.0, 5.5, 10.0]
    assert graded([-1, 1], kind=kind).modes["bi"].objective.targets is None
    assert graded([0, 1], kind=kind).modes["bi"].objective.targets is None
    assert graded([0, 5], kind=kind, targets=[-1, 1]).modes["bi"].objective.targets == (-1.0, 1.0)


def test_grades_that_a_cosine_cannot_reach_are_refused() -> None:
    with pytest.raises(TercetError, match=r"cannot reach the `range` \[1.0, 10.0\]: set `targets`"):
        graded([1, 10], kind="mean-squared-error", targets=None)


def test_model_folders_keep_the_targets_they_were_trained_with() -> None:
    task = TaskSpec.model_validate(
        {
            "data": {"layout": "cs224n-sts"},
            "range": [0, 5],
            "bi": {"head": {"kind": "cosine"}, "objective": {"kind": "mean-squared-error"}},
        }
    )
    assert task.modes["bi"].objective.targets is None


@pytest.mark.parametrize("key", ["name", "summary", "encoder", "tasks", "stages", "encoder.name"])
def test_a_missing_key_is_named(key: str) -> None:
    tree = tomllib.loads(TEXT)
    above, _, last = key.rpartition(".")
    del (pluck(tree, above) if above else tree)[last]
    with pytest.raises(TercetError, match=f"key `{key}` is missing"):
        Recipe.from_tree(tree, where="mine.toml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name = ", "not valid TOML"),
        (b"seed = " + b"9" * 5000, "not valid TOML"),
        (b"seed = " + b"[" * 10_000, "not valid TOML"),
        (b"seed = 0x" + b"9" * 5000, "cannot be read as a recipe"),
        (b"\x00\xff\xfe", "cannot be read as a recipe"),
        (b"", "key `name` is missing"),
    ],
)
def test_a_file_that_is_no_recipe_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "broken.toml"
    file.write_bytes(content)
    with pytest.raises(TercetError, match=message) as error:
        Recipe.load(file)
    assert str(file) in str(error.value)


def test_a_source_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TercetError, match="no such recipe file"):
        Recipe.load(tmp_path / "none.toml")
    with pytest.raises(TercetError, match="is a folder"):
        Recipe.load(tmp_path)
    with pytest.raises(TercetError, match="did you mean `bertology/head-mod`"):
        Recipe.load("bertology/headmod")


KEYS = st.sampled_from(
    ["seed", "encoder", "encoder.name", "encoder.dropout", "tasks", "tasks.sentiment", "stages"]
    + ["tasks.sentiment.labels", "tasks.similarity.range", "tasks.paraphrase.bi.head.features"]
    + ["stages.0", "stages.first.freeze", "stages.1.epochs", "stages.0.optimiser.betas"]
    + ["tasks.contrast.data.texts", "evaluation", "evaluation.score", "checkpoint.keep"]
)
VALUES = st.one_of(
    st.text(max_size=20),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
        ),
        max_leaves=6,
    ).map(repr),
)


@given(KEYS | st.text(max_size=20), VALUES)
def test_any_override_loads_or_is_a_mistake(key: str, value: str) -> None:
    try:
        recipe = load(f"{key}={value}")
    except TercetError:
        return
    assert isinstance(recipe, Recipe)


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "seed": st.integers(0, 2**31 - 1),
            "summary": st.text(st.characters(codec="utf-8"), max_size=30),
        }
    ),
    st.floats(0, 0.99),
    st.floats(1e-12, 1e3),
    st.lists(
        st.text(st.characters(codec="utf-8"), min_size=1), min_size=2, max_size=4, unique=True
    ),
)
def test_a_written_recipe_reads_back_the_same(
    top: dict[str, Any], dropout: float, lr: float, labels: list[str]
) -> None:
    tree = tomllib.loads(TEXT) | top
    tree["encoder"]["dropout"] = dropout
    tree["stages"][0]["optimiser"] = {"lr": lr}
    tree["tasks"]["sentiment"]["labels"] = labels
    recipe = Recipe.from_tree(tree, where="mine.toml")
    again = Recipe.from_tree(tomllib.loads(recipe.to_toml()), where="again")
    assert again == recipe
    assert tomli_w.dumps(tomllib.loads(recipe.to_toml())) == again.to_toml()


STUDY = [
    "dot",
    "uv",
    "absdiff",
    "product",
    "absdiff-product",
    "uv-product",
    "uv-absdiff",
    "uv-absdiff-product",
    "uv-dot",
]
EXPERIMENTS = {
    "bertology": "baseline shared head-mod head-mod-1 freeze-sst sst-to-sts nli-regression "
    "nli-contrastive nli-triplet nli-combined sst-knn needs head-mod-signed nli-regression-union "
    "nli-contrastive-union nli-triplet-union",
    "robust": " ".join(f"exp{number:02d}" for number in range(1, 16))
    + " exp02-round-robin mnr final",
    "sbert": "sst-pretrain sst-finetune cfimdb-pretrain cfimdb-finetune only-sst-pretrain "
    "only-sst-finetune exp1 exp2 exp3 exp4 mlm triplet mnr exp1-once exp2-once",
    "siamese": "baseline final final-balanced sts-mse sts-l1 sts-hinge sts-cross-entropy "
    + " ".join(f"concat-{name}" for name in STUDY),
    "simcse": "unsupervised supervised bi-encoder cross-encoder single-sentiment "
    "single-paraphrase single-similarity all-tasks unsupervised-mlm unsupervised-stop "
    "supervised-linear",
    "tercet": "annealed temperature phrases both-modes",
}


def test_every_experiment_of_the_reports_has_its_recipe() -> None:
    known = {recipe.name for recipe in bundled()}
    named = {f"{part}/{name}" for part, names in EXPERIMENTS.items() for name in names.split()}
    assert named <= known
    assert {name for name in known if not name.startswith("tercet/")} <= named


@pytest.mark.parametrize("bundle", bundled(), ids=lambda bundle: bundle.name)
def test_headers_and_keys_give_the_same_figures(bundle: Any) -> None:
    recipe = bundle.parse()
    header = " ".join(bundle.text.split("\nname =")[0].replace("#", " ").split())
    result = re.search(r"dev: ((?:[A-Za-z]+ -?\d\.\d+,? ?)+)", header)
    words = {"SST": "sentiment", "STS": "similarity", "accuracy": "sentiment"}
    figures = re.findall(r"([A-Za-z]+) (-?\d\.\d+)", result[1]) if result else []
    assert {words.get(word, word): float(value) for word, value in figures} == (
        recipe.published or {}
    )


def test_finding_a_bundled_recipe_reads_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    files = []
    read_text = Path.read_text

    def record(self: Path, *arguments: Any) -> str:
        files.append(self.name)
        return read_text(self, *arguments)

    monkeypatch.setattr(Path, "read_text", record)
    assert find_bundled("tercet/demo").parse().name == "tercet/demo"
    assert files == ["demo.toml"]
