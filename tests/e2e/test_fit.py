"""The day of a new user: five files of their own, a model from one command, and a sixth task."""

from __future__ import annotations

import csv
import hashlib
import json
import random
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import tercet as package
from tercet.model import Model

SECONDS = 600.0
MINUTES = 0.5
TEAMS = {
    "billing and refunds": "my {thing} invoice {n} is wrong|I was charged twice for the {thing}, "
    "bill {n}|please refund payment {n} for the {thing}",
    "delivery": "parcel {n} with the {thing} never came|the courier lost my {thing}, number {n}|"
    "when does shipment {n} with the {thing} arrive",
    "technical help": "the {thing} shows error {n} and will not start|my {thing} crashes with code "
    "{n}|the screen of the {thing} stays black, case {n}",
    "new orders": "I would like to buy {n} of your {thing}|what do {n} {thing}s cost|"
    "please send an offer for {n} pieces of the {thing}",
    "account": "I forgot the password of account {n}|please change my e-mail address, user {n}|"
    "delete my user profile {n}",
    "jobs": "I apply for position {n} in your company|is the internship {n} still open|my "
    "curriculum vitae for job {n} is attached",
}
THINGS = ["printer", "phone", "lamp", "chair", "camera", "kettle", "laptop", "clock"]
ASKED = [
    ("how can I learn to play the guitar", "what is the best way to start with guitar lessons"),
    ("why is the sky blue", "what makes the sky look blue"),
    ("how do I lose weight quickly", "what is a fast way to get slimmer"),
    ("which book should I read next", "can you recommend a good novel"),
    ("how is bread baked", "what are the steps of making bread"),
    ("who invented the telephone", "which person made the first telephone"),
    ("what is the capital of France", "which city is the French capital"),
    ("how do I repair a flat tyre", "what should I do when my tyre has no air"),
]
PLACES = ["in winter", "in Oslo", "for a child", "at home", "with friends", "this year", "in 2020"]
TAGS = {
    "price": "it is far too expensive",
    "quality": "it broke after two days",
    "service": "the staff was rude to me",
    "speed": "I waited for weeks",
}
ACTS = ["plays football", "eats an apple", "reads a book", "sleeps", "drives a car", "sings"]
OPPOSITE = {
    "plays football": "sits still", "eats an apple": "eats nothing", "reads a book": "cannot read",
    "sleeps": "is awake", "drives a car": "has never driven", "sings": "is silent",
}  # fmt: skip
SCENES = {
    "plays football": "is outdoors", "eats an apple": "eats fruit", "reads a book": "is reading",
    "sleeps": "is asleep", "drives a car": "is in a car", "sings": "makes music",
}  # fmt: skip
GUESSES = ["has two sisters", "comes from Spain", "likes tea", "will marry soon", "is a doctor"]


def write(path: Path, header: list[str], rows: list[list[Any]], delimiter: str = ",") -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *rows])


