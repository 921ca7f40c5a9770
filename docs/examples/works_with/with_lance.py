"""Lance: an index is a Lance dataset that other tools read."""

import lance

import tercet

texts = [
    {"id": "a", "text": "Prices rise again.", "year": 2021},
    {"id": "b", "text": "A quiet film.", "year": 1994},
]
model = tercet.load()
tercet.Index.build("news.lance", texts, model)

dataset = lance.dataset("news.lance")
print(dataset.count_rows("year > 2000"), dataset.schema.names)
query = {"column": "vector", "q": model.embed(["inflation"])[0], "k": 1, "metric": "dot"}
print(dataset.to_table(nearest=query)["text"].to_pylist())
