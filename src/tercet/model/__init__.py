"""Model: what users hold, and how it is loaded."""

from tercet.folders.finding import SHIPPED, SHIPPED_FOLDER, find_folder, find_local_folder
from tercet.model.loading import load
from tercet.model.model import SIMILARITY_SCALE, Model, PairMode
from tercet.model.text_reader import Kind
from tercet.predictions import LabelSet, Prediction, Predictions, Sentiment
from tercet.specs import Floats

__all__ = [
    "SHIPPED",
    "SHIPPED_FOLDER",
    "SIMILARITY_SCALE",
    "Floats",
    "Kind",
    "LabelSet",
    "Model",
    "PairMode",
    "Prediction",
    "Predictions",
    "Sentiment",
    "find_folder",
    "find_local_folder",
    "load",
]
