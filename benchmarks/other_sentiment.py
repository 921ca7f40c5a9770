"""The shipped model's sentiment on texts that are not film reviews: products, and the press.

    TERCET_RECORD=results/small.json python benchmarks/other_sentiment.py DATA

DATA holds the files of SentEval. CR has sentences of customers' reviews of products, MPQA opinions
in news, most of them phrases of a few words, MR sentences of film reviews to compare with. Their
labels are negative and positive, the model's classes are five: a text is positive if the two
positive classes have together more probability than the two negative ones. Texts that the model was
trained on are left out. Nothing is fitted. `AUC` asks only for the order of texts, not where the
two classes part. Beside it is what a linear model reaches that is fitted on rows of the set itself,
on the shipped model's vectors (5-fold cross-validation).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from records import record
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from tercet.data.senteval import FoldedTask, Labelled, read_folded
from tercet.model import Model, load

SETS: dict[FoldedTask, str] = {
    "CR": "products",
    "MPQA": "news, mostly phrases",
    "MR": "films",
}
COLUMNS = [
    "set", "about", "texts", "left out", "majority class", "accuracy", "95 % interval", "AUC",
    "linear model fitted on the set",
]  # fmt: skip
FOLDS, SEED = 5, 11711


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    arguments = parser.parse_args()
    model = load(device="cpu")
    record(
        "other sentiment",
        columns=COLUMNS,
        rows=[row(model, name, about, arguments.data) for name, about in SETS.items()],
        encoder="tercet/small",
        data="SentEval's CR, MPQA and MR",
        packages=("torch", "scikit-learn"),
    )


def row(model: Model, name: FoldedTask, about: str, data: Path) -> list[str]:
    """The cells of a set."""
    labelled = read_folded(name, data)
    texts, labels = unseen(model, labelled)
    predicted = model.predictions("sentiment", texts)
    margins = predicted[:, 3:].sum(axis=1) - predicted[:, :2].sum(axis=1)
    right = (margins > 0) == labels
    interval = binomtest(int(right.sum()), len(right)).proportion_ci(method="wilson")
    return [
        name,
        about,
        f"{len(texts):,}",
        f"{len(labelled.labels) - len(texts):,}",
        f"{max(labels.mean(), 1 - labels.mean()):.3f}",
        f"{right.mean():.3f}",
        f"{interval.low:.3f} to {interval.high:.3f}",
        f"{roc_auc_score(labels, margins):.3f}",
        f"{fitted(model, texts, labels):.3f}",
    ]


def unseen(model: Model, labelled: Labelled) -> tuple[list[str], NDArray[np.int64]]:
    """Texts that no training row of the model equals, and their labels [n]."""
    assert model.sketch is not None
    (texts,) = labelled.texts
    kept = ~model.sketch.seen([texts])
    return [text for text, keep in zip(texts, kept, strict=True) if keep], labelled.labels[kept]


def fitted(model: Model, texts: list[str], labels: NDArray[np.int64]) -> float:
    """Accuracy of logistic regression on the vectors, by cross-validation."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    classifier = LogisticRegression(max_iter=1000)
    predicted = cross_val_predict(classifier, model.embed(texts), labels, cv=folds)
    return float((predicted == labels).mean())


if __name__ == "__main__":
    main()
