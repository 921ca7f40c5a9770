"""The typed blocks of a recipe: encoder, data, heads, objectives, tasks, stages, evaluation.

Every key has a type and either a value in the recipe or the default that stands here.
"""

from tercet.specs.base import (
    Activation,
    Column,
    Count,
    Feature,
    Interval,
    Metric,
    Mode,
    PoolingName,
    Positive,
    Share,
    Spec,
)
from tercet.specs.data import DataSpec, EncoderSpec, PairsSpec, SubsetSpec
from tercet.specs.heads import (
    MASKED_WORDS,
    WITH_EXEMPLARS,
    CosineHeadSpec,
    DensePairHeadSpec,
    ExemplarHeadSpec,
    FeatureHeadSpec,
    HeadSpec,
    LayersHeadSpec,
    MlpHeadSpec,
    NearestHeadSpec,
    SharedSpec,
)
from tercet.specs.objectives import (
    CONTRASTIVE,
    BinaryCrossEntropySpec,
    BinnedCrossEntropySpec,
    CrossEntropySpec,
    HingeSpec,
    MaskedLanguageModelSpec,
    MeanAbsoluteErrorSpec,
    MeanSquaredErrorSpec,
    MultipleNegativesRankingSpec,
    ObjectiveSpec,
    SimCSESpec,
    TeacherVectorsSpec,
    TripletSpec,
)
from tercet.specs.scaling import Scaling, Scalings
from tercet.specs.schedules import SCHEDULES, ScheduleSpec
from tercet.specs.stages import (
    CheckpointSpec,
    EvaluationSpec,
    OptimiserSpec,
    StageSpec,
)
from tercet.specs.surgeries import SURGERIES, Surgery
from tercet.specs.tasks import ModeSpec, TaskSpec
from tercet.specs.teacher import TeacherSpec

__all__ = [
    "CONTRASTIVE",
    "MASKED_WORDS",
    "SCHEDULES",
    "SURGERIES",
    "WITH_EXEMPLARS",
    "Activation",
    "BinaryCrossEntropySpec",
    "BinnedCrossEntropySpec",
    "CheckpointSpec",
    "Column",
    "CosineHeadSpec",
    "Count",
    "CrossEntropySpec",
    "DataSpec",
    "DensePairHeadSpec",
    "EncoderSpec",
    "EvaluationSpec",
    "ExemplarHeadSpec",
    "Feature",
    "FeatureHeadSpec",
    "HeadSpec",
    "HingeSpec",
    "Interval",
    "LayersHeadSpec",
    "MaskedLanguageModelSpec",
    "MeanAbsoluteErrorSpec",
    "MeanSquaredErrorSpec",
    "Metric",
    "MlpHeadSpec",
    "Mode",
    "ModeSpec",
    "MultipleNegativesRankingSpec",
    "NearestHeadSpec",
    "ObjectiveSpec",
    "OptimiserSpec",
    "PairsSpec",
    "PoolingName",
    "Positive",
    "Scaling",
    "Scalings",
    "ScheduleSpec",
    "Share",
    "SharedSpec",
    "SimCSESpec",
    "Spec",
    "StageSpec",
    "SubsetSpec",
    "Surgery",
    "TaskSpec",
    "TeacherSpec",
    "TeacherVectorsSpec",
    "TripletSpec",
]
