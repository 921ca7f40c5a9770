"""The typed blocks of a recipe: encoder, data, heads, objectives, tasks, stages, evaluation.

Every key has a type and either a value in the recipe or the default that stands here.
"""

from tercet.specs.base import (
    Activation,
    Column,
    Count,
    Feature,
    Gear,
    Interval,
    Metric,
    PoolingName,
    Positive,
    Share,
    Spec,
    Surgery,
)
from tercet.specs.data import DataSpec, EncoderSpec, SubsetSpec
from tercet.specs.heads import CosineHeadSpec, FeatureHeadSpec, HeadSpec, MlpHeadSpec
from tercet.specs.objectives import (
    ON_VECTORS,
    BinaryCrossEntropySpec,
    CrossEntropySpec,
    MeanAbsoluteErrorSpec,
    MeanSquaredErrorSpec,
    MultipleNegativesRankingSpec,
    ObjectiveSpec,
    SimCSESpec,
    TripletSpec,
)
from tercet.specs.stages import (
    CheckpointSpec,
    EvaluationSpec,
    OptimiserSpec,
    ScheduleSpec,
    StageSpec,
)
from tercet.specs.tasks import GearSpec, TaskSpec

__all__ = [
    "ON_VECTORS",
    "Activation",
    "BinaryCrossEntropySpec",
    "CheckpointSpec",
    "Column",
    "CosineHeadSpec",
    "Count",
    "CrossEntropySpec",
    "DataSpec",
    "EncoderSpec",
    "EvaluationSpec",
    "Feature",
    "FeatureHeadSpec",
    "Gear",
    "GearSpec",
    "HeadSpec",
    "Interval",
    "MeanAbsoluteErrorSpec",
    "MeanSquaredErrorSpec",
    "Metric",
    "MlpHeadSpec",
    "MultipleNegativesRankingSpec",
    "ObjectiveSpec",
    "OptimiserSpec",
    "PoolingName",
    "Positive",
    "ScheduleSpec",
    "Share",
    "SimCSESpec",
    "Spec",
    "StageSpec",
    "SubsetSpec",
    "Surgery",
    "TaskSpec",
    "TripletSpec",
]
