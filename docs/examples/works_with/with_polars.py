"""polars: columns in, columns out, without a copy of the vectors."""

import polars as pl

import tercet

frame = pl.DataFrame({"id": [7, 8], "text": ["A quiet triumph.", "Dull."]})
model = tercet.load()
predictions = pl.from_arrow(model.sentiment(frame["text"]).to_arrow())
vectors = pl.Series("vector", model.embed(frame["text"]))
frame = frame.with_columns(predictions["name"], vectors)
print(frame.schema["vector"], frame["name"].to_list())
