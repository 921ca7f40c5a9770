"""datasets: a column of vectors, and `fit` on a dataset as it is."""

from datasets import Dataset, DatasetDict

import tercet

rows = Dataset.from_dict(
    {
        "text": ["Where is my parcel?", "You charged me twice."] * 20,
        "team": ["Delivery", "Billing"] * 20,
    }
)
model = tercet.load()
embedded = rows.map(
    lambda batch: {"vector": model.embed(batch["text"])},
    batched=True,
    new_fingerprint="vectors",  # else the whole model is hashed
)
print(embedded.column_names, len(embedded[0]["vector"]))

parts = DatasetDict(rows.train_test_split(test_size=0.5, seed=0))
result = tercet.fit(team=parts["train"], dev={"team": parts["test"]}, minutes=0.05)
print(result.model.predict("team", ["My parcel is late."])[0].name)
