"""Graphs in pieces that run one after another: cutting, enumerating, composing."""