def write_files(folder: Path) -> None:
    draw = random.Random(7)
    tickets = []
    for number in range(180):
        team = list(TEAMS)[number % 6]
        text = draw.choice(TEAMS[team].split("|"))
        text = text.format(thing=draw.choice(THINGS), n=draw.randrange(10_000))
        tickets.append([number, text, "" if number % 29 == 3 else team])
    write(folder / "tickets.csv", ["id", "subject", "team"], tickets, ";")

    questions = []
    for number in range(150):
        first, second = draw.sample(ASKED, 2)
        place = draw.choice(PLACES)
        other = first[1] if number % 2 else second[1]
        questions.append(
            [f"{first[0]} {place}?", f"{other} {place}?", "yes" if number % 2 else "no"]
        )
    write(folder / "questions.csv", ["question1", "question2", "same"], questions)

    grades = []
    for number in range(150):
        grade = 1 + number % 10
        words = draw.sample(THINGS, 4)
        near = round((grade - 1) * 4 / 9)
        other = [*words[:near], *draw.sample(["rain", "music", "war", "cheese", "law"], 4 - near)]
        grades.append([" and ".join(words), " and ".join(other), grade])
    write(folder / "grades.csv", ["text1", "text2", "score"], grades)

    tags = []
    for number in range(150):
        chosen = [tag for tag in TAGS if draw.random() < 0.4] or [list(TAGS)[number % 4]]
        parts = [TAGS[tag] for tag in chosen]
        draw.shuffle(parts)
        thing = draw.choice(THINGS)
        tags.append([f"The {thing} {number}: {' and '.join(parts)}.", "; ".join(chosen)])
    write(folder / "tags.csv", ["review", "tags"], tags)

    pairs = []
    for number in range(150):
        who, act = draw.choice(["A man", "A woman", "The girl", "My uncle"]), draw.choice(ACTS)
        label = ["entailment", "neutral", "contradiction"][number % 3]
        guess = draw.choice(GUESSES)
        says = {"entailment": SCENES[act], "neutral": guess, "contradiction": OPPOSITE[act]}
        place = draw.choice(PLACES)
        pairs.append([f"{who} {act} {place}.", f"{who} {says[label]} {place}.", label])
    write(folder / "nli.csv", ["premise", "hypothesis", "relation"], pairs)

    moods = [
        [draw.choice(["I am so happy with the {}", "the {} is wonderful"] if number % 2 else
                     ["I am angry about the {}", "the {} is a disaster"])
         .format(f"{draw.choice(THINGS)} {number}"), "good" if number % 2 else "bad"]
        for number in range(60)
    ]  # fmt: skip
    write(folder / "mood.csv", ["message", "mood"], moods)


