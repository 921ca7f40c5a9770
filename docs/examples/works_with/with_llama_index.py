"""LlamaIndex: a model in the same process, and a server through OpenAI's API."""

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from pydantic import PrivateAttr

import tercet

DOCUMENTS = [
    Document(text=text) for text in ("Prices rise again.", "A quiet film.", "The home team wins.")
]


class TercetEmbedding(BaseEmbedding):
    _model: tercet.Model = PrivateAttr(default_factory=tercet.load)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._model.embed(texts).tolist()

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


served = OpenAILikeEmbedding(
    model_name="tercet/small", api_base="http://127.0.0.1:8000/v1", api_key="none"
)
for embedding in (TercetEmbedding(), served):
    index = VectorStoreIndex.from_documents(DOCUMENTS, embed_model=embedding)
    print(index.as_retriever(similarity_top_k=1).retrieve("inflation")[0].text)
