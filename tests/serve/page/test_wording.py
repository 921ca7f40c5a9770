"""The page speaks of the model's own tasks."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

TEAM = {
    "inputs": "texts", "modes": ["single"], "labels": ["billing", "bug", "other"], "range": None,
    "multi_label": False, "thresholds": None,
    "examples": ["I was charged twice.", "The app crashes."],
}  # fmt: skip
URGENCY = {**TEAM, "labels": None, "range": [1, 10], "examples": []}
TAGS = {
    **TEAM, "labels": ["money", "outage", "praise"], "multi_label": True,
    "thresholds": {"single": [0.5, 0.3, 0.6]}, "examples": [],
}  # fmt: skip
SAME = {
    **TEAM, "inputs": "pairs", "modes": ["bi"], "labels": ["no", "yes"],
    "examples": [["How do I log in?", "Where is the login?"]],
}  # fmt: skip


def routing(**tasks: Any) -> str:
    """JavaScript that gives the server other tasks."""
    return f"info.tercet.tasks = {json.dumps(tasks)};"


def predicting(**found: Any) -> str:
    """JavaScript that answers each task with the same prediction for every input."""
    return f"""
        const found = {json.dumps(found)}[path.replace("predict/", "")];
        if (found === undefined) return null;
        const results = JSON.parse(request.body).inputs.map(() => found);
        return [200, {{ results, truncated: 0 }}, {{}}];"""


def value(page: Any, selector: str) -> str:
    return page.all(selector)[0].get_property("value")


def test_tabs_headings_and_examples_come_from_the_tasks(page: Any) -> None:
    page.open(info=routing(team=TEAM, same_question=SAME))
    assert page.texts("[role=tab]") == ["Team", "Same question", "List", "Search"]
    assert page.texts(".panel h2")[:2] == ["Team", "Same question"]
    assert page.texts("#panel-sentences .tasks li") == ["one of billing, bug, other"]
    assert page.texts("#panel-pair .tasks li") == ["no or yes"]
    assert value(page, "#sentences-text") == "I was charged twice.\nThe app crashes."
    assert value(page, "#first") == "How do I log in?"
    assert value(page, "#second") == "Where is the login?"
    assert value(page, "#list-text").startswith("I was charged twice.\nThe app crashes.\n")
    assert page.browser.title.endswith(" · Tercet")


def test_without_examples_texts_are_neutral(page: Any) -> None:
    bare = {**TEAM, "examples": []}
    page.open(info=routing(team=bare, same={**SAME, "examples": []}))
    for field in ("#sentences-text", "#first", "#second", "#list-text"):
        text = value(page, field)
        assert text
        assert not {"film", "loved", "piano", "breakfast"} & set(text.lower().split())


def test_the_known_tasks_keep_their_sentences(page: Any) -> None:
    page.open()
    assert page.texts("[role=tab]") == ["Sentiment", "Pair", "List", "Search"]
    assert "The film is slow" in value(page, "#sentences-text")
    assert "piano" in value(page, "#first")
    assert page.texts("#panel-pair h2") == ["Paraphrase and similarity"]
    assert page.texts("#panel-pair .tasks li")[1] == "similarity: a grade from 0 to 5"


def test_coming_back_keeps_what_was_written(page: Any) -> None:
    page.open()
    field = page.all("#sentences-text")[0]
    field.clear()
    field.send_keys("Mine.")
    page.browser.get(f"{page.address}docs")
    page.browser.back()
    page.until(lambda: value(page, "#first"))
    assert value(page, "#sentences-text") == "Mine."


def test_several_labels_have_marks_instead_of_one_winner(page: Any) -> None:
    answer = predicting(tags={"labels": [0, 1], "probabilities": [0.9, 0.35, 0.5]})
    page.open(info=routing(tags=TAGS), answer=answer)
    assert page.texts("#panel-sentences .tasks li") == ["any of money, outage, praise"]
    page.write("#sentences-text", "One text.")
    page.run()
    assert page.texts(".bars .best .name") == ["money", "outage"]
    assert page.texts(".set b") == ["money, outage"]
    marks = "return [...document.querySelectorAll('.bars .track')].map((one) => [\
        one.style.getPropertyValue('--threshold'), one.querySelector('b').offsetHeight > 0])"
    assert page.browser.execute_script(marks) == [["50%", True], ["30%", True], ["60%", True]]


def test_several_labels_in_a_list(page: Any, tmp_path: Path) -> None:
    answer = predicting(tags={"labels": [0, 1], "probabilities": [0.9, 0.35, 0.5]})
    page.open("list", info=routing(tags=TAGS), answer=answer)
    page.write("#list-text", "One.\nTwo.\nThree.")
    page.run()
    assert page.texts(".sentences tbody td:nth-child(3)") == ["money, outage"] * 3
    to = {"behavior": "allow", "downloadPath": str(tmp_path)}
    page.browser.execute_cdp_cmd("Browser.setDownloadBehavior", to)
    page.all(".above button")[0].click()
    file = tmp_path / "tercet.csv"
    page.until(lambda: file.exists() and file.stat().st_size > 0)
    with file.open(encoding="utf-8", newline="") as opened:
        first = next(csv.DictReader(opened))
    assert (first["tags"], first["tags outage probability"]) == ("money, outage", "0.350000")


def test_no_label_reaches_its_mark(page: Any) -> None:
    answer = predicting(tags={"labels": [], "probabilities": [0.1, 0.2, 0.3]})
    page.open(info=routing(tags={**TAGS, "thresholds": None}), answer=answer)
    page.run()
    assert set(page.texts(".set b")) == {"none"}
    assert page.all(".bars .best") == []


@pytest.mark.parametrize(
    ("scale", "share"), [([1, 10], "50%"), ([0, 5.5], "100%"), ([-10, 10], "77.5%")]
)
def test_grades_are_on_their_own_scale(page: Any, scale: list[float], share: str) -> None:
    page.open(info=routing(urgency={**URGENCY, "range": scale}), answer=predicting(urgency=5.5))
    assert page.texts("#panel-sentences .tasks li") == [f"a grade from {scale[0]} to {scale[1]}"]
    page.write("#sentences-text", "One text.")
    assert page.run() == "1 sentence graded."
    assert page.texts(".grade b") == ["5.50"]
    assert page.texts(".ends span") == [str(bound) for bound in scale]
    track = "return document.querySelector('.grade .track').style.getPropertyValue('--share')"
    assert page.browser.execute_script(track) == share


def test_a_grade_without_a_range_is_a_number(page: Any) -> None:
    page.open(info=routing(count={**URGENCY, "range": None}), answer=predicting(count=7.25))
    page.write("#sentences-text", "One text.")
    assert page.run() == "1 sentence graded."
    assert page.texts(".grade") == ["7.25"]


def test_many_classes_are_folded(page: Any) -> None:
    labels = [f"intent {number}" for number in range(77)]
    probabilities = [0.01] * 77
    probabilities[40] = 0.24
    answer = predicting(intent={"label": 40, "probabilities": probabilities})
    page.open(info=routing(intent={**TEAM, "labels": labels}), answer=answer)
    assert page.texts("#panel-sentences .tasks li")[0].endswith("intent 7 and 69 more")
    page.write("#sentences-text", "One text.")
    page.run()
    assert page.texts(".bars")[0].startswith("intent 40")
    assert len(page.all(".answer > .bars li")) == 6
    assert len(page.all(".answer details .bars li")) == 71


def test_long_names_fit_a_phone(page: Any) -> None:
    tasks = routing(**{"customer satisfaction": TEAM, "same_question": SAME})
    answer = predicting(**{
        "customer%20satisfaction": {"probabilities": [0.2, 0.5, 0.3]},
        "same_question": {"probabilities": [0.2, 0.8]},
    })  # fmt: skip
    for tab in ("sentences", "pair"):
        page.open(tab, width=360, info=tasks, answer=answer)
        page.run()
        widest = "return Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
        assert page.browser.execute_script(widest) <= 360
        tabs = page.all("[role=tab]")
        assert max(one.rect["x"] + one.rect["width"] for one in tabs) <= 360
