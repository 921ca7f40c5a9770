"""OpenAI's client, with a server that `tercet serve` started."""

from openai import OpenAI

client = OpenAI(base_url="http://127.0.0.1:8000/v1", api_key="none")
answer = client.embeddings.create(model="tercet/small", input=["A quiet triumph.", "Dull."])
print(len(answer.data), "vectors of width", len(answer.data[0].embedding))
