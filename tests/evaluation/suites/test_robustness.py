from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.data.changes import PERTURBATIONS
from tercet.data.changes.negation import negation
from tercet.data.changes.numbers import numbers
from tercet.data.changes.typing_errors import casing, typos
from tercet.data.examples import read_examples
from tercet.errors import TercetError
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.presentation import spread
from tercet.evaluation.suites.robustness import PERTURBED, Robustness
from tercet.evaluation.suites.robustness.word_order import (
    KindResult,
    OrderPairs,
    change_sentences,
    measure_order,
    overlaps,
    predicts_same,
    read_order_set,
)
from tercet.specs import DataSpec


@given(text=st.text(max_size=60), seed=st.integers(0, 5))
def test_rules_change_something_or_say_none_and_depend_on_the_seed_alone(
    text: str, seed: int
) -> None:
    for rule in PERTURBATIONS:
        changed = rule.change(text, seed)
        assert changed != text
        assert changed == rule.change(text, seed)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("He is here .", "He is not here ."),
        ("He is not here .", "He is here ."),
        ("She did n't go", "She did go"),
        ("They don't", "They do"),
        ("It won't end", "It will end"),
        ("I can't see", "I can see"),
        ("I cannot see", "I can see"),
        ("IT WAS GOOD", "IT WAS NOT GOOD"),
        ("What a film", None),
    ],
)
def test_negation_puts_a_not_in_or_takes_it_out(text: str, changed: str | None) -> None:
    assert negation(text, 0) == changed


def test_numbers_change_and_nothing_else() -> None:
    changed = numbers("Two dogs, 3 cats and 1,000 birds in room 7b", 0)
    words = changed.split()
    assert words[0] != "Two"
    assert words[0].istitle()
    assert int(words[2]) > 3
    assert changed.split(maxsplit=3)[3] == "cats and 1,000 birds in room 7b"
    assert numbers("no number here", 0) is None


def test_casing_and_typos() -> None:
    assert casing("So it goes", 0) == "SO IT GOES"
    assert casing("NASA", 0) == "nasa"
    assert casing("123", 0) is None
    text = "several wonderful moments happen quietly"
    changed = typos(text, 3)
    pairs = list(zip(text.split(), changed.split(), strict=True))
    assert sum(one != two for one, two in pairs) == 1
    assert all(one[0] == two[0] and abs(len(one) - len(two)) <= 1 for one, two in pairs)
    assert typos(text, 4) != changed
    assert typos("a b c", 0) is None


