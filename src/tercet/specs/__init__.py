"""The typed blocks of a recipe: encoder, data, heads, objectives, tasks, stages, evaluation.

Every key has a type and either a default or a value in the recipe.
"""

from tercet.specs.base import (
    Activation,
    Column,
    Count,
    Delimiter,
    Feature,
    Interval,
    Long,
    Metric,
    Mode,
    Pooling,
    Positive,
    Share,
    Spec,
    is_computable,
)
from tercet.specs.data import (
    ChangeRule,
    ChangesSpec,
    DataSpec,
    EncoderSpec,
    NegativesSpec,
    PairsSpec,
    SubsetSpec,
    WhereSpec,
)
from tercet.specs.depths import DepthsSpec
from tercet.specs.heads import (
    HEADS,
    MASKED_WORDS,
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
from tercet.specs.modes import ModeSpec
from tercet.specs.objectives import (
    OBJECTIVES,
    BinaryCrossEntropySpec,
    BinnedCrossEntropySpec,
    ContrastiveSpec,
    CrossEntropySpec,
    HingeSpec,
    MaskedLanguageModelSpec,
    MeanAbsoluteErrorSpec,
    MeanSquaredErrorSpec,
    MultipleNegativesRankingSpec,
    ObjectiveSpec,
    PredictiveSpec,
    SimCSESpec,
    SupervisedContrastiveSpec,
    TeacherVectorsSpec,
    TripletSpec,
)
from tercet.specs.parts import LabelSpace
from tercet.specs.predictions import Floats, decisions
from tercet.specs.scaling import Scaling, Scalings, Thresholds
from tercet.specs.schedules import SCHEDULES, ScheduleSpec
from tercet.specs.side import SideSpec
from tercet.specs.stages import CheckpointSpec, EvaluationSpec, OptimiserSpec, StageSpec
from tercet.specs.surgeries import SURGERIES, Surgery
from tercet.specs.tasks import TaskSpec, side_of, tasks_at_depth, tasks_by_depth
from tercet.specs.teacher import TeacherSpec
from tercet.specs.unseen import PairSet, UnseenSpec
