"""LanceDB: an index that ends with .lance is a table of the database in its folder."""

import lancedb

import tercet

texts = [
    {"id": "a", "text": "Prices rise again.", "year": 2021},
    {"id": "b", "text": "A quiet film.", "year": 1994},
]
model = tercet.load()
tercet.Index.build("database/news.lance", texts, model)

table = lancedb.connect("database").open_table("news")
found = table.search(model.embed(["inflation"])[0]).metric("cosine").where("year > 2000").limit(1)
print(found.to_list()[0]["text"])
