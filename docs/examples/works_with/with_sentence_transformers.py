"""sentence-transformers: a model folder loads there, with the same vectors."""

import numpy as np
from sentence_transformers import SentenceTransformer

import tercet

model = tercet.load(device="cpu")
model.save("small")
texts = ["A quiet triumph.", "Dull."]
difference = SentenceTransformer("small", device="cpu").encode(texts) - model.embed(texts)
print(bool(np.abs(difference).max() < 1e-5))
