"""What benchmarks/fit.py measures: cells, draws, one module per method, the table."""
