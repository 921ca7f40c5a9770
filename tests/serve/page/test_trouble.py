"""Limits, a busy server, one that is gone, and keys."""

from __future__ import annotations

from typing import Any


def test_requests_keep_to_the_servers_limits(page: Any, lines: list[str]) -> None:
    page.open("list", info="info.tercet.limits.inputs = 2;")
    page.write("#list-text", "\n".join(lines))
    assert page.run() == "5 lines analysed."
    sizes = [len(body["input"]) for body in page.asked("v1/embeddings")]
    sizes += [len(body["inputs"]) for body in page.asked("predict/")]
    assert sizes == [2, 2, 1] * 2
    assert page.texts(".sentences tbody th") == lines


def test_a_refusal_is_shown_with_the_text_at_fault(page: Any, lines: list[str]) -> None:
    refusal = '{ error: "Has 900 tokens, 64 are taken.", field: "inputs.1" }'
    page.open("sentences", answer=f'if (path !== "info") return [422, {refusal}];')
    page.write("#sentences-text", "\n".join(lines))
    assert page.run() == f"Has 900 tokens, 64 are taken. The text is: {lines[1]}"
    assert page.all(".status.failed")


def test_a_long_text_is_cut_and_that_is_said(page: Any) -> None:
    page.open("sentences").write("#sentences-text", "long " * 80)
    assert page.run() == "1 sentence classified. Texts of more than 64 tokens were cut."


BUSY = '[429, { error: "The queue is full.", field: null }, { "Retry-After": "%d" }]'


def test_a_busy_server_is_asked_again(page: Any, lines: list[str]) -> None:
    once = f"if (before === 1) return {BUSY % 1};"
    page.open("sentences", answer=once).write("#sentences-text", lines[0])
    page.all("#panel-sentences button[type=submit]")[0].click()
    page.until(lambda: page.status() == "The server is busy. Retrying automatically in 1 s.")
    assert page.texts("#panel-sentences .seconds[aria-hidden]") == ["in 1 s."]
    assert page.done() == "1 sentence classified."


def test_waiting_for_a_busy_server_can_be_stopped(page: Any) -> None:
    page.open("sentences", answer=f'if (path !== "info") return {BUSY % 30};')
    button = page.all("#panel-sentences button[type=submit]")[0]
    button.click()
    page.until(lambda: "in 30 s." in page.status())
    assert button.text == "Stop"
    button.click()
    assert page.done() == "Stopped."


def test_a_server_that_is_gone_is_named_and_asked_again_later(page: Any, lines: list[str]) -> None:
    page.open("sentences").write("#sentences-text", lines[0])
    page.offline(True)
    assert page.run() == (
        "The server is unreachable: check that tercet serve is running. "
        "Your text is kept: press Predict to retry."
    )
    page.offline(False)
    assert page.run() == "1 sentence classified."


def test_a_key_is_asked_for_and_kept_in_memory(page: Any, lines: list[str]) -> None:
    from selenium.webdriver.common.keys import Keys

    refused = '[401, { error: "Give a key.", field: null }]'
    page.open(answer=f'if (request.headers.Authorization !== "Bearer sesame") return {refused};')
    assert page.focused.get_attribute("id") == "key-text"
    page.press("wrong", Keys.ENTER)
    page.until(lambda: page.texts("#key-title") == ["That key was refused"])
    page.press("sesame", Keys.ENTER)
    page.until(lambda: page.all("[role=tab][aria-selected=true]"))
    page.write("#sentences-text", lines[0])
    assert page.run() == "1 sentence classified."
    kept = """
        const stores = [{ ...localStorage }, { ...sessionStorage }, document.cookie];
        return JSON.stringify([...stores, location.href])"""
    assert "sesame" not in page.browser.execute_script(kept)
    assert page.all("#key-text")[0].get_property("value") == ""
