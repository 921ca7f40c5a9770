"""Predictions or vectors, and labels, to a loss: one file a loss."""

from typing import Any

from tercet.objectives.base import PredictiveObjective, VectorObjective
from tercet.objectives.binary_cross_entropy import BinaryCrossEntropy
from tercet.objectives.binned_cross_entropy import BinnedCrossEntropy
from tercet.objectives.cross_entropy import CrossEntropy
from tercet.objectives.hinge import Hinge
from tercet.objectives.masked_language_model import MaskedLanguageModel
from tercet.objectives.mean_absolute_error import MeanAbsoluteError
from tercet.objectives.mean_squared_error import MeanSquaredError
from tercet.objectives.multiple_negatives_ranking import MultipleNegativesRanking
from tercet.objectives.simcse import SimCSE
from tercet.objectives.teacher_vectors import TeacherVectors
from tercet.objectives.triplet import Triplet

__all__ = [
    "OBJECTIVES",
    "BinaryCrossEntropy",
    "BinnedCrossEntropy",
    "CrossEntropy",
    "Hinge",
    "MaskedLanguageModel",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "MultipleNegativesRanking",
    "PredictiveObjective",
    "SimCSE",
    "TeacherVectors",
    "Triplet",
    "VectorObjective",
]

OBJECTIVES: dict[str, type[Any]] = {
    "cross-entropy": CrossEntropy,
    "binary-cross-entropy": BinaryCrossEntropy,
    "mean-squared-error": MeanSquaredError,
    "mean-absolute-error": MeanAbsoluteError,
    "hinge": Hinge,
    "binned-cross-entropy": BinnedCrossEntropy,
    "masked-language-model": MaskedLanguageModel,
    "teacher-vectors": TeacherVectors,
    "simcse": SimCSE,
    "multiple-negatives-ranking": MultipleNegativesRanking,
    "triplet": Triplet,
}
"""Objectives by their kind in a recipe; keywords are the recipe's keys, and `classes` and
`label_range` for the predictive ones."""
