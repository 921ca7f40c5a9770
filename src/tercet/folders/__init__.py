"""What users share: model folders, ONNX folders, folders of other libraries, and the model card."""
