"""An HTTP server for everything that a model predicts."""
