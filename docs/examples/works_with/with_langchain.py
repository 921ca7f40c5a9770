"""LangChain: a model in the same process, and a server through OpenAI's API."""

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import OpenAIEmbeddings

import tercet

TEXTS = ["Prices rise again.", "A quiet film.", "The home team wins."]


class TercetEmbeddings(Embeddings):
    def __init__(self, model: tercet.Model) -> None:
        self.model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.model.embed(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


store = InMemoryVectorStore.from_texts(TEXTS, TercetEmbeddings(tercet.load()))
print(store.similarity_search("inflation", k=1)[0].page_content)

served = OpenAIEmbeddings(
    base_url="http://127.0.0.1:8000/v1",
    api_key="none",
    model="tercet/small",
    check_embedding_ctx_length=False,  # sends texts, not the token ids of OpenAI's models
)
store = InMemoryVectorStore.from_texts(TEXTS, served)
print(store.similarity_search("inflation", k=1)[0].page_content)
