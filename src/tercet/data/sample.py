"""Small generated data in the CS224N layout, from the word lists in sample_words.toml."""

from __future__ import annotations

import csv
import hashlib
import random
import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from tercet.errors import TercetError

Row = tuple[str, ...]
# After this many repetitions in succession no new rows are left.
PATIENCE = 5_000


class Family(NamedTuple):
    """Topics, and questions about them; each inner list words the same question."""

    topics: list[str]
    questions: list[list[str]]


_WORDS = tomllib.loads((resources.files("tercet.data") / "sample_words.toml").read_text("utf-8"))

KINDS: list[str] = _WORDS["kinds"]
TITLES: list[str] = _WORDS["titles"]
ASPECTS: list[str] = _WORDS["aspects"]
VERDICTS: list[list[str]] = _WORDS["verdicts"]
FAMILIES = [Family(**family) for family in _WORDS["families"]]
WEIGHTS: dict[str, float] = _WORDS["weights"]
PLURALS = tuple(map(str, _WORDS["plurals"]))
WHO, ACTIONS, THINGS, PLACES = (
    [tuple(map(str, wordings)) for wordings in _WORDS[name]]
    for name in ("who", "actions", "things", "places")
)


def write_sample(folder: Path, *, seed: int = 0, rows: int = 240) -> None:
    """Write six files: `rows` training rows and a quarter as many dev rows for each task.

    The same seed and rows give the same bytes. No row of a dev file is in its train file.
    """
    if rows < 4:
        raise TercetError(f"`rows` is {rows}; it must be at least 4.")
    folder.mkdir(parents=True, exist_ok=True)
    for name, header, compose in (
        ("ids-sst", ("sentence", "sentiment"), _sentiment),
        ("quora", ("sentence1", "sentence2", "is_duplicate"), _paraphrase),
        ("sts", ("sentence1", "sentence2", "similarity"), _similarity),
    ):
        chance = random.Random(f"{name} {seed}")
        drawn = _draw(compose, chance, count=rows + rows // 4, name=name)
        chance.shuffle(drawn)
        _write(folder / f"{name}-train.csv", header, drawn[:rows])
        _write(folder / f"{name}-dev.csv", header, drawn[rows:])


def _draw(
    compose: Callable[[random.Random, int], Row], chance: random.Random, *, count: int, name: str
) -> list[Row]:
    """`count` rows whose texts all differ, in whatever order a pair is read."""
    rows: dict[frozenset[str], Row] = {}
    misses = 0
    while len(rows) < count:
        row = compose(chance, len(rows))
        key = frozenset(row[:-1])
        misses = misses + 1 if key in rows else 0
        if misses > PATIENCE:
            raise TercetError(
                f"Only {len(rows)} different {name} rows exist; `rows` must be lower."
            )
        rows.setdefault(key, row)
    return list(rows.values())


def _write(path: Path, header: Row, rows: list[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(("", "id", *header))
        for index, row in enumerate(rows):
            identity = hashlib.sha256("\t".join(row).encode()).hexdigest()[:25]
            writer.writerow((index, identity, *row))


def _sentence(text: str) -> str:
    """Upper-case the first letter, and end with a full stop unless it is a question."""
    return text[0].upper() + text[1:] + ("" if text.endswith("?") else ".")


def _sentiment(chance: random.Random, turn: int) -> Row:
    """A remark on a film and its grade: 0 scathing, 1 cool, 2 neither, 3 warm, 4 glowing."""
    grade = turn % 5
    film = _film(chance)
    aspect, other = chance.sample(ASPECTS, 2)
    said, again = chance.sample(VERDICTS[grade], 2)
    against = chance.choice(VERDICTS[4 - grade])
    plain = [f"{film} {said}", f"{aspect} of {film} {said}", f"{film} {said}, and {aspect} {again}"]
    if grade == 2:
        good, bad = chance.choice(VERDICTS[3]), chance.choice(VERDICTS[1])
        mixed = [f"{aspect} {good} but {other} {bad}", f"{film} {bad}, yet {aspect} {good}"]
    elif grade in (1, 3):
        mixed = [f"although {aspect} {against}, {film} {said} overall and {other} {again}"]
        mixed += [f"{aspect} {against}, but {film} as a whole {said} and {again}"]
    else:
        mixed = [f"{aspect} {said} and {other} {again}", f"I must say that {film} {said}"]
    return _sentence(chance.choice(plain + mixed)), str(grade)


def _film(chance: random.Random) -> str:
    if chance.random() < 0.5:
        return chance.choice(TITLES)
    return f"this {chance.choice(KINDS)}"


def _paraphrase(chance: random.Random, turn: int) -> Row:
    """Two questions: the same one worded twice (1.0), or one that only looks like it (0.0)."""
    family = chance.choice(FAMILIES)
    topic, other_topic = chance.sample(family.topics, 2)
    intent, other_intent = chance.sample(family.questions, 2)
    if turn % 2:
        first, second = chance.sample(intent, 2)
        return first.format(topic), second.format(topic), "1.0"
    if chance.random() < 0.5:
        return chance.choice(intent).format(topic), chance.choice(other_intent).format(topic), "0.0"
    return chance.choice(intent).format(topic), chance.choice(intent).format(other_topic), "0.0"


def _similarity(chance: random.Random, turn: int) -> Row:
    """Two scenes; the label adds the weights of the slots on which they agree, 5.0 for all."""
    agreeing = set(chance.sample(sorted(WEIGHTS), turn % 5))
    who, other_who = chance.sample(WHO, 2)
    place, other_place = chance.sample(PLACES, 2)
    action, other_action = chance.sample(ACTIONS, 2)
    thing, other_thing = chance.sample(THINGS, 2)
    first = (who, action, thing, place)
    second = (
        who if "who" in agreeing else other_who,
        action if "action" in agreeing else other_action,
        thing if "thing" in agreeing else other_thing,
        place if "place" in agreeing else other_place,
    )
    score = sum((WEIGHTS[slot] for slot in agreeing), start=0.0)
    text, other_text = _scene(chance, *first), _scene(chance, *second)
    while text == other_text:
        other_text = _scene(chance, *second)
    return text, other_text, str(score)


def _scene(chance: random.Random, who: Row, action: Row, thing: Row, place: Row) -> str:
    """One wording of a scene; each slot is a tuple of wordings that mean the same."""
    person, verb, object_, where = (chance.choice(slot) for slot in (who, action, thing, place))
    be = "are" if person.startswith(PLURALS) else "is"
    if chance.random() < 0.3:
        return _sentence(f"{where}, {person} {be} {verb} {object_}")
    return _sentence(f"{person} {be} {verb} {object_} {where}")
