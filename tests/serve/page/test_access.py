"""Keyboard, screen reader, phone, contrast, and a browser without complaints."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tercet.model import Model


def test_everything_is_reached_by_keyboard(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    page.open()
    page.press(Keys.TAB)
    assert page.focused.text == "Skip to content"
    page.press(Keys.ENTER)
    assert page.focused.get_attribute("id") == "content"
    page.press(Keys.TAB)
    assert page.focused.get_attribute("id") == "tab-sentences"
    page.press(Keys.ARROW_RIGHT)
    assert (page.tab, page.browser.current_url) == ("pair", f"{page.address}#pair")
    page.press(Keys.END, Keys.ARROW_RIGHT)
    assert page.tab == "sentences"
    page.press(Keys.TAB, "A film. ")
    assert page.focused.get_attribute("id") == "sentences-text"
    page.press(Keys.TAB, Keys.ENTER)
    assert page.done().endswith("sentences classified.")
    page.press(Keys.TAB, Keys.ENTER)
    assert page.focused.get_attribute("id") == "sentences-text"
    page.press("A slow film.")
    page.focused.send_keys(Keys.CONTROL, Keys.ENTER)
    page.until(lambda: page.texts(".answer .shaded") == ["A slow film."])
    assert page.done() == "1 sentence classified."
    page.press(Keys.TAB, Keys.TAB, Keys.TAB)
    assert page.focused.tag_name == "summary"
    page.press(Keys.ENTER)
    assert page.all("details.every[open]")


def test_tables_sort_by_keyboard(page: Any, model: Model, lines: list[str]) -> None:
    from selenium.webdriver.common.keys import Keys

    page.open("list").write("#list-text", "\n".join(lines))
    page.run()
    button = page.all(".sentences thead button")[2]
    button.send_keys(Keys.ENTER)
    best = [found.label + max(found.probabilities) for found in model.sentiment(lines)]
    order = np.argsort(best)
    assert page.texts(".sentences tbody th") == [lines[place] for place in order[::-1]]
    header = page.all(".sentences thead th")[2]
    assert header.get_attribute("aria-sort") == "descending"
    assert page.status() == "Sorted by Sentiment, descending."
    button.send_keys(Keys.SPACE)
    assert page.focused == button
    assert page.texts(".sentences tbody th") == [lines[place] for place in order]
    states = [one.get_attribute("aria-sort") for one in page.all(".sentences thead th")]
    assert states == ["none", "none", "ascending", "none", "none"]


def test_the_map_is_walked_by_keyboard_and_pointed_at(page: Any, lines: list[str]) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    page.open("list").write("#list-text", "\n".join(lines))
    page.run()
    stops = page.all(".point[tabindex='0']")
    assert len(stops) == 1
    page.browser.execute_script("arguments[0].focus()", stops[0])
    page.press(Keys.HOME)
    read = [page.texts(".pointed")[0]]
    for _ in lines[1:]:
        page.press(Keys.ARROW_RIGHT)
        read.append(page.texts(".pointed")[0])
        assert page.focused.get_attribute("aria-label").startswith(read[-1].split(" line ")[0])
    assert len({text.split(" line ")[0] for text in read} & set(lines)) == len(lines)
    ActionChains(page.browser).move_to_element(page.all(".point")[1]).perform()
    assert page.texts(".pointed")[0].startswith(lines[1])


def test_tabs_have_their_own_addresses(page: Any) -> None:
    page.open("list")
    assert page.tab == "list"
    page.all("#tab-pair")[0].click()
    assert page.browser.current_url.endswith("#pair")
    page.browser.back()
    page.until(lambda: page.tab == "list")
    assert [one.get_attribute("id") for one in page.all("[role=tabpanel]:not([hidden])")] == [
        "panel-list"
    ]


def test_a_phone_needs_no_sideways_scrolling(page: Any) -> None:
    for tab in ("sentences", "pair", "list"):
        page.open(tab, width=360)
        page.run()
        widest = "return Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
        assert page.browser.execute_script(widest) <= 360
        tabs = page.all("[role=tab]")
        assert max(one.rect["x"] + one.rect["width"] for one in tabs) <= 360


def test_the_page_can_be_heard(page: Any, lines: list[str]) -> None:
    page.open("list").write("#list-text", "\n".join(lines))
    page.run()
    assert len(page.all("table")) == len(page.all("table > caption")) == 2
    assert page.all("th:not([scope])") == []
    nameless = """
        const fields = [...document.querySelectorAll("textarea, input")];
        return fields.filter((one) => one.labels.length === 0).length"""
    assert page.browser.execute_script(nameless) == 0
    assert len(page.all(".status[role=status]")) == len(page.all("form .status"))
    assert all(one.get_attribute("aria-label") for one in page.all(".point, svg[role=group]"))
    assert len(page.all("h1")) == 1
    for tab in page.all("[role=tab]"):
        panel = page.all(f"#{tab.get_attribute('aria-controls')}")[0]
        assert panel.get_attribute("aria-labelledby") == tab.get_attribute("id")


def test_text_stands_out_from_its_ground(page: Any) -> None:
    page.open()
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        check_contrasts(page)


def check_contrasts(page: Any) -> None:
    script = """
        const style = getComputedStyle(document.documentElement);
        const value = (name) => style.getPropertyValue(`--${name}`).trim();
        return Object.fromEntries(arguments[0].map((name) => [name, value(name)]));"""
    names = ["paper", "raised", "ink", "muted", "accent", "against", "on-accent", "edge"]
    colours = page.browser.execute_script(script, names)
    for ground in ("paper", "raised"):
        for text in ("ink", "muted", "accent", "against"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        assert contrast(colours["edge"], colours[ground]) >= 3
    assert contrast(colours["on-accent"], colours["accent"]) >= 4.5
    for tint in ("accent", "against"):
        mixed = 0.42 * rgb(colours[tint]) + 0.58 * rgb(colours["raised"])
        assert ratio(luminance(rgb(colours["ink"])), luminance(mixed)) >= 4.5


def rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])


def luminance(colour: np.ndarray) -> float:
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def ratio(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


def contrast(one: str, other: str) -> float:
    return ratio(luminance(rgb(one)), luminance(rgb(other)))


def test_the_browser_complains_of_nothing_and_asks_nobody_else(page: Any, lines: list[str]) -> None:
    page.browser.get_log("performance")
    page.open("sentences").write("#sentences-text", "\n".join(lines))
    page.run()
    for tab in ("pair", "list"):
        page.all(f"#tab-{tab}")[0].click()
        page.run()
    assert page.browser.get_log("browser") == []
    entries = [json.loads(one["message"])["message"] for one in page.browser.get_log("performance")]
    requested = [
        one["params"]["request"]["url"]
        for one in entries
        if one["method"] == "Network.requestWillBeSent"
    ]
    assert len(requested) > 10
    assert [url for url in requested if not url.startswith(page.address)] == []
