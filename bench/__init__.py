"""
Benchmarks: the paper's subgraphs and shapes, what they compete with, and the results.

Run from the repository's root, on a machine with a GPU: `python -m bench.foundations`.
"""
