"""spaCy: a component that gives documents their vector and the classes of a task."""

import spacy
from spacy.language import Language
from spacy.tokens import Doc

import tercet


@Language.factory("tercet")
class Tercet:
    def __init__(self, nlp: Language, name: str, source: str = "tercet/small") -> None:
        self.model = tercet.load(source)

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, stream, batch_size: int = 128):
        for docs in spacy.util.minibatch(stream, batch_size):
            texts = [doc.text for doc in docs]
            vectors = self.model.embed(texts)
            predictions = self.model.sentiment(texts)
            for doc, vector, prediction in zip(docs, vectors, predictions, strict=True):
                doc.tensor = vector  # what an extension or a later component reads
                doc.cats = dict(zip(predictions.classes, prediction.probabilities, strict=True))
                yield doc


nlp = spacy.blank("en")
nlp.add_pipe("tercet")
for doc in nlp.pipe(["A quiet triumph.", "Dull."]):
    print(doc.tensor.shape, max(doc.cats, key=doc.cats.get))
