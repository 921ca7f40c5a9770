"""What the page shows is what the model says."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.model import Model

LABELS = ["negative", "somewhat negative", "neutral", "somewhat positive", "positive"]
PAIR = ["The film is long and loud.", "A loud film, and a long one."]


def percents(values: Any) -> list[str]:
    return [f"{100 * value:.1f}\u202f%" for value in values]


def without_each(text: str) -> list[tuple[str, str]]:
    words = re.finditer(r"\w+(?:[-'’.,]\w+)*", text)
    return [
        (found[0], " ".join((text[: found.start()] + text[found.end() :]).split()))
        for found in words
    ]


def test_sentences_get_bars_with_names_and_percentages(
    page: Any, model: Model, lines: list[str]
) -> None:
    page.open("sentences").write("#sentences-text", "\n".join([*lines, "", "  "]))
    assert page.run() == "5 sentences classified."
    expected = model.sentiment(lines)
    assert page.texts(".answer .shaded") == lines
    assert page.texts(".bars .name") == LABELS * len(lines)
    assert page.texts(".bars .figure") == [
        one for found in expected for one in percents(found.probabilities)
    ]
    assert page.texts(".bars .best .name") == [found.name for found in expected]


def test_each_word_is_left_out_once_in_one_batch(page: Any, model: Model, lines: list[str]) -> None:
    page.open("sentences").write("#sentences-text", lines[0])
    page.run()
    words = without_each(lines[0])
    sent = [body["inputs"] for body in page.asked("predict/")]
    assert sent == [[lines[0]], [text for _, text in words]]
    whole, *rest = model.sentiment([lines[0], *(text for _, text in words)])
    parts = [whole.probabilities[whole.label] - one.probabilities[whole.label] for one in rest]
    result = [
        f"{word} ({100 * part:+.1f})".replace("-", "−")
        for (word, _), part in zip(words, parts, strict=True)
    ]
    assert page.texts(".every li") == result
    marked = [
        (word, part > 0) for (word, _), part in zip(words, parts, strict=True) if abs(part) >= 0.01
    ]
    assert marked
    assert page.texts(".answer .word") == [word for word, _ in marked]
    assert page.texts(".answer .word.against") == [word for word, carries in marked if not carries]
    largest = int(np.argmax(np.abs(parts)))
    figure = result[largest].partition(" ")[2]
    assert f"“{words[largest][0]}” {figure}" in page.texts(".answer p.summary")[0]


def test_two_sentences_in_both_modes(page: Any, model: Model) -> None:
    page.open("pair").write("#first", PAIR[0])
    page.write("#second", PAIR[1])
    assert page.run() == "Compared."
    assert page.texts(".results h3") == ["Paraphrase", "Similarity", "Vectors"]
    assert [text.split(":")[0] for text in page.texts(".mode h4")] == ["bi", "cross"] * 2
    same = [model.paraphrase([PAIR], mode)[0] for mode in ("bi", "cross")]
    assert page.texts(".mode .figure") == [one for p in same for one in percents([1 - p, p])]
    grades = [model.similarity([PAIR], mode)[0] for mode in ("bi", "cross")]
    assert page.texts(".grade b") == [f"{grade:.2f}".replace("-", "−") for grade in grades]
    first, second = model.embed(PAIR)
    assert page.texts(".results > p b") == [f"{first @ second:.2f}".replace("-", "−")]
    for mode, listed in zip(("bi", "cross"), page.all(".mode .every")[2:], strict=True):
        changed = [(text, PAIR[1]) for _, text in without_each(PAIR[0])]
        changed += [(PAIR[0], text) for _, text in without_each(PAIR[1])]
        whole, *rest = model.similarity([PAIR, *changed], mode)
        figures = re.findall(r"(?:first|second), ([+−][\d.]+)", listed.get_attribute("textContent"))
        shown = [float(figure.replace("−", "-")) for figure in figures]
        assert shown == pytest.approx([whole - one for one in rest], abs=0.0051)


def test_a_list_becomes_a_table_its_closest_pairs_and_a_map(
    page: Any, model: Model, lines: list[str]
) -> None:
    page.open("list").write("#list-text", "\n".join(lines))
    assert page.run() == "5 lines analysed."
    vectors = model.embed(lines)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -2)
    nearest = cosines.argmax(axis=1)
    assert page.texts(".sentences tbody th") == lines
    assert page.texts(".sentences tbody td:nth-child(4)") == [
        f"{place + 1}. {lines[place]}" for place in nearest
    ]
    pairs = sorted(((cosines[a, b], a, b) for a in range(5) for b in range(a + 1, 5)), reverse=True)
    assert page.texts(".pairs td:first-child") == [
        f"{one[0]:.2f}".replace("-", "−") for one in pairs
    ]
    assert page.texts(".pairs td p") == [
        f"{at + 1}. {lines[at]}" for one in pairs for at in one[1:]
    ]
    shown = [re.findall(r"[-\d.]+", one.get_attribute("transform")) for one in page.all(".point")]
    spots = np.array(shown, dtype=float)
    centred = vectors - vectors.mean(axis=0)
    expected = centred @ np.linalg.svd(centred)[2][:2].T
    apart = np.linalg.norm(spots[:, None] - spots, axis=-1)
    true = np.linalg.norm(expected[:, None] - expected, axis=-1)
    np.testing.assert_allclose(apart / apart.max(), true / true.max(), atol=0.005)


def test_no_spreadsheet_runs_what_the_page_saves(page: Any) -> None:
    script = """
        const done = arguments[arguments.length - 1];
        const rows = [["=1+1", "-0.5"], ["@x", "+y"], ["\\tz", "a=b"]];
        import("/web/csv.js").then((csv) => done(csv.toCsv(["a", "b"], rows)));
    """
    page.open("list")
    saved = page.browser.execute_async_script(script)
    assert saved == "a,b\r\n'=1+1,-0.5\r\n'@x,'+y\r\n'\tz,a=b\r\n"


def test_the_csv_holds_every_line_in_the_order_shown(
    page: Any, model: Model, tmp_path: Path, lines: list[str]
) -> None:
    page.open("list").write("#list-text", "\n".join(lines))
    page.run()
    to = {"behavior": "allow", "downloadPath": str(tmp_path)}
    page.browser.execute_cdp_cmd("Browser.setDownloadBehavior", to)
    page.all(".sentences thead button")[1].click()
    page.all(".above button")[0].click()
    file = tmp_path / "tercet.csv"
    # The browser puts an empty file there first, and the whole one in its place.
    page.until(lambda: file.exists() and file.stat().st_size > 0)
    with file.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert [row["sentence"] for row in rows] == page.texts(".sentences tbody th")
    vectors = model.embed(lines)
    for row in rows:
        place = int(row["line"]) - 1
        found = model.sentiment([lines[place]])[0]
        other = int(row["nearest line"]) - 1
        assert (row["sentence"], row["sentiment"]) == (lines[place], found.name)
        assert row["nearest sentence"] == lines[other]
        assert float(row["sentiment probability"]) == pytest.approx(
            max(found.probabilities), abs=2e-6
        )
        assert float(row["cosine"]) == pytest.approx(
            float(vectors[place] @ vectors[other]), abs=2e-6
        )


def test_search_shows_the_rows_of_the_index(page: Any, index: Any) -> None:
    page.open("search")
    assert page.run() == "Enter a query first."
    page.write("#query", "a warm night")
    assert page.run() == "3 sentences found."
    hits = index.search(["a warm night"], top=10)[0]
    assert page.texts(".found p") == [hit.text for hit in hits]
    assert page.texts(".found b") == [f"{hit.score:.2f}".replace("-", "−") for hit in hits]
    assert page.texts(".found .note") == [
        f"id {hit.id}, year {hit.columns['year']}" for hit in hits
    ]
    assert page.asked("search") == [{"query": "a warm night", "top": 10}]


def test_without_an_index_there_is_no_search(page: Any) -> None:
    page.open("search", info="info.tercet.index = null;")
    names = [one.get_attribute("data-name") for one in page.all("[role=tab]")]
    assert (names, page.tab) == (["sentences", "pair", "list"], "sentences")
    assert page.all("#panel-search") == []


def test_a_model_without_tasks_still_compares_and_maps(page: Any) -> None:
    page.open(info="info.tercet.tasks = {};")
    assert [one.get_attribute("data-name") for one in page.all("[role=tab]")] == [
        "pair",
        "list",
        "search",
    ]
    assert page.run() == "Compared."
    assert page.texts(".results h3") == ["Vectors"]
    page.all("#tab-list")[0].click()
    assert page.run() == "12 lines analysed."
    assert len(page.all(".sentences thead th")) == 4


def test_a_model_with_one_mode_shows_that_one(page: Any) -> None:
    one = 'delete info.tercet.tasks.paraphrase; info.tercet.tasks.similarity.modes = ["bi"];'
    page.open("pair", info=one)
    assert page.run() == "Compared."
    assert page.texts(".results h3") == ["Similarity", "Vectors"]
    assert [text.split(":")[0] for text in page.texts(".mode h4")] == ["bi"]
