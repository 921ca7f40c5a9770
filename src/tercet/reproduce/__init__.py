"""The reports' experiments by name, with published and measured results."""
