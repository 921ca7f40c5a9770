"""results/: pages are what their command renders from the records beside them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tercet.data.examples import read_examples
from tercet.files import read_json_object, write_json
from tercet.folders.model_card import ModelInfo
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.recipe import Recipe, bundled, find_bundled
from tercet.reproduce.facts import reading_changes
from tercet.reproduce.methods import methods
from tercet.specs.heads import FeatureHeadSpec
from tercet.text.tokenizer import Tokenizer

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
TOOLS = {
    "analyse_reports",
    "measure_shipped",
    "records",
    "render_results",
    "rendering",
    "train_records",
}


def test_pages_are_what_the_command_renders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from render_results import render

    copy = tmp_path / "results"
    shutil.copytree(RESULTS, copy)
    render(copy)
    files = [path.relative_to(RESULTS) for path in RESULTS.rglob("*") if path.is_file()]
    assert {path.relative_to(copy) for path in copy.rglob("*") if path.is_file()} == set(files)
    stale = [
        str(file) for file in files if (copy / file).read_bytes() != (RESULTS / file).read_bytes()
    ]
    assert stale == [], "run `make results`"
    forget_tools()


def test_every_commit_of_a_record_is_in_the_history_or_explained() -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), *arguments]
        ended = subprocess.run(command, capture_output=True, text=True)
        return ended.stdout.strip() if ended.returncode == 0 else ""

    if not shutil.which("git") or git("rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("needs the history")
    history = {commit[:7] for commit in git("rev-list", "HEAD").split()}
    explained = (ROOT / "docs" / "explanations" / "figures.md").read_text("utf-8")
    files = [*RESULTS.rglob("*.json")]
    named = {found for file in files for found in commits_of(read_json_object(file))}
    assert named & history
    assert {found for found in named - history if f"`{found}`" not in explained} == set()


def commits_of(value: Any) -> Iterator[str]:
    """Everything that values of keys `commit` name, as seven digits."""
    if isinstance(value, dict):
        if isinstance(commit := value.get("commit"), str):
            yield from (found[:7] for found in re.findall(r"\b[0-9a-f]{7,40}\b", commit))
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from commits_of(each)


def test_what_a_benchmark_records_is_shown_by_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("tools", "benchmarks"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    import rendering.pages
    from records import record

    monkeypatch.setattr(rendering.pages, "TEMPLATES", tmp_path)
    monkeypatch.setattr(sys, "argv", ["benchmarks/pace.py", str(tmp_path / "a b")])
    monkeypatch.setenv("TERCET_COMMIT", "abc")
    monkeypatch.setenv("TERCET_RECORD", str(tmp_path / "pace.json"))
    record("first", columns=["what", "s"], rows=[["ours", 1]], values={"ratio": "2.0"})
    record("second", columns=["n"], rows=[[3]], encoder="tiny")
    assert "| ours | 1 |" in capsys.readouterr().out
    template = tmp_path / "pace.md"
    template.write_text(
        "{first}\n{first.ratio}x, {first.commit}, {first.command}, {second.encoder}\n"
    )
    assert rendering.pages.page_names(tmp_path) == ["pace"]
    document = read_json_object(tmp_path / "pace.json")
    page = rendering.pages.fill("pace.md", rendering.pages.parts_of(document))
    assert page == (
        "| what | s |\n|---|---|\n| ours | 1 |\n2.0x, abc, python benchmarks/pace.py 'a b', tiny\n"
    )
    template.write_text("{third}\n")
    page = rendering.pages.fill("pace.md", rendering.pages.parts_of(document))
    assert page == "*Not measured yet.*\n"
    template.write_text("In {first.seconds} s.")
    with pytest.raises(SystemExit, match=r"pace.md: \{first.seconds\} is not in its records"):
        rendering.pages.fill("pace.md", rendering.pages.parts_of(document))
    forget_tools()


def test_records_of_the_training_benchmark_have_what_its_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("tools", "benchmarks"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    from rendering.pages import fill, parts_of
    from train_records import RECORDS

    scores = {"rows/s": 10.0, "settled": 20.0, "dev": 0.5}
    costs = {"ms per step": 2.0, "peak GB": 3.0}
    both = {"tercet": scores, "sentence-transformers": scores}
    minutes = ["none compiled", "compiled", "sentence-transformers"]
    results: dict[str, Any] = {
        "peer": [{"encoder": "tiny", "steps": 4, **both, "ratio": {"rows/s": 1.0, "settled": 7.7}}],
        "first": [
            {
                "encoder": "tiny", "steps": 4,
                **{name: {"rows/s": 30.0, "call": 2.0, "dev": 0.5} for name in minutes},
                "ratio": {name: {"rows/s": 3.2, "call": 2.5} for name in minutes[:2]},
            }
        ],
        "rate": {"matmul TFLOP/s": 780.0, "32 tokens per row": {"ms": 45.0, "of matmul": 0.476}},
        "surgery": {
            "sum": costs, "surgery": costs, "conventional surgery": costs,
            "surgery / sum": [1.1502, 1.13], "conventional surgery / sum": [6.0, 2.0],
        },
        "cache": {
            "peak GB at 256, 4096, 16384": [6.65, 6.56, 9.08], "peak of 4096 / 256": 0.99,
            "seconds per step at 4096": 0.52, "gradient at 512, relative difference": 1.6e-5,
        },
    }  # fmt: skip
    file = tmp_path / "speed.json"
    document = read_json_object(RESULTS / "speed.json")
    for name in ("trainer", "throughput", "surgery", "cache"):
        del document["records"][name]
    write_json(file, document)
    monkeypatch.setenv("TERCET_RECORD", str(file))
    for part, keep in RECORDS.items():
        keep(results[part])
    assert read_json_object(file)["records"]["first minute"]["rows"][0][2:4] == ["30", "3.2x"]
    page = fill("speed.md", parts_of(read_json_object(file)))
    assert "7.7x" in page
    assert "| 32 | 45.0 | 47.6% |" in page
    assert "| PCGrad, one row per task | 2.0 | 1.150 | 3.00 | 1.13 |" in page
    assert "1.6e-05 of their length" in page
    forget_tools()


def test_the_card_of_the_shipped_model_takes_its_figures_from_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from rendering.card import card

    page = card(RESULTS)
    assert "6,729 of 10,662 rows of MR; 2,554 of 10,000 rows of SUBJ; 527 of 1,725 rows" in page
    assert "| sentiment, accuracy | 0.529 | 0.520 to 0.529 |" in page
    template = (ROOT / "tools" / "pages" / "card.md").read_text("utf-8")
    assert "{" not in page
    assert not re.findall(r"\b0\.\d+", template)
    forget_tools()


def test_records_of_the_shipped_model_have_what_page_and_card_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import measure_shipped
    from rendering.card import card
    from rendering.pages import fill, parts_of

    def scores(metric: str) -> dict[str, Any]:
        metrics = {metric: {"value": 0.5, "interval": [0.4, 0.6]}}
        found = {
            "metrics": metrics,
            "without_seen_rows": {metric: {"value": 0.25}},
            "labels": [1, 0],
        }
        predictions = [[0.2, 0.8], [0.1, 0.9]]
        return {**found, "predictions": predictions, "calibration": {"ece": 0.0123}}

    tasks = {
        name: {
            "metric": "accuracy",
            "modes": {mode: scores("accuracy")},
            "rows": 9,
            "seen": {"x": 3},
        }
        for name, mode in (("sentiment", "single"), ("paraphrase", "bi"))
    }
    pairs = {"STS12": {"pairs": 1_900, "spearman": {"value": 0.683}}}
    similar = {"without_leaked_pairs": pairs, "average_without_leaked_pairs": 0.8, "average": None}
    moved = {"tasks": {"MR": {"metrics": {"accuracy": {"value": 0.75}}}}, "average": 0.9}
    kinds = {"same words": {"pairs": 4, "right": 0.75}}
    order = {"accuracy": {"value": 0.8125}, "fooled": 0.25, "kinds": kinds}
    robust = {"word_order": {"PAWS": {"paraphrase": {"bi": order}}}}
    suites = {"tasks": {"tasks": tasks}, "sts": similar, "transfer": moved, "robustness": robust}

    class Measured:
        def to_json(self) -> dict[str, Any]:
            return {"suites": suites}

    document = read_json_object(RESULTS / "small.json")
    one: Any = Measured()
    found = measure_shipped.records(one, one, one, targets=document["targets"])
    made = {"command": "measure", "commit": "abc", "machine": "here"}
    document["records"] |= {name: {**made, **record} for name, record in found.items()}
    page = fill("small.md", parts_of(document))
    assert "| sentiment | single | accuracy | 0.5000 | 0.4000 to 0.6000 |" in page
    assert "| paraphrase | bi | 0.012 | 0.03 |" in page
    assert "| paraphrase | bi | accuracy | 3 of 9 | 0.5000 | 0.2500 |" in page
    assert "| PAWS | paraphrase | bi | 0.8125 | 0.250 | same words 0.75 |" in page
    assert "| STS12 | 1,900 | 0.683 | 0.683 |" in page
    assert "averages 0.900 (all-MiniLM-L6-v2:\n0.900)" in page
    write_json(tmp_path / "small.json", document)
    shutil.copy(RESULTS / "contamination.json", tmp_path)
    assert "sentiment 0.012 (single), paraphrase 0.012 (bi)" in card(tmp_path)
    forget_tools()


def test_the_readme_gives_recorded_scores() -> None:
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    document = read_json_object(RESULTS / "small.json")
    shown = [f"{float(row[1]):.3f}" for row in document["records"]["seeds"]["rows"][:3]]
    best = document["values"]["best row"]
    unseen = {(task, mode): row[-1] for task, mode, *row in document["records"]["unseen"]["rows"]}
    without = f"{float(unseen['paraphrase', 'cross']):.3f}"
    assert (
        f"scores {shown[0]} for sentiment, {shown[1]} for paraphrase ({without} without pairs that "
        f"its training data imply) and {shown[2]} for" in readme
    )
    assert f"with 110 million parameters, scores {best}" in readme
    published = find_bundled("bertology/nli-triplet").parse().published
    assert published is not None
    assert best == "{sentiment:.3f}, {paraphrase:.3f} and {similarity:.3f}".format(**published)


def test_every_recipe_of_a_report_quotes_it() -> None:
    found = {method.recipe: method for method in methods()}
    reports = {recipe.name: recipe.parse() for recipe in bundled()}
    assert found.keys() == {name for name, recipe in reports.items() if recipe.report}
    page = (RESULTS / "reproduction" / "methods.md").read_text("utf-8")
    for name, method in found.items():
        assert method.quotes, name
        assert f"| {name} |" in page
        layouts = {task.data.layout for task in reports[name].tasks.values()}
        sized = {"cs224n-quora", "nli-pairs", "nli-triples", "sentences"} & layouts
        assert bool(sized) == bool(method.sizes), name


def test_quotes_are_the_words_of_the_reports() -> None:
    folder = os.environ.get("TERCET_REPORTS")
    if folder is None:
        pytest.skip("no reports here; set TERCET_REPORTS")
    texts = {path.stem: plain(path.read_text("utf-8")) for path in Path(folder).glob("*.txt")}
    wrong = [
        (method.recipe, place, words)
        for method in methods()
        for place, words in method.quotes
        if plain(words) not in texts[method.report]
    ]
    assert wrong == []


def plain(text: str) -> str:
    """Without line breaks, typographic apostrophes, and what conversion left at formulas."""
    joined = " ".join(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").split())
    return re.sub(r"\$ (?=[.,;:)])", "$", joined)


def test_the_siamese_baseline_multiplies_vectors_after_dropout() -> None:
    """ "adding a dropout layer after getting the results returned by the forward() function of each
    sentence": on the product, one number, it would leave half of the rows without any input."""
    tasks = find_bundled("siamese/baseline").parse().tasks
    for mode in (tasks["paraphrase"].bi, tasks["similarity"].bi):
        assert mode is not None
        assert isinstance(mode.head, FeatureHeadSpec)
        assert (mode.head.features, mode.dropout, mode.head.dropout) == (["dot"], 0.5, 0.0)


