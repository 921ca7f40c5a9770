"""Haystack: components that embed through a server's OpenAI API."""

from haystack import Document, Pipeline
from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.utils import Secret

SERVER = {
    "api_base_url": "http://127.0.0.1:8000/v1",
    "api_key": Secret.from_token("none"),
    "model": "tercet/small",
}
store = InMemoryDocumentStore(embedding_similarity_function="cosine")
texts = ("Prices rise again.", "A quiet film.", "The home team wins.")
embedder = OpenAIDocumentEmbedder(**SERVER, progress_bar=False)
store.write_documents(embedder.run([Document(content=text) for text in texts])["documents"])

pipeline = Pipeline()
pipeline.add_component("embedder", OpenAITextEmbedder(**SERVER))
pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=1))
pipeline.connect("embedder.embedding", "retriever.query_embedding")
found = pipeline.run({"embedder": {"text": "inflation"}})
print(found["retriever"]["documents"][0].content)
