"""Sentences changed by rule, and the pairs that training makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.data.changed_pairs import ChangedPairs, make_changed_pairs
from tercet.data.changes import PAIR_CHANGES
from tercet.data.changes.names import names
from tercet.data.changes.order import conjuncts, roles, words
from tercet.data.examples import read_examples
from tercet.errors import TercetError
from tercet.specs import ChangeRule, ChangesSpec, TaskSpec

TAUGHT: dict[str, Any] = {
    "labels": ["different", "paraphrase"],
    "cross": {"head": {"kind": "mlp"}, "objective": {"kind": "binary-cross-entropy"}},
    "teacher": {"folder": "base", "weight": 1.0},
}


def task(**data: Any) -> TaskSpec:
    return TaskSpec.model_validate({**TAUGHT, "data": data})


def test_every_rule_of_recipes_is_registered() -> None:
    assert tuple(PAIR_CHANGES) == get_args(ChangeRule)
    assert [rule.name for rule in PAIR_CHANGES.values()] == list(PAIR_CHANGES)


@given(text=st.text(st.sampled_from("ab AB.,'and or from to Rome"), max_size=40))
def test_rules_change_something_or_give_none_the_same_each_time(text: str) -> None:
    for rule in PAIR_CHANGES.values():
        changed = rule.change(text, 3)
        assert changed != text
        assert changed == rule.change(text, 3)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("Some good books on black holes", "Some black books on good holes"),
        ("We saw cats and dogs", None),  # joined by `and`: the meaning would stay
        ("The horse", None),
    ],
)
def test_two_words_in_like_places_trade_them(text: str, changed: str | None) -> None:
    assert words(text, 0) == changed


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("flights from Paris to Rome", "flights from Rome to Paris"),
        ("Tom gave Mary a book", "Mary gave Tom a book"),
        ("Is the dog bigger than the cat?", None),
        ("A dog is bigger than the cat.", "the cat is bigger than A dog."),
        ("He ate the soup before the bread.", "He ate the bread before the soup."),
        ("What is the difference between Oslo and Bergen?", None),
        ("Is Oslo the same as Bergen?", None),
        ("It was founded by Tom", None),
    ],
)
def test_the_sides_of_a_relation_trade_places(text: str, changed: str | None) -> None:
    assert roles(text, 0) == changed


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("All of cats and dogs.", "All of dogs and cats."),
        ("trade between Norway and Sweden", "trade between Sweden and Norway"),
        ("black cats and dogs", None),  # black may belong to the cats alone
        ("cats and dogs", "dogs and cats"),
        ("he came and we went", None),
    ],
)
def test_parts_of_an_and_trade_places_where_nothing_belongs_to_one_of_them(
    text: str, changed: str | None
) -> None:
    assert conjuncts(text, 0) == changed


def test_a_name_is_replaced_wherever_it_is_by_one_of_its_kind() -> None:
    changed = names("Is Rome nice? I went to Rome", 0)
    assert changed is not None
    city = changed.split()[1]
    assert (
        city in "London Paris Berlin Madrid Boston Chicago Toronto Sydney Tokyo Delhi Mumbai Cairo"
    )
    assert changed == f"Is {city} nice? I went to {city}"
    assert names("we met Esmeralda", 0) not in (None, "we met Esmeralda")
    assert names("Nothing here", 0) is None
    assert names("THIS IS A HEADLINE", 0) is None


def test_pairs_are_balanced_over_rules_and_the_same_each_time() -> None:
    texts = [
        f"It is {number}" if number < 10 else f"It is so {number * 'x'}" for number in range(50)
    ]

    def made(pairs: int) -> ChangedPairs:
        return make_changed_pairs(texts, ChangesSpec(pairs=pairs, rules=["numbers", "negation"]))

    def changed_numbers(pairs: int) -> int:
        return sum("not" not in changed for changed in made(pairs).changed)

    assert (len(made(20).changed), changed_numbers(20)) == (20, 10)
    assert made(20).rows.tolist() == sorted(made(20).rows.tolist())
    # Where a rule has too few, others fill in.
    assert changed_numbers(40) == 10
    assert len(made(1_000).changed) == 60
    assert made(20).remark == "Changed by rule: numbers 10, negation 50."


def test_the_same_sentences_are_changed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["It is 5", "Él es — “así”\nY 6", "It is 5", "It is here"]
    spec = ChangesSpec(pairs=9, rules=["numbers", "negation"])
    first = make_changed_pairs(texts, spec)
    # The third sentence is the first once more.
    assert first.rows.tolist() == [0, 0, 1, 3]
    never = {"numbers": None, "negation": None}
    monkeypatch.setattr("tercet.data.changed_pairs.PAIR_CHANGES", never)
    again = make_changed_pairs(texts, spec)
    assert (again.changed, again.found) == (first.changed, first.found)
    with pytest.raises(AttributeError):
        make_changed_pairs(texts, spec.model_copy(update={"seed": 1}))


def test_a_recipe_makes_pairs_of_all_its_sentences(tmp_path: Path) -> None:
    rows = ["up\tdown", "It is here\tIt is 5", "It is here\tIt was 6"]
    (tmp_path / "a.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    spec = task(train="a.tsv", texts=[1, 2], header=False, changes={"pairs": 9})
    found = read_examples(spec, "train", tmp_path)
    assert found.labels is None
    pairs = set(zip(*found.texts, strict=True))
    assert ("It is here", "It is not here") in pairs
    assert ("It was 6", "It was not 6") in pairs
    assert len(pairs) == len(found) == 5
    assert found.lines.tolist() == [2, 2, 2, 3, 3]
    assert "negation 3" in found.remark
    (tmp_path / "a.tsv").write_text("up\tdown\n", "utf-8")
    with pytest.raises(TercetError, match="no r"):
        read_examples(spec, "train", tmp_path)


def test_changed_sentences_need_a_teacher_and_one_source() -> None:
    with pytest.raises(ValueError, match=r"`data\.changes` have no labels"):
        TaskSpec.model_validate(
            {**TAUGHT, "teacher": None, "data": {"layout": "sentences", "changes": {"pairs": 5}}}
        )
    with pytest.raises(ValueError, match="`pairs` or `changes`, not both"):
        task(layout="sentences", pairs={"random": 3}, changes={"pairs": 5})
    with pytest.raises(ValueError, match="words"):
        task(layout="sentences", changes={"pairs": 5, "rules": ["letters"]})


def test_only_pairs_with_common_words_are_read(tmp_path: Path) -> None:
    rows = ["a b c d\ta b c e\t0", "a b\tc d\t1", "a b\tB a\t1"]
    (tmp_path / "a.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    labelled = {key: value for key, value in TAUGHT.items() if key != "teacher"}
    data = {"train": "a.tsv", "texts": [1, 2], "label": 3, "header": False, "overlap": 0.6}
    found = read_examples(TaskSpec.model_validate({**labelled, "data": data}), "train", tmp_path)
    assert found.texts[0] == ["a b c d", "a b"]
    assert found.labels is not None
    assert np.array_equal(found.labels, [0, 1])
    assert "60% of their words" in found.remark
