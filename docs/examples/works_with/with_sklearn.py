"""scikit-learn: vectors as a step of a pipeline, with cross-validation."""

import csv
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import tercet

model = tercet.load()


def embed(texts: np.ndarray) -> np.ndarray:
    # A function of the module: scikit-learn would copy the model with `model.embed`.
    return model.embed(texts)


with Path("tickets.csv").open(encoding="utf-8", newline="") as file:
    rows = [row for row in csv.DictReader(file, delimiter=";") if row["team"]]
texts = np.array([row["message"] for row in rows])
teams = np.array([row["team"] for row in rows])
pipeline = make_pipeline(FunctionTransformer(embed), LogisticRegression(C=10, max_iter=1000))
scores = cross_val_score(pipeline, texts, teams, cv=3)
print(f"{len(rows)} rows, accuracy {scores.mean():.1f}")
