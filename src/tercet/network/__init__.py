"""An encoder with its heads: in torch, and in ONNX Runtime."""
