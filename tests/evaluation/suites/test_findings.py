from __future__ import annotations

import dataclasses

from tercet.evaluation.metrics import Estimate
from tercet.evaluation.suites.geometry import GeometryResult
from tercet.evaluation.suites.robustness import RobustnessResult
from tercet.evaluation.suites.tasks import TasksResult
from tercet.evaluation.suites.tasks.findings import task_findings
from tercet.evaluation.suites.transfer import TRANSFER_TASKS, TransferResult, TransfersResult

SENTIMENT = ["negative", "neutral", "positive"]
PARAPHRASE = ["different", "paraphrase"]


def sentences(*modes) -> str:
    return " ".join(task_findings(modes))


def test_what_a_task_gets_right_and_confuses(answers) -> None:
    predictions = [[0.9, 0.1, 0.0], [0.0, 0.1, 0.9], [0.1, 0.0, 0.9], [0.05, 0.9, 0.05]]
    sentiment = answers("s", "single", [0, 1, 1, 1], predictions, classes=SENTIMENT)
    assert sentences(sentiment) == (
        "Accuracy is 50%. The most frequent confusion is neutral predicted as positive: 2 of 3 "
        "rows. It is overconfident: its mean confidence is 90%."
    )
    predictions = [[0.2, 0.8], [0.7, 0.3], [0.1, 0.9], [0.4, 0.6]]
    paraphrase = answers("p", "bi", [0, 0, 1, 1], predictions, classes=PARAPHRASE)
    assert sentences(paraphrase) == (
        "Accuracy is 75%. Recall for paraphrase is 100%, precision 67%. Its mean confidence of 75% "
        "matches its accuracy."
    )
    similarity = answers("g", "bi", [1.0, 2.0], [1.5, 1.0])
    assert sentences(similarity) == "Grades are off by 0.75 on average."


def test_a_task_that_is_all_right_or_predicts_one_class_only(answers) -> None:
    certain = answers("s", "single", [0, 1], [[1, 0, 0], [0, 1, 0]], classes=SENTIMENT)
    assert sentences(certain).startswith("Accuracy is 100%. Its mean confidence of 100% matches")
    never = answers("p", "bi", [0, 1], [[0.6, 0.4], [0.9, 0.1]], classes=PARAPHRASE)
    assert sentences(never).startswith("Accuracy is 50%. It never predicts paraphrase. It is over")


def test_a_faster_mode_is_compared_with_the_accurate_one(answers) -> None:
    cross, bi = (
        answers("g", mode, [1, 2], [1, 2], metrics={"pearson": Estimate(value)})
        for mode, value in (("cross", 0.95), ("bi", 0.8))
    )
    found = sentences(cross, bi)
    assert "reaches pearson 0.800; mode cross" in found
    assert found.endswith("reaches 0.950.")
    assert "reaches" not in sentences(bi, cross)


def test_what_suites_measured(suites) -> None:
    results = suites()
    assert results["sts"].findings() == {
        "STS": "1 of the 8 pairs are left out, because they are in the training or dev data of a "
        "task."
    }
    accuracies = dict.fromkeys(TRANSFER_TASKS, 0.7) | {"MR": 0.5, "TREC": 0.9}
    transfer = TransfersResult(
        {task: TransferResult(9, {"accuracy": Estimate(it)}, []) for task, it in accuracies.items()}
    )
    (sentence,) = transfer.findings().values()
    assert sentence.endswith("vectors is 70%, from MR (50%) to TREC (90%).")
    robustness = results["robustness"]
    rules = robustness.changes["sentiment"]["single"]
    rules["typos"] = rules["negation"]
    findings = robustness.findings()
    assert findings["Word order"].endswith("paraphrase (bi) takes 75% for the same.")
    assert findings["Typing errors"].endswith("30% of sentiment.")


def test_what_is_undefined_is_not_said(suites, task, answers) -> None:
    results = suites()
    empty = task(answers("s", "single", [], [], classes=SENTIMENT, metrics={}))
    assert TasksResult({"s": empty}, {"mean": None, "mean-shifted": None}).findings() == {}
    assert dataclasses.replace(results["sts"], unleaked=None).findings() == {}
    assert results["transfer"].findings() == {}
    assert RobustnessResult({}, {}).findings() == {}
    assert GeometryResult(None, None, None, 0, None, None).findings() == {}