class Day:
    """A user's folder, and commands in it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment

    def run(self, *arguments: object) -> tuple[str, str]:
        """stdout and stderr of a command that succeeds."""
        ended = subprocess.run(
            [sys.executable, "-m", "tercet", *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout, ended.stderr


FILES = ["tickets.csv", "questions.csv", "grades.csv", "tags.csv", "nli.csv"]


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Day:
    """Five files, and runs/mine fitted to all of them with one command."""
    folder = tmp_path_factory.mktemp("day")
    write_files(folder)
    day = Day(folder, environment)
    out, err = day.run("fit", *FILES, "--minutes", MINUTES, "--out", "runs/mine", "--device", "cpu")
    (folder / "out.txt").write_text(out, "utf-8")
    (folder / "err.txt").write_text(err, "utf-8")
    return day


def test_five_files_are_understood(day: Day) -> None:
    talk = (day.folder / "err.txt").read_text("utf-8")
    for sentence in (
        "tickets.csv: 173 texts in `subject`, 6 classes (",
        "7 rows without a text or a label are left out",
        "questions.csv: 150 pairs of texts in `question1` and `question2`, 2 classes (",
        "grades.csv: 150 pairs of texts in `text1` and `text2`, grades from 1 to 10 in `score`.",
        "tags.csv: 150 texts in `review`, 4 labels, any number per row (",
        "nli.csv: 150 pairs of texts in `premise` and `hypothesis`, 3 classes (",
    ):
        assert sentence in talk


def test_every_task_is_as_good_as_its_linear_model(day: Day) -> None:
    table = (day.folder / "out.txt").read_text("utf-8").splitlines()
    rows = {cells[0]: cells[1:] for cells in (line.split("\t") for line in table[1:])}
    assert list(rows) == ["tickets", "questions", "grades", "tags", "nli"]
    stored = json.loads((day.folder / "runs/mine/baselines.json").read_text("utf-8"))["tasks"]
    for name, (metric, score, interval, linear, most, _) in rows.items():
        # Rows that are all right do not tell how far an F1 could be from 1.
        assert interval or (metric, score) == ("micro-f1", "1.000")
        low, high = map(float, interval.split(" to ")) if interval else (1.0, 1.0)
        assert low <= float(score) <= high
        assert metric == stored[name]["metric"]
        assert float(linear) == pytest.approx(stored[name]["linear"], abs=5e-4)
        assert float(linear) <= high, f"{name}: {score} ({interval}) is below linear {linear}"
        assert float(score) > float(most or 0.0)
    page = (day.folder / "runs/mine/report.html").read_text("utf-8")
    assert all(name in page for name in rows)


def test_the_recipe_it_wrote_trains_again_to_the_same_model(day: Day) -> None:
    command = re.search(
        r"tercet (train \S+ --data \S+ --out) DIR", (day.folder / "err.txt").read_text("utf-8")
    )
    assert command is not None
    day.run(*command[1].split(), "runs/again", "--device", "cpu")
    for file in ("model.safetensors", "heads.safetensors"):
        ours, theirs = (day.folder / "runs" / run / "model" / file for run in ("mine", "again"))
        assert ours.read_bytes() == theirs.read_bytes()
    one, other = (package.load(day.folder / "runs" / run) for run in ("mine", "again"))
    assert one.info.scalings == other.info.scalings
    assert one.info.thresholds == other.info.thresholds


def digests(model: Model, tasks: Any) -> dict[str, str]:
    texts = ["the lamp never came", "please refund me", "who invented the clock"]
    pairs = list(zip(texts, texts[::-1], strict=True))
    values = {"vectors": model.embed(texts)}
    for name in tasks:
        single = "single" in model.tasks[name].modes
        values[name] = model.predictions(name, texts if single else pairs)
    return {name: hashlib.sha256(value.tobytes()).hexdigest() for name, value in values.items()}


@pytest.fixture(scope="module")
def added(day: Day) -> str:
    """What is said while a sixth task is added to the model."""
    arguments = ["--onto", "runs/mine", "--out", "runs/six", "--minutes", 0.25, "--device", "cpu"]
    return day.run("fit", "mood.csv", *arguments)[1]


def test_a_sixth_task_leaves_old_answers_as_they_are(day: Day, added: str) -> None:
    old, new = (package.load(day.folder / "runs" / run, device="cpu") for run in ("mine", "six"))
    assert digests(new, old.tasks) == digests(old, old.tasks)
    assert list(new.tasks) == [*old.tasks, "mood"]
    good, bad = new.predict("mood", ["I am so happy with it", "this is a disaster"])
    assert (good.name, bad.name) == ("good", "bad")
    assert "mood.csv: 60 texts in `message`, 2 classes" in added


@pytest.fixture
def server(day: Day, added: str) -> Iterator[subprocess.Popen[str]]:
    """A server of the link `current`, which leads to the run of five tasks."""
    link = day.folder / "current"
    link.symlink_to("runs/mine")
    process = subprocess.Popen(
        [sys.executable, "-m", "tercet", "serve", "--model", str(link), "--port", "0"],
        env=day.environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.wait()


def next_event(process: subprocess.Popen[str], event: str) -> dict[str, Any]:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("{") and json.loads(line)["event"] == event:
            found: dict[str, Any] = json.loads(line)
            return found
    raise AssertionError(f"the server ended before {event}")


def test_the_server_answers_the_sixth_task_after_sighup_with_no_failed_request(
    day: Day, server: subprocess.Popen[str]
) -> None:
    url = next_event(server, "ready")["url"]
    body = {"inputs": ["the lamp never came", "please refund payment 3"]}
    answers: Counter[tuple[int, bool]] = Counter()
    stop = threading.Event()
    with httpx.Client(base_url=url, timeout=SECONDS, trust_env=False) as client:
        expected = client.post("/predict/tickets", json=body).json()
        assert client.post("/predict/mood", json=body).status_code == 404

        def hammer() -> None:
            with httpx.Client(base_url=url, timeout=SECONDS, trust_env=False) as own:
                while not stop.is_set():
                    reply = own.post("/predict/tickets", json=body)
                    answers[reply.status_code, reply.json() == expected] += 1

        with ThreadPoolExecutor(2) as pool:
            hammering = [pool.submit(hammer) for _ in range(2)]
            (day.folder / "next").symlink_to("runs/six")
            (day.folder / "next").replace(day.folder / "current")
            server.send_signal(signal.SIGHUP)
            tasks = next_event(server, "reloaded")["tasks"]
            stop.set()
            for one in hammering:
                one.result()
        assert tasks[-1] == "mood"
        assert set(answers) == {(200, True)}
        reply = client.post("/predict/mood", json={"inputs": ["I am so happy with the kettle"]})
        assert reply.status_code == 200
        assert "good" in reply.text
