"""
What `cleave-opt` registers and `xdsl-opt` finds through the group `xdsl.universe`.
Nothing that is listed here is imported before it is asked for: xDSL reads the names and
calls a factory when a file or a command line first uses one. An import error in this
module, or a name that xDSL already has, would stop every xDSL tool of the environment.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from xdsl.universe import Universe

from cleave.dialects import DIALECTS
from cleave.lowering import TARGETS
from cleave.passes import PASSES


def _factories(table: dict[str, tuple[str, str]]) -> dict[str, Callable[[], Any]]:
    """Turn each `(module, attribute)` of a table into a function that imports it."""

    def factory(module: str, attribute: str) -> Callable[[], Any]:
        return lambda: getattr(import_module(module), attribute)

    return {name: factory(*place) for name, place in table.items()}


CLEAVE = Universe(
    all_dialects=_factories(DIALECTS),
    all_passes=_factories(PASSES),
    all_targets=_factories(TARGETS),
)
