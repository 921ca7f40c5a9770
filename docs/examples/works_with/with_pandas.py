"""pandas: columns in, columns out."""

import pandas as pd

import tercet

frame = pd.DataFrame({"id": [7, 8], "text": ["A quiet triumph.", "Dull."]})
model = tercet.load()
predictions = model.sentiment(frame["text"]).to_pandas()
print(frame.join(predictions["name"]).to_string(index=False))
frame["vector"] = list(model.embed(frame["text"]))
print(frame["vector"].map(len).tolist())
