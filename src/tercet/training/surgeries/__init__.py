"""The gradient surgeries, declared in `tercet.specs.surgeries`."""