def test_word_order_worked_by_hand(headed, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = OrderPairs(
        first=["a b c", "a b c", "a b c d", "x y"],
        second=["c b a", "c a b", "a b", "x y"],
        same=np.array([False, True, False, True]),
        heuristics=["one", "one", "two", "two"],
        kinds=["swapped", "swapped", "shorter", "equal"],
    )
    assert overlaps(pairs.first, pairs.second).tolist() == [1.0, 1.0, 0.5, 1.0]
    said = np.array([0.9, 0.8, 0.1, 0.2])
    monkeypatch.setattr(EncodedTexts, "predictions", lambda self, task, mode, columns: said)
    found = measure_order(EncodedTexts(headed), "paraphrase", headed.tasks["paraphrase"], pairs)
    assert found.keys() == {"cross", "bi"}
    result = found["cross"]
    assert result.accuracy.value == 0.5
    assert (result.fooled, result.high_overlap, result.fooled_high_overlap) == (0.5, 1, 1.0)
    assert result.heuristics == {"one": 1.0, "two": 0.0}
    # Of the two swapped pairs one is the same: both are said to be.
    assert result.kinds == {
        "swapped": KindResult(2, 0.5),
        "shorter": KindResult(1, 1.0),
        "equal": KindResult(1, 0.0),
    }


def test_grades_say_the_same_from_four_of_five_on(headed) -> None:
    said = predicts_same(headed.tasks["similarity"], np.array([3.9, 4.0, 5.0]))
    assert said.tolist() == [False, True, True]


def test_every_head_is_measured_by_every_rule(headed, suite_data: Path, run) -> None:
    encoded = EncodedTexts(headed)
    result = run(Robustness(), encoded, suite_data)
    assert result.missing == []
    heads = {"paraphrase": {"cross", "bi"}, "similarity": {"cross"}}
    assert list(result.word_order) == ["HANS", "PAWS", "changed sentences"]
    for tasks in result.word_order.values():
        assert {task: set(modes) for task, modes in tasks.items()} == heads
    assert set(result.word_order["HANS"]["paraphrase"]["bi"].heuristics) == {"subsequence", "other"}
    changed = result.word_order["changed sentences"]["similarity"]["cross"]
    assert changed.pairs == sum(kind.pairs for kind in changed.kinds.values())
    captions = [table.caption for table in result.tables()]
    assert any(
        caption.startswith("Right predictions of changed sentences, by kind")
        for caption in captions
    )
    assert {task: set(modes) for task, modes in result.changes.items()} == {
        "sentiment": {"single"},
        **heads,
    }
    for modes in result.changes.values():
        for rules in modes.values():
            assert list(rules) == ["typos", "casing", "negation", "numbers"]
            # The tiny encoder does not see case.
            assert (rules["casing"].moved, rules["casing"].rows) == (0.0, 40)
            assert rules["casing"].before == rules["casing"].after
    typing = result.changes["similarity"]["cross"]["typos"]
    assert 1 <= len(typing.examples) <= 5
    example = typing.examples[0]
    assert example.texts[0] == example.changed[0]
    assert example.texts[1] != example.changed[1]
    after = encoded.predictions("similarity", "cross", [[text] for text in example.changed])
    assert example.predicted_after == pytest.approx(float(after[0]), abs=1e-5)


def test_missing_sets_are_named(headed, sample_data: Path, run) -> None:
    result = run(Robustness(), headed, sample_data, rows=5)
    assert [(each.task, each.file) for each in result.missing] == [
        ("HANS", "nli/eval/hans.tsv"),
        ("PAWS", "paws/dev.tsv"),
    ]
    assert result.changes["sentiment"]["single"]["casing"].rows == 5


def test_a_row_without_a_known_label_is_named(tmp_path: Path) -> None:
    (tmp_path / "paws").mkdir()
    (tmp_path / "paws/dev.tsv").write_text("1\ta b\tb a\t0\n2\tc\td\tmaybe\n", "utf-8")
    with pytest.raises(TercetError, match=r"line 2: should hold .* not 'maybe'"):
        read_order_set("paws", tmp_path, rows=None)


def test_rows_are_spread_over_all(real_data: Path) -> None:
    assert spread(10, 4).tolist() == [0, 3, 6, 9]
    assert spread(3, PERTURBED).tolist() == [0, 1, 2]
    hans = read_order_set("hans", real_data, rows=None)
    assert (len(hans.first), hans.same.sum()) == (30_000, 15_000)
    assert set(hans.heuristics) == {"lexical_overlap", "subsequence", "constituent"}
    few = read_order_set("hans", real_data, rows=60)
    assert set(few.heuristics) == set(hans.heuristics)


def test_only_rows_of_paws_that_no_recipe_trains_on_are_measured(headed, real_data: Path) -> None:
    pairs = read_order_set("paws", real_data, rows=None)
    assert len(pairs.first) == 2_000
    task = headed.tasks["paraphrase"]
    split = task.model_copy(update={"data": DataSpec(layout="paws-split")})
    dev = read_examples(split, "dev", real_data)
    assert (pairs.first, pairs.second) == dev.texts
    assert pairs.same.tolist() == (dev.labels == 1).tolist()
    assert {kind: pairs.kinds.count(kind) > 50 for kind in pairs.kinds} == {
        "same words": True,
        "other words": True,
    }


def test_changed_sentences_are_different_unless_their_rule_keeps_the_meaning() -> None:
    texts = ["Flights from Paris to Rome", "All of cats and dogs.", "It is 3 miles", "So what"]
    pairs = change_sentences([*texts, *texts], rows=None)
    found = dict(zip(pairs.kinds, zip(pairs.second, pairs.same.tolist(), strict=True), strict=True))
    assert found["roles"] == ("Flights from Rome to Paris", False)
    assert found["conjuncts"] == ("All of dogs and cats.", True)
    assert found["negation"] == ("It is not 3 miles", False)
    assert len(pairs.first) == len(set(zip(pairs.first, pairs.kinds, strict=True)))
    assert set(change_sentences(texts, rows=1).kinds) == set(pairs.kinds)