def test_headers_name_only_dropout_that_the_recipe_has() -> None:
    wrong = []
    for bundle in bundled():
        header = re.sub(r'"[^"]*"', "", " ".join(bundle.text.split("\nname = ")[0].split("\n# ")))
        named = {
            float(share) for share in re.findall(r"\bdropout (?:of )?(0\.\d+)", header.lower())
        }
        if not named <= set(dropouts(bundle.parse().training())):
            wrong.append(bundle.name)
    assert wrong == []


def dropouts(node: Any) -> Iterator[float]:
    """Every share of dropout in a recipe, besides the encoder's own."""
    inner = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in inner:
        if key == "dropout":
            yield value
        if isinstance(value, dict | list) and key != "encoder":
            yield from dropouts(value)


@pytest.mark.parametrize(
    ("recipe", "task", "rows"),
    [
        ("sbert/exp1", "paraphrase", "68,317"),
        ("bertology/nli-regression-union", "nli", "269,691"),
        ("bertology/nli-regression", "snli", "72,906"),
        ("bertology/nli-regression", "mnli", "47,405"),
        ("bertology/nli-triplet", "snli", "15,266"),
        ("bertology/nli-triplet", "mnli", "4,351"),
        ("robust/exp15", "nli", "15,266"),
        ("simcse/supervised", "contrast", "58,814"),
        ("simcse/unsupervised", "contrast", "298,040"),
    ],
)
def test_headers_give_the_rows_that_train(
    recipe: str, task: str, rows: str, real_data: Path
) -> None:
    examples = read_examples(find_bundled(recipe).parse().tasks[task], "train", real_data)
    assert f"{len(examples):,}" == rows
    assert any(method.recipe == recipe and f"{rows} " in method.sizes for method in methods())


