"""Encoders as ONNX graphs; needs the extra `onnx`."""
