from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tercet.evaluation.metrics import Estimate
from tercet.evaluation.suite import Missing
from tercet.evaluation.suites.tasks import TasksResult
from tercet.report.html import render_html
from tercet.report.page import evaluation_page
from tercet.report.report import Report
from tercet.report.training import Moment, Remembered, RunHistory

HOSTILE = "</script><script>console.error('run')</script><img src=x onerror=console.error(1)> & \"'"


@pytest.fixture
def history() -> RunHistory:
    """Of a run of two stages."""
    steps = [(float(step), 1.0 / step) for step in range(1, 9)]
    kept = {"sentiment": Remembered(0.9, None), "similarity": Remembered(None, None)}
    lost = {"sentiment": Remembered(0.7, 0.2), "similarity": Remembered(0.5, None)}
    return RunHistory(
        name="tercet/demo",
        steps=8,
        stages=[("first", 1), ("second", 5)],
        losses={"sentiment": steps, "similarity": steps},
        cosines={"sentiment ~ similarity": steps},
        scores={"sentiment": [(4.0, 0.9), (8.0, 0.7)], "score": [(4.0, 0.5), (8.0, 0.6)]},
        metrics={"sentiment": "accuracy", "similarity": "pearson"},
        forgetting=[Moment("first", 4, kept), Moment("second", 8, lost)],
    )


@pytest.fixture
def full(evaluation, texts, suites, history) -> str:
    """A report with every section and hostile texts."""
    texts["sentiment"][0][:] = [f"{text} {HOSTILE}" for text in texts["sentiment"][0]]
    results = suites([Missing("sts", "STS12", "STS12.tsv")])
    results["geometry"].map.texts[:] = [f"{place}: {HOSTILE}" for place in range(40)]
    return render_html(
        evaluation_page(evaluation("a & <b>model</b>", texts=texts, suites=results), history)
    )


def render(*evaluations: Any) -> str:
    return Report(evaluations).to_html()


def test_a_report_is_one_small_file_with_every_part(full: str) -> None:
    assert len(full.encode()) < 3_000_000
    for title in (
        "Missing data",
        "At a glance",
        "Tasks",
        "Mistakes",
        "Semantic textual similarity",
        "Transfer",
        "Robustness",
        "Geometry",
        "Training",
        "How it was made",
    ):
        assert f">{title}</h2>" in full
    for task in ("sentiment", "paraphrase", "similarity"):
        assert f">{task}</h3>" in full
    assert "STS12.tsv" in full


def test_long_documents_do_not_make_it_large(evaluation, texts, suites) -> None:
    long = {task: tuple([text * 5_000 for text in side] for side in texts[task]) for task in texts}
    results = suites()
    results["geometry"].map.texts[:] = ["word " * 20_000] * 40
    page = render(evaluation(texts=long, suites=results))
    assert len(page.encode()) < 1_000_000


def test_texts_are_escaped(full: str) -> None:
    assert "<img src=x" not in full
    assert "<b>model" not in full
    assert full.count("<script") == 1


def with_tasks(evaluation: Any, tasks: dict[str, Any]) -> Any:
    result = TasksResult(tasks, {"mean": None, "mean-shifted": None})
    return dataclasses.replace(evaluation, suites={"tasks": result})


def test_a_constant_prediction_is_called_undefined(evaluation, answers, task) -> None:
    none = dict.fromkeys(("pearson", "spearman"), Estimate(None))
    texts = (["one two"] * 3, ["three"] * 3)
    constant = answers("grade", "bi", [1.0, 2.0, 3.0], [2.5] * 3, metrics=none, texts=texts)
    page = render(with_tasks(evaluation(), {"grade": task(constant)}))
    assert '<p class="value undefined">undefined</p>' in page
    assert "nan" not in page.partition("<script")[0].lower()


def test_tasks_without_rows_are_undefined(evaluation, answers, task) -> None:
    tasks = {
        name: task(answers(name, "bi", [], [], classes=classes, texts=([], [])))
        for name, classes in (("pair", ["no", "yes"]), ("three", ["a", "b", "c"]), ("grade", None))
    }
    empty = with_tasks(evaluation(), tasks)
    for page in (render(empty), render(empty, empty)):
        assert "undefined" in page
        assert "nan" not in page.partition("<script")[0].lower()


def test_a_report_without_texts_or_tasks_shows_what_it_has(evaluation, suites) -> None:
    assert "Mistakes" not in render(evaluation(texts={}))
    sts = dataclasses.replace(evaluation(), suites={"sts": suites()["sts"]})
    page = render(sts)
    assert ">Semantic textual similarity</h2>" in page
    assert ">Tasks</h2>" not in page


Browser = Any


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Callable[..., Browser]:
    def open_page(page: str, *, width: int = 1200) -> Browser:
        file = tmp_path / "report.html"
        file.write_text(page, "utf-8")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        still = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", still)
        for log in ("browser", "performance"):
            browser.get_log(log)
        browser.get(file.as_uri())
        return browser

    return open_page


def elements(browser: Browser, selector: str) -> list[Any]:
    return browser.find_elements("css selector", selector)


