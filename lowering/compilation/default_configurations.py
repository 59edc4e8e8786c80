"""
The default rule for tile sizes, on any graph, until a search takes its place.

With matmuls: a threadblock computes one element of each batch dim and a tile of 128
rows and up to 256 columns, less where the GPU would stay half empty. A dim stays whole
if some matmul does not depend on it and would be repeated for each of its tiles, or if
rows are normalized over it. Loops go over what the last reductions reduce, in steps of
64, or of 128 where a matmul makes that dim; reductions inside of them stay whole.

Without: tiles of 4096 elements, up to 256 along the last dim, then along those before
it; also of what is reduced, in loops, unless an output keeps that dim whole.

What does not fit makes way in the order of the list that `default_configurations`
gives: first tiles become smaller, then dims that should stay whole are divided after
all, then inner reductions become loops as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation.configuration import Configuration
from cleave.lowering.compilation.dim_roles import DimRoles, dim_roles
from cleave.lowering.hardware import Hardware

TENSOR_CORE_STEP = 16
"""Tensor cores take the reduced dim in multiples of this, and columns, too."""
TENSOR_CORE_ROWS = 64
ELEMENTS = 4096
"""Of a tile that no tensor core computes: 16 for each of 256 threads."""
RUN = 256
"""Elements of the last dim that such a tile has before it grows along others."""
MANY = 1 << 20
"""Taken for the size of a dim that is only known at run time."""


@dataclass(frozen=True)
class Choice:
    """A configuration, and why it has these tile sizes, in words for the user."""

    configuration: Configuration
    why: tuple[str, ...]


@dataclass(frozen=True)
class _Limits:
    """The largest tiles that a choice may have."""

    rows: int
    columns: int
    step: int
    stages: int
    loops_inside: bool = False
    """Whether reductions inside of loops are loops as well."""
    divides_all: bool = False
    """Whether also those output dims are divided that should stay whole."""


# From the best to the last resort.
_LIMITS = (
    _Limits(128, 256, 128, 3),
    _Limits(128, 128, 128, 3),
    _Limits(128, 128, 64, 3),
    _Limits(128, 128, 64, 2),
    _Limits(64, 256, 64, 2),
    _Limits(64, 256, 32, 1),
    _Limits(64, 128, 64, 2),
    _Limits(64, 128, 32, 1),
    _Limits(64, 64, 64, 2),
    _Limits(64, 64, 32, 2),
    _Limits(64, 64, 32, 1),
)


def default_configurations(graph: GraphOp, hardware: Hardware) -> list[Choice]:
    """
    What to try for a graph, best first.

    Raises PassFailedException where no tiling of the graph's outputs exists.
    """
    roles = dim_roles(graph)
    rule = _MatmulRule if roles.has_matmul else _ElementwiseRule
    choices = rule(roles, hardware).choices()
    # Limits that make no difference to a graph repeat a choice.
    return [c for i, c in enumerate(choices) if c not in choices[:i]]


class _MatmulRule:
    def __init__(self, roles: DimRoles, hardware: Hardware):
        self.roles = roles
        self.hardware = hardware

    def choices(self) -> list[Choice]:
        return [
            self._choice(limits)
            for loops in (False, True)
            for divides in (False, True)
            for limits in self._filling(
                [replace(x, loops_inside=loops, divides_all=divides) for x in _LIMITS]
            )
        ]

    def _filling(self, limits: Sequence[_Limits]) -> list[_Limits]:
        """Those first that keep half of the GPU busy, or else as much as possible."""
        counts = [self._blocks(each) for each in limits]
        enough = min(self.hardware.multiprocessors / 2, max(counts))
        first = next(i for i, count in enumerate(counts) if count >= enough)
        return [*limits[first:], *limits[:first]]

    def _blocks(self, limits: _Limits) -> int:
        tile = self._tile(limits, self._reduce(limits))
        return math.prod(
            math.ceil(self._size(name) / tile.get(name, self._size(name)))
            for name in self.roles.outputs
        )

    def _choice(self, limits: _Limits) -> Choice:
        roles = self.roles
        reduce = self._reduce(limits)
        tile = self._tile(limits, reduce)
        is_chain = bool(roles.made_by_matmul & reduce.keys())
        # Steps of a chain of matmuls are long, and load much.
        stages = min(limits.stages, 2) if is_chain else limits.stages
        divided = [n for n in tile if n not in roles.batch and tile[n] < self._size(n)]
        # Panels of threadblocks that share what they load, where both dims are divided.
        swizzle = 10 if len(divided) > 1 else 0
        configuration = Configuration(tile, reduce, None, stages, swizzle)
        return Choice(configuration, tuple(self._reasons(configuration)))

    def _tile(self, limits: _Limits, reduce: Mapping[str, int]) -> dict[str, int]:
        roles = self.roles
        tile: dict[str, int] = {}
        for name in roles.outputs:
            whole = name in roles.whole and not limits.divides_all
            if name in roles.batch:
                tile[name] = 1
            elif name in roles.rows:
                most = max(TENSOR_CORE_ROWS, _power_of_two(self._size(name)))
                tile[name] = most if whole else min(limits.rows, most)
            elif not whole:
                most = max(TENSOR_CORE_STEP, _power_of_two(self._size(name)))
                tile[name] = min(limits.columns, most)
        for name in dict.fromkeys([*roles.outputs, *roles.reduced]):
            padding = -self._size(name) % TENSOR_CORE_STEP
            if name not in tile and name not in reduce and padding:
                tile[name] = self._size(name) + padding
        return tile

    def _reduce(self, limits: _Limits) -> dict[str, int]:
        roles = self.roles
        reduce: dict[str, int] = {}
        for name in roles.reduced:
            if name in roles.batch_of_matmul:
                reduce[name] = 1
                continue
            step = limits.step if name in roles.made_by_matmul else min(limits.step, 64)
            is_loop = name in roles.last_reduced or limits.loops_inside
            if is_loop and step < self._size(name):
                reduce[name] = step
        return reduce

    def _size(self, name: str) -> int:
        return self.roles.sizes.get(name, MANY)

    def _reasons(self, configuration: Configuration) -> Iterator[str]:
        roles = self.roles
        if batch := [name for name in roles.outputs if name in roles.batch]:
            yield f"{_list(batch)}: one element a threadblock"
        for name, reason in roles.whole.items():
            if configuration.tile.get(name, MANY) < self._size(name):
                yield f"{name}: divided although {reason}"
            else:
                yield f"{name}: whole, since {reason}"
        for name in roles.reduced:
            step = configuration.reduce.get(name)
            yield f"{name}: reduced " + (f"{step} at a time" if step else "at once")
        for name, size in configuration.tile.items():
            if size > self._size(name):
                yield f"{name}: padded to {size}"


class _ElementwiseRule:
    def __init__(self, roles: DimRoles, hardware: Hardware):
        self.roles = roles

    def choices(self) -> list[Choice]:
        return [
            self._choice(elements, divides_all)
            for divides_all in (False, True)
            for elements in (ELEMENTS, ELEMENTS // 2, ELEMENTS // 4)
        ]

    def _choice(self, elements: int, divides_all: bool) -> Choice:
        roles = self.roles
        whole: Mapping[str, str] = {} if divides_all else roles.whole
        sizes = self._filled(elements, whole)
        tile = {name: sizes[name] for name in roles.outputs if name in sizes}
        for name in whole:
            if (padded := _padded(self._size(name))) > self._size(name):
                tile[name] = padded
        reduce: dict[str, int] = {}
        for name in (name for name in roles.reduced if name in sizes):
            if sizes[name] < self._size(name):
                reduce[name] = sizes[name]
            elif sizes[name] > self._size(name):
                tile[name] = sizes[name]
        reasons = [f"tiles of {elements} elements"]
        reasons += [f"{name}: whole, since {reason}" for name, reason in whole.items()]
        reasons += [
            f"{name}: padded to {size}"
            for name, size in tile.items()
            if size > self._size(name)
        ]
        return Choice(Configuration(tile, reduce), tuple(reasons))

    def _filled(self, elements: int, whole: Iterable[str]) -> dict[str, int]:
        """Tile sizes of the dims that are not whole, which multiply to `elements`."""
        room = elements
        for name in whole:
            room = max(1, room // self._size(name))
        sizes: dict[str, int] = {}
        names = [name for name in self.roles.inside_out if name not in whole]
        for name in names:
            sizes[name] = min(room, RUN, _power_of_two(self._size(name)))
            room //= sizes[name]
        for name in names:
            more = min(room, max(1, _power_of_two(self._size(name)) // sizes[name]))
            sizes[name] *= more
            room //= more
        return sizes

    def _size(self, name: str) -> int:
        return self.roles.sizes.get(name, MANY)


def _power_of_two(size: int) -> int:
    """The least power of two that is not less."""
    return 1 << max(0, size - 1).bit_length()


def _padded(size: int) -> int:
    """As many elements as the threads of a threadblock divide without a rest."""
    return _power_of_two(size) if size < RUN else math.ceil(size / RUN) * RUN


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