def test_no_run_stands_beside_a_recipe_that_it_was_not_trained_with() -> None:
    records = [path for path in RESULTS.rglob("recipe.toml") if "older" not in path.parts]
    assert records
    for record in records:
        recipe = Recipe.load(record)
        assert recipe.name == "/".join(record.parts[-4:-2])
        assert reading_changes(recipe.name, recipe) == [], record


def test_analyses_of_trained_runs_are_measured_and_shown(
    tiny_encoder: Path, sample_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import analyse_reports
    from rendering.reproduction import ANALYSED, analysis_sections, not_analysed

    assert list(ANALYSED) == list(analyse_reports.ANALYSES)
    assert not_analysed(ANALYSED) == []
    assert "sbert/exp1, robust/exp14." in not_analysed(ANALYSED[:3])[0]
    for name in ("sbert/exp1", "robust/exp14", "simcse/supervised"):
        run = tmp_path / "runs" / name / "seed-11711"
        run.mkdir(parents=True)
        write_json(run / "summary.json", {"made_with": {"commit": "abc"}, "dev": {}})
        save_untrained(find_bundled(name).parse(), tiny_encoder, run / "model")
    data = tmp_path / "data"
    shutil.copytree(sample_data, data)
    (data / "nli" / "eval").mkdir(parents=True)
    hans = ["The cat saw the dog.\tThe dog saw the cat.\tnon-entailment\tlexical_overlap"] * 3
    (data / "nli" / "eval" / "hans.tsv").write_text("\n".join(hans) + "\n", "utf-8")
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path), str(data)])
    analyse_reports.main()
    files = sorted((tmp_path / "analyses").iterdir())
    found = {file.stem: read_json_object(file) for file in files}
    counts = found["sbert-exp1"]["confusion"]["sentiment"]["counts"]
    rows = (sample_data / "ids-sst-dev.csv").read_text("utf-8").splitlines()
    assert sum(map(sum, counts)) == len(rows) - 1
    classes = found["sbert-exp1"]["classes"]["sentiment"]
    assert [each["support"] for each in classes] == [sum(row) for row in counts]
    worst = found["robust-exp14"]["mistakes"]["sentiment"]
    assert worst
    assert all(mistake["expected"] != mistake["predicted"] for mistake in worst)
    fooled = found["simcse-supervised"]["hans"]["paraphrase, bi"]
    assert fooled["fooled"] == fooled["lexical_overlap"]
    found["simcse-supervised"]["transfer"] = {"MR": {"accuracy": 0.5}}
    page = "\n".join(analysis_sections(found.values()))
    assert "| recipe | MR, accuracy |\n|---|---|\n| simcse/supervised | 0.500 |" in page
    assert "paraphrase, bi, lexical_overlap" in page
    assert "### Confusion of sbert/exp1, paraphrase: label by prediction" in page
    assert f"| sentiment | ids-sst-dev.csv | {worst[0]['line']} |" in page
    assert "Trained, seed 11711: robust/exp14 at abc" in page
    forget_tools()


def forget_tools() -> None:
    """Remove the modules of tools/, whose names are not those of packages."""
    for name in [name for name in sys.modules if name.split(".")[0] in TOOLS]:
        del sys.modules[name]


def save_untrained(recipe: Recipe, encoder: Path, folder: Path) -> None:
    """The model of a recipe before its first step, on another encoder."""
    tasks = {name: recipe.tasks[name] for name in ("sentiment", "paraphrase", "similarity")}
    network = Network(load_encoder(encoder), pooling="pooler", tasks=tasks)
    info = ModelInfo(encoder="tiny", pooling="pooler", max_tokens=64, tasks=tasks)
    Model(network, Tokenizer.load(encoder), info).save(folder)
