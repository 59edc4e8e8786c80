"""The texts of graphs that a benchmark gives its own sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping

FACTS = re.compile(r" *where \[[^]]*\]\n?")
HEAD = re.compile(r"(algebra\.graph @\w+ \[[^]]*\])")


def with_sizes(text: str, sizes: Mapping[str, int]) -> str:
    """A graph whose facts, if it has any, are replaced by the sizes of its symbols."""
    facts = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    return HEAD.sub(rf"\1 where [{facts}]", FACTS.sub("\n", text))
