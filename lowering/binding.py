"""What follows from the sizes of a plan's dynamic dims: shapes, views and workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cleave.lowering.plan import Plan, evaluate_shape

WORKSPACE_ALIGNMENT = 256
"""Bytes between temporaries, so that each starts where an allocation could."""

# Shapes are worked out once for each set of sizes; this many sets are kept.
BINDINGS_KEPT = 256


@dataclass(frozen=True, slots=True)
class Binding:
    """
    A plan in numbers.

    `shapes` and `strides` (in elements) are those of the plan's arguments, results and
    temporaries, in this order. `temporaries` are (start, end) in workspace bytes.
    `views` has, for each launch, the shape of each parameter that is given as a view,
    and None for the others.
    """

    shapes: tuple[tuple[int, ...], ...]
    strides: tuple[tuple[int, ...], ...]
    temporaries: tuple[tuple[int, int], ...]
    workspace_bytes: int
    views: tuple[tuple[tuple[int, ...] | None, ...], ...]


class Bindings:
    """The bindings of one plan, by the sizes of its dynamic dims."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.names = plan.dynamic_dims
        # The argument, and which of its dims, that gives each dynamic dim its size.
        self.places = tuple(
            next(
                (i, spec.shape.index(name))
                for i, spec in enumerate(plan.args)
                if name in spec.shape
            )
            for name in self.names
        )
        self._known: dict[tuple[int, ...], Binding] = {}

    def of_shapes(self, shapes: Sequence[Sequence[int]]) -> Binding:
        """
        The binding that arguments of these shapes ask for. Raises ValueError for a rank
        that is too small, and for an empty tensor.
        """
        sizes: list[int] = []
        for name, (i, axis) in zip(self.names, self.places, strict=True):
            if axis >= len(shapes[i]):
                raise ValueError(
                    f"argument {self.plan.args[i].name}: shape {list(shapes[i])} "
                    f"has no dim {axis}, which is {name}"
                )
            if not shapes[i][axis]:
                raise ValueError(
                    f"argument {self.plan.args[i].name}: shape {list(shapes[i])} is "
                    f"empty; dim {axis}, which is {name}, is at least 1"
                )
            sizes.append(shapes[i][axis])
        return self.of_sizes(tuple(sizes))

    def of_sizes(self, values: tuple[int, ...]) -> Binding:
        """The binding for these sizes, in the order of `names`."""
        if values not in self._known:
            if len(self._known) >= BINDINGS_KEPT:
                self._known.clear()
            self._known[values] = self._bind(values)
        return self._known[values]

    def _bind(self, values: tuple[int, ...]) -> Binding:
        plan = self.plan
        sizes = dict(zip(self.names, values, strict=True))
        shapes = tuple(
            evaluate_shape(spec.shape, sizes)
            for spec in (*plan.args, *plan.results, *plan.temporaries)
        )
        offset = 0
        temporaries: list[tuple[int, int]] = []
        for spec in plan.temporaries:
            end = offset + spec.bytes(sizes)
            temporaries.append((offset, end))
            offset = -(-end // WORKSPACE_ALIGNMENT) * WORKSPACE_ALIGNMENT
        views = tuple(
            tuple(
                None if arg.view is None else evaluate_shape(arg.view, sizes)
                for arg in launch.args
            )
            for launch in plan.launches
        )
        strides = tuple(contiguous_strides(shape) for shape in shapes)
        return Binding(shapes, strides, tuple(temporaries), offset, views)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The row-major strides of a shape, in elements."""
    strides: list[int] = []
    stride = 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= max(size, 1)
    return tuple(reversed(strides))
