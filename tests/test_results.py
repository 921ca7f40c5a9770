"""results/: pages are what their command renders from the records beside them."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

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
from tercet.text.tokenizer import Tokenizer

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"


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
    sys.modules.pop("render_results")


def test_the_card_of_the_shipped_model_takes_its_figures_from_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from render_results import card

    page = card(RESULTS)
    assert "6,729 of 10,662 rows of MR; 2,554 of 10,000 rows of SUBJ; 527 of 1,725 rows" in page
    assert "| sentiment, accuracy | 0.529 | 0.520 to 0.529 |" in page
    template = (ROOT / "tools" / "pages" / "card.md").read_text("utf-8")
    assert "{" not in page
    assert not re.findall(r"\b0\.\d+", template)
    sys.modules.pop("render_results")


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


@pytest.mark.parametrize(
    ("recipe", "task", "rows"),
    [
        ("sbert/exp1", "paraphrase", "68,317"),
        ("bertology/nli-regression-union", "nli", "277,788"),
        ("bertology/nli-regression", "snli", "72,906"),
        ("bertology/nli-regression", "mnli", "54,134"),
        ("bertology/nli-triplet", "snli", "15,266"),
        ("bertology/nli-triplet", "mnli", "4,351"),
        ("robust/exp15", "nli", "15,266"),
        ("simcse/supervised", "contrast", "58,814"),
        ("simcse/unsupervised", "contrast", "298,040"),
    ],
)
def test_headers_give_the_sizes_of_the_data(
    recipe: str, task: str, rows: str, real_data: Path
) -> None:
    examples = read_examples(find_bundled(recipe).parse().tasks[task], "train", real_data)
    assert f"{len(examples) + len(examples.skipped):,}" == rows
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
    import render_results

    for name in ("sbert/exp1", "robust/exp14", "simcse/supervised"):
        run = tmp_path / "runs" / name / "seed-11711"
        run.mkdir(parents=True)
        write_json(run / "summary.json", {"made_with": {"commit": "abc"}})
        save_untrained(find_bundled(name).parse(), tiny_encoder, run / "model")
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path), str(sample_data)])
    analyse_reports.main()
    document = read_json_object(tmp_path / "analyses.json")
    counts = document["confusion"]["sbert/exp1"]["sentiment"]["counts"]
    rows = (sample_data / "ids-sst-dev.csv").read_text("utf-8").splitlines()
    assert sum(map(sum, counts)) == len(rows) - 1
    worst = document["mistakes"]["robust/exp14"]["sentiment"]
    assert worst
    assert all(mistake["expected"] != mistake["predicted"] for mistake in worst)
    document["vectors"]["simcse/supervised"]["transfer"] = {"MR": {"accuracy": 0.5}}
    page = "\n".join(render_results.analysis_sections(document))
    assert "| recipe | MR, accuracy |\n|---|---|\n| simcse/supervised | 0.500 |" in page
    assert "### Confusion of sbert/exp1, paraphrase: label by prediction" in page
    assert f"| sentiment | ids-sst-dev.csv | {worst[0]['line']} |" in page
    sys.modules.pop("render_results")


def save_untrained(recipe: Recipe, encoder: Path, folder: Path) -> None:
    """The model of a recipe before its first step, on another encoder."""
    tasks = {name: recipe.tasks[name] for name in ("sentiment", "paraphrase", "similarity")}
    network = Network(load_encoder(encoder), pooling="pooler", tasks=tasks)
    info = ModelInfo(encoder="tiny", pooling="pooler", max_tokens=64, tasks=tasks)
    Model(network, Tokenizer.load(encoder), info).save(folder)
