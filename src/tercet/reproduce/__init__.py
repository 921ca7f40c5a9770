"""The reports' experiments run by name, and their figures set beside ours."""
