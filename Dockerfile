# A server of one ONNX folder, without torch; needs only the package index. In a clone:
#   tercet export MODEL --format onnx-int8 --out model
#   docker build -t tercet . && docker run -e TERCET_KEYS=SECRET -p 8000:8000 tercet
FROM python:3.13-slim
WORKDIR /app
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
RUN pip install --no-cache-dir -c constraints.txt '.[onnx,serve]'
COPY model model
RUN useradd --no-create-home server
USER server
EXPOSE 8000
# --host: inside a container, loopback reaches nobody.
ENTRYPOINT ["tercet", "serve", "--model", "model", "--host", "0.0.0.0", "--port", "8000"]
