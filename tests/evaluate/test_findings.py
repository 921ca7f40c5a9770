from __future__ import annotations

from tercet.evaluate.findings import findings


def test_what_a_task_gets_right_and_mixes_up(document) -> None:
    found = document()
    blocks = found["suites"]["tasks"]["tasks"]
    blocks["sentiment"]["modes"]["single"] |= {
        "labels": [0, 1, 1, 1],
        "predictions": [[0.9, 0.1, 0.0], [0.0, 0.1, 0.9], [0.1, 0.0, 0.9], [0.05, 0.9, 0.05]],
    }
    blocks["paraphrase"]["modes"]["bi"] |= {
        "labels": [0, 0, 1, 1],
        "predictions": [[0.2, 0.8], [0.7, 0.3], [0.1, 0.9], [0.4, 0.6]],
    }
    blocks["similarity"]["modes"]["bi"] |= {"labels": [1.0, 2.0], "predictions": [1.5, 1.0]}
    told = findings(found)
    assert told == {
        "sentiment": "50% of rows are right. Most often it takes neutral for positive: 2 of 3. "
        "It is surer than it is right: 90% on average.",
        "paraphrase": "75% of rows are right. It finds 100% of class paraphrase, and of those that "
        "it calls so 67% are. It is about as sure as it is right: 75% on average.",
        "similarity": "Grades are off by 0.75 on average.",
    }


def test_a_task_that_is_all_right_or_says_one_class_only(document) -> None:
    found = document()
    blocks = found["suites"]["tasks"]["tasks"]
    blocks["sentiment"]["modes"]["single"] |= {
        "labels": [0, 1],
        "predictions": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
    }
    blocks["paraphrase"]["modes"]["bi"] |= {
        "labels": [0, 1],
        "predictions": [[0.6, 0.4], [0.9, 0.1]],
    }
    told = findings(found)
    assert told["sentiment"].startswith("100% of rows are right. It is about as sure")
    assert told["paraphrase"].startswith("50% of rows are right. It never says paraphrase. It is")


def test_what_suites_found(document, suites) -> None:
    found = document()
    found["suites"] = suites
    suites["sts"]["average_without_leaked_pairs"] = 0.8123
    suites["transfer"]["tasks"]["TREC"] = {"metrics": {"accuracy": {"value": 0.9}}}
    suites["transfer"]["average"] = 0.7
    change = suites["robustness"]["changes"]["sentiment"]["single"]
    change["typos"] = change["negation"]
    told = findings(found)
    assert "a Spearman correlation of 0.812" in told["Nearness"]
    assert "Left out are 1 of the 8 pairs" in told["Nearness"]
    assert "70% on average, from MR (50%) to TREC (90%)" in told["Other tasks"]
    assert "paraphrase (bi) takes 75% for the same." in told["Word order"]
    assert told["Typing errors"].endswith("30% of sentiment.")


def test_what_is_undefined_is_not_said(document, suites) -> None:
    found = document()
    for block in found["suites"]["tasks"]["tasks"].values():
        for mode in block["modes"].values():
            mode |= {"labels": [], "predictions": []}
    suites["sts"]["without_leaked_pairs"] = None
    suites["robustness"] = {"word_order": {}, "changes": {}}
    found["suites"] |= suites
    assert findings(found) == {}


def test_a_faster_mode_is_weighed_against_the_exact_one(document) -> None:
    found = document()
    block = found["suites"]["tasks"]["tasks"]["similarity"]
    bi = block["modes"]["bi"]
    exact = bi | {"metrics": {"pearson": {"value": 0.95, "interval": None}}}
    bi["metrics"]["pearson"]["value"] = 0.8
    block["modes"] = {"cross": exact, "bi": bi}
    told = findings(found)["similarity"]
    assert "reaches pearson 0.800 where cross" in told
    assert told.endswith("reaches 0.950.")
