"""A server with a tiny model that has every task in both modes, and its page in Chromium."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tercet.data.stream import TextFile
from tercet.folders.model_card import ModelInfo
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.search.index import Index
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer

Browser = Any
LABELS = ["negative", "somewhat negative", "neutral", "somewhat positive", "positive"]
CROSS = {"kind": "mlp"}
BI = {"kind": "features", "features": ["absdiff", "product"]}
TASKS: dict[str, Any] = {
    "sentiment": {
        "data": {"layout": "cs224n-sst"},
        "labels": LABELS,
        "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
    },
    "paraphrase": {
        "data": {"layout": "cs224n-quora"},
        "labels": ["different", "paraphrase"],
        "cross": {"head": CROSS, "objective": {"kind": "binary-cross-entropy"}},
        "bi": {"head": BI, "objective": {"kind": "binary-cross-entropy"}},
    },
    "similarity": {
        "data": {"layout": "cs224n-sts"},
        "range": [0, 5],
        "cross": {"head": CROSS, "objective": {"kind": "mean-squared-error", "targets": [0, 1]}},
        "bi": {
            "head": {"kind": "cosine"},
            "objective": {"kind": "mean-squared-error", "targets": [0, 1]},
        },
    },
}
NOTES = """id,text,year
a,A <b>warm</b> room.,1999
b,Snow fell all night.,2001
c,The film was dull.,2003
"""
# Stands before the server: `answer` may answer in its place, `change` may change what it says of
# itself; all that the page asks is written down.
STAND_IN = """
const answer = (path, request, before) => {{ {answer} }};
const change = (info) => {{ {info} }};
const ask = window.fetch;
window.asked = [];
window.fetch = async (path, request) => {{
  window.asked.push({{ path, body: request.body ?? null }});
  const found = answer(path, request, window.asked.length - 1);
  if (found) {{
    const [status, body, headers] = found;
    return new Response(JSON.stringify(body), {{ status, headers }});
  }}
  const given = await ask(path, request);
  if (path !== "info" || !given.ok) return given;
  const info = await given.json();
  change(info);
  return new Response(JSON.stringify(info));
}};
"""


@pytest.fixture(scope="package")
def model(tiny_encoder: Path) -> Model:
    """Its heads know nothing, but decide sharply, so that each word counts."""
    tasks = {name: TaskSpec.model_validate(block) for name, block in TASKS.items()}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Network(load_encoder(tiny_encoder), pooling="mean", tasks=tasks)
        with torch.no_grad():
            for name, parameter in network.named_parameters():
                if not name.startswith("encoder"):
                    parameter.mul_(3.0)
    info = ModelInfo(encoder="tiny", pooling="mean", max_tokens=64, tasks=tasks)
    return Model(network, Tokenizer.load(tiny_encoder), info)


@pytest.fixture(scope="package")
def index(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("indexed")
    (folder / "notes.csv").write_text(NOTES, "utf-8")
    Index.build(folder / "notes", TextFile.open(folder / "notes.csv"), model)
    return Index.open(folder / "notes", model)


@pytest.fixture(scope="package")
def address(model: Model, index: Index, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served") / "tiny"
    model.save(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {"--model": folder, "--index": index.folder, "--port": port}
    result = [str(word) for option in options.items() for word in option]
    command = [sys.executable, "-m", "tercet", "serve", *result]
    log = folder.with_name("log")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with log.open("wb") as file:
        server = subprocess.Popen(command, stdout=file, stderr=file, env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: server.poll() is not None or answers(f"{address}/health"), seconds=60)
        assert server.poll() is None, log.read_text("utf-8")
        yield f"{address}/"
    finally:
        server.terminate()
        server.wait(timeout=20)


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def wait_for(condition: Callable[[], Any], *, seconds: float = 10.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
    return found


class Page:
    """The page in a browser, as a visitor uses it."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.browser, self.address = browser, address
        self.script: str | None = None

    def open(self, tab: str = "", *, width: int = 1200, answer: str = "", info: str = "") -> Page:
        """answer: JavaScript of path, request and how many came before; may return
            [status, body, headers]
        info: JavaScript that changes `info`
        """
        command = self.browser.execute_cdp_cmd
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        command("Emulation.setDeviceMetricsOverride", size)
        still = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
        command("Emulation.setEmulatedMedia", still)
        self.close()
        source = {"source": STAND_IN.format(answer=answer, info=info)}
        self.script = command("Page.addScriptToEvaluateOnNewDocument", source)["identifier"]
        self.browser.get("about:blank")
        self.browser.get_log("browser")
        self.browser.get(f"{self.address}#{tab}")
        wait_for(lambda: self.all("[role=tab][aria-selected=true]") or self.all("dialog[open]"))
        return self

    def close(self) -> None:
        self.offline(False)
        if self.script is not None:
            gone = {"identifier": self.script}
            self.browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", gone)

    def asked(self, path: str = "") -> list[Any]:
        """Bodies of the requests whose path begins so."""
        sent = self.browser.execute_script("return asked")
        bodies = [one["body"] for one in sent if one["path"].startswith(path)]
        return [json.loads(body) for body in bodies if body]

    def until(self, condition: Callable[[], Any]) -> None:
        wait_for(condition)

    def offline(self, is_offline: bool) -> None:
        none = {
            "offline": is_offline,
            "latency": 0,
            "downloadThroughput": -1,
            "uploadThroughput": -1,
        }
        self.browser.execute_cdp_cmd("Network.emulateNetworkConditions", none)

    def all(self, selector: str) -> list[Any]:
        return list(self.browser.find_elements("css selector", selector))

    def texts(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)"
        return list(self.browser.execute_script(script, selector))

    def write(self, selector: str, text: str) -> None:
        self.browser.execute_script(
            "document.querySelector(arguments[0]).value = arguments[1]", selector, text
        )

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.browser).send_keys(key).perform()

    @property
    def focused(self) -> Any:
        return self.browser.switch_to.active_element

    @property
    def tab(self) -> str:
        return self.all("[role=tab][aria-selected=true]")[0].get_attribute("data-name")

    def status(self) -> str:
        return self.texts(f"#panel-{self.tab} .status")[0].strip()

    def run(self) -> str:
        """Press the tab's button and wait; what the page then says."""
        button = self.all(f"#panel-{self.tab} button[type=submit]")[0]
        button.click()
        return self.done()

    def done(self) -> str:
        button = self.all(f"#panel-{self.tab} button[type=submit]")[0]
        wait_for(lambda: button.text != "Stop")
        return self.status()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    opened = Page(browser, address)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def lines() -> list[str]:
    """Sentences with all that a page or a CSV could stumble over."""
    return [
        "The film is slow, but the end is warm.",
        'She said "yes", then left.',
        "<img src=x onerror=console.error(1)> & more",
        "A film, slow and warm.",
        "We left early.",
    ]
