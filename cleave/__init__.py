"""Cleave: from a tensor subgraph to a fast, safe GPU kernel, by search."""

__version__ = "0.1.0"