def test_a_browser_has_nothing_to_complain_of_or_to_fetch(full: str, show) -> None:
    browser = show(full)
    assert browser.get_log("browser") == []
    sent = [entry["message"] for entry in browser.get_log("performance")]
    sent = [entry for entry in sent if '"Network.requestWillBeSent"' in entry]
    assert len(sent) == 1
    assert '"url":"file://' in sent[0]


def test_figures_and_tables_can_be_heard(full: str, show) -> None:
    browser = show(full)
    silent = """
        return [...document.querySelectorAll("svg")].filter((svg) =>
            svg.getAttribute("aria-hidden") !== "true" &&
            !(svg.getAttribute("role") === "img" && svg.getAttribute("aria-label").length > 20)
        ).length"""
    assert browser.execute_script(silent) == 0
    assert len(elements(browser, "figure svg[role=img]")) > 10
    assert len(elements(browser, "figure")) == len(elements(browser, "figure > figcaption"))
    assert len(elements(browser, "table")) == len(elements(browser, "table > caption"))
    assert elements(browser, "th:not([scope])") == []
    for landmark in ("header", "nav[aria-label]", "main", "footer"):
        assert len(elements(browser, f"body > {landmark}")) == 1
    levels = [int(one.tag_name[1]) for one in elements(browser, "h1, h2, h3, h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [one.get_attribute("id") for one in elements(browser, "[id]")]
    assert len(ids) == len(set(ids))


def test_tables_sort_by_keyboard(full: str, show) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = show(full)
    mistakes = "#mistakes table"
    header = elements(browser, f"{mistakes} th button")[-1]
    header.send_keys(Keys.ENTER)
    assert browser.switch_to.active_element == header
    assert column(browser, mistakes) == sorted(column(browser, mistakes), reverse=True)
    state = elements(browser, f"{mistakes} thead th")[-1]
    assert state.get_attribute("aria-sort") == "descending"
    header.send_keys(Keys.SPACE)
    assert column(browser, mistakes) == sorted(column(browser, mistakes))
    assert state.get_attribute("aria-sort") == "ascending"
    status = elements(browser, "#status")[0].get_attribute("textContent")
    assert status == "Sorted by How wrong, ascending."


def column(browser: Browser, table: str) -> list[float]:
    cells = elements(browser, f"{table} tbody td:last-child")
    return [float(cell.get_attribute("data-sort")) for cell in cells]


def test_tables_filter_by_keyboard(full: str, show) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = show(full)
    task, expected = elements(browser, "#mistakes select")[:2]
    output, every = (
        elements(browser, "#mistakes output")[0],
        elements(browser, "#mistakes tbody tr"),
    )
    more = elements(browser, "#mistakes form button")[0]
    assert output.text == f"{len(every)} rows, the first 12 shown"
    assert len(shown(browser, 2)) == 12
    more.send_keys(Keys.ENTER)
    assert len(shown(browser, 2)) == len(every)
    task.send_keys(Keys.DOWN, Keys.DOWN)
    assert task.get_property("value") == "paraphrase"
    assert set(shown(browser, 2)) == {"paraphrase"}
    expected.send_keys("paraphrase")
    assert set(shown(browser, 3)) == {"paraphrase"}
    assert output.text == f"{len(shown(browser, 2))} of {len(every)} rows"
    elements(browser, "#mistakes input[type=search]")[0].send_keys("no such words")
    assert shown(browser, 2) == []
    assert output.text == f"0 of {len(every)} rows"


def shown(browser: Browser, place: int) -> list[str]:
    selector = f"#mistakes tbody tr:not([hidden]) :nth-child({place})"
    return [cell.text for cell in elements(browser, f"{selector}[role=cell]")]


def test_the_keyboard_begins_at_the_skip_link_and_walks_the_map(full: str, show) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser = show(full)
    ActionChains(browser).send_keys(Keys.TAB).perform()
    assert browser.switch_to.active_element.text == "Skip to the content"
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    assert browser.switch_to.active_element.get_attribute("id") == "content"
    walk, line = (elements(browser, f"figure.map {what}")[0] for what in ("input", ".pointed"))
    walk.send_keys(Keys.RIGHT)
    first = line.text
    walk.send_keys(Keys.RIGHT)
    assert line.text != first
    assert walk.get_attribute("aria-valuetext") == line.text
    assert len(elements(browser, "figure.map circle.shown")) == 1
    dot = elements(browser, "figure.map .plane circle")[0]
    ActionChains(browser).move_to_element(dot).perform()
    assert "shown" in dot.get_attribute("class")


@pytest.mark.parametrize("width", [390, 1200])
def test_no_page_is_wider_than_its_screen(full: str, show, width: int) -> None:
    browser = show(full, width=width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_models_side_by_side_can_be_filtered(evaluation, suites, show) -> None:
    first = evaluation("first", skill=0.5)
    browser = show(render(first, evaluation("second", seed=4, suites=suites())))
    assert browser.get_log("browser") == []
    assert browser.title == "Comparison of first and second"
    choices = elements(browser, "#where-they-differ select")
    assert len(choices) == 4
    choices[2].send_keys("neutral")
    rows = elements(browser, "#where-they-differ tbody tr:not([hidden])")
    assert rows
    assert all("neutral" in row.text for row in rows)
