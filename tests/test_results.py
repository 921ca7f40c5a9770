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
TOOLS = {"analyse_reports", "record", "render_results", "rendering"}


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


def test_what_a_benchmark_records_is_shown_by_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("tools", "benchmarks"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    import rendering.pages
    from record import record

    monkeypatch.setattr(rendering.pages, "TEMPLATES", tmp_path)
    monkeypatch.setattr(sys, "argv", ["benchmarks/pace.py", "a b"])
    monkeypatch.setenv("TERCET_COMMIT", "abc")
    monkeypatch.setenv("TERCET_RECORD", str(tmp_path / "pace.json"))
    record("first", columns=["what", "s"], rows=[["ours", 1]], values={"ratio": "2.0"})
    record("second", columns=["n"], rows=[[3]], facts={"encoder": "tiny"})
    assert "| ours | 1 |" in capsys.readouterr().out
    template = tmp_path / "pace.md"
    template.write_text(
        "{first}\n{first.ratio}x at {first.commit}: {first.command}; {second.encoder}\n"
    )
    assert rendering.pages.page_names(tmp_path) == ["pace"]
    document = read_json_object(tmp_path / "pace.json")
    page = rendering.pages.fill("pace.md", rendering.pages.parts_of(document))
    assert page == (
        "| what | s |\n|---|---|\n| ours | 1 |\n2.0x, abc, python benchmarks/pace.py 'a b', tiny\n"
    )
    template.write_text("{first.seconds}")
    with pytest.raises(SystemExit, match=r"pace.md: \{first.seconds\} is not in its records"):
        rendering.pages.fill("pace.md", rendering.pages.parts_of(document))
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
    from rendering.reproduction import analysis_sections

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
