"""
Execution of `itgraph.plan` in NumPy, tile by tile: what a tile program means.

Kernels run one after the other, the iterations of a kernel one at a time in any order.
Tiles have their full shape: loads are predicated and stores clipped as on the device,
so that a tail nobody masked gives a wrong result here, too. Outputs begin as poison,
and each of their elements has to be written exactly once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Literal, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from cleave.dialects.algebra.dtypes import numpy_dtype
from cleave.dialects.algebra.operator import Operator, is_float
from cleave.dialects.dims import symbol
from cleave.dialects.facts import Fact, FactError
from cleave.dialects.itgraph import (
    Contribution,
    KernelOp,
    Level,
    LoopOp,
    PlanOp,
    State,
    View,
    levels_around,
)
from cleave.dialects.itgraph.level import value_text
from cleave.dialects.itgraph.parts import tensor_type
from cleave.dialects.tensor import TensorType
from cleave.dialects.wording import counted
from cleave.lowering.numpy_algebra import (
    Array,
    ExecutionError,
    Precision,
    apply_operator,
    as_computed,
    evaluate_dims,
    prepare_input,
)
from cleave.lowering.numpy_tiles import Window, poison, require_writes, store

Env: TypeAlias = dict[str, int]
"""The integers that symbols, iterators and lets stand for at one place and time."""
Order: TypeAlias = Literal["forward", "reverse", "random"]


def execute_plan(
    plan: PlanOp,
    inputs: Sequence[Array],
    sizes: Mapping[str, int] | None = None,
    precision: Precision = "float64",
    order: Order = "forward",
    seed: int = 0,
    strict: bool = False,
) -> list[Array]:
    """
    The outputs of a plan for these inputs.

    Args:
        inputs: one array an argument, of its shape under `sizes`; rounded to its type.
        sizes: integers for the symbols; those that the facts bind may be left out.
        precision: "float64" for the exact meaning, "rounded" for the real roundings.
        order: in which order the iterations of kernels run; `seed` is for "random".
        strict: refuse to read what an enclosing view does not show. Otherwise it reads
            as poison, which is harmless where it is masked.
    Raises:
        ExecutionError: sizes that contradict the facts, inputs that do not fit, a bad
            offset, or an output of which not every element is written exactly once.
    """
    bound = _sizes(plan, sizes or {})
    execution = _Execution(bound, precision, order, Random(seed), strict)
    # Overflow and NaN are results like others here, not something to warn of.
    with np.errstate(all="ignore"):
        return execution.run(plan, inputs)


def _sizes(plan: PlanOp, given: Mapping[str, int]) -> Env:
    """The symbols as integers, checked against the facts."""
    try:
        facts = plan.facts.extend(
            *(Fact(symbol(name), "=", size) for name, size in given.items())
        )
        facts.check()
    except FactError as error:
        raise ExecutionError(f"@{plan.plan_name}: {error}") from error
    sizes: Env = {}
    for name in plan.symbol_names:
        if not isinstance(size := facts.resolve(symbol(name)), int):
            raise ExecutionError(f"@{plan.plan_name}: symbol '{name}' has no size")
        sizes[name] = size
    return sizes


@dataclass
class _Execution:
    sizes: Env
    precision: Precision
    order: Order
    random: Random
    strict: bool
    values: dict[SSAValue, Array | Window] = field(
        default_factory=dict[SSAValue, "Array | Window"]
    )
    """Windows for GMEM tensors and for views; arrays for tiles that are computed."""

    ############################################################################
    # Plans and kernels                                                        #
    ############################################################################

    def run(self, plan: PlanOp, inputs: Sequence[Array]) -> list[Array]:
        if len(inputs) != len(plan.inputs):
            raise ExecutionError(
                f"@{plan.plan_name} takes {counted(len(plan.inputs), 'input')}, "
                f"got {len(inputs)}"
            )
        for argument, array in zip(plan.inputs, inputs, strict=True):
            name = value_text(argument, str(argument.index))
            type_ = tensor_type(argument)
            tensor = prepare_input(name, array, type_, self.sizes, self.precision)
            self.values[argument] = Window.of_tensor(tensor)
        for op in plan.body.block.ops:
            if isinstance(op, KernelOp):
                self.run_kernel(op)
            elif isinstance(op, Operator):
                tensor = self.applied(op, self.sizes)
                self.values[op.results[0]] = Window.of_tensor(tensor)
        return [self.read(value, "return") for value in plan.return_op.values]

    def run_kernel(self, kernel: KernelOp) -> None:
        outputs = [self.poisoned(out.type) for out in kernel.outs]
        written = [np.zeros(output.shape, np.int32) for output in outputs]
        iterations = self.iterations(kernel, self.sizes)
        if self.order == "reverse":
            iterations.reverse()
        elif self.order == "random":
            self.random.shuffle(iterations)
        for env in iterations:
            env = self.run_body(kernel, env)
            for position, (out, tile) in enumerate(
                zip(kernel.outs, kernel.yielded, strict=True)
            ):
                where = f"{_place(kernel, env)}: output {position}"
                offsets = evaluate_dims(out.offsets, env)
                value = self.read(tile, where)
                store(outputs[position], written[position], value, offsets, where)
        for result, output, times in zip(kernel.outputs, outputs, written, strict=True):
            name = value_text(result, f"number {result.index}")
            require_writes(times, 1, f"'itgraph.kernel' op: output {name}")
            self.values[result] = Window.of_tensor(output)

    def poisoned(self, type_: TensorType) -> Array:
        """A tensor in which nothing has been written."""
        is_exact = is_float(type_.element_type) and self.precision == "float64"
        dtype = np.dtype(np.float64) if is_exact else numpy_dtype(type_.element_type)
        return np.full(evaluate_dims(type_.dims, self.sizes), poison(dtype), dtype)

    ############################################################################
    # Loops                                                                    #
    ############################################################################

    def run_loop(self, loop: LoopOp, env: Env) -> None:
        states = loop.states
        where = _place(loop, env)
        current = [self.read(state.initial, where).copy() for state in states]
        written = [np.zeros(array.shape, np.int32) for array in current]
        for inner in self.iterations(loop, env):
            for state, argument, array in zip(
                states, loop.state_arguments, current, strict=True
            ):
                if state.kind == "carry":
                    self.values[argument] = array
            inner = self.run_body(loop, inner)
            current = [
                self.updated(state, array, times, given, inner, _place(loop, inner))
                for state, array, times, given in zip(
                    states, current, written, loop.contributions, strict=True
                )
            ]
        for final, array, times in zip(loop.finals, current, written, strict=True):
            name = value_text(final, f"number {final.index}")
            require_writes(times, 0, f"{where}: tiles state {name}")
            self.values[final] = array

    def updated(
        self,
        state: State,
        array: Array,
        written: Array,
        given: Contribution,
        env: Env,
        where: str,
    ) -> Array:
        """What becomes of a state when an iteration gives it something."""
        value = self.read(given.value, where)
        if state.kind == "carry":
            return value
        if state.kind == "tiles":
            store(array, written, value, evaluate_dims(state.offsets, env), where)
            return array
        old, value = (as_computed(each, self.precision) for each in (array, value))
        if state.kind == "max":
            new = np.maximum(old, value)
        elif given.rescale is None:
            new = old + value
        else:
            rescale = self.read(given.rescale, where)
            new = old * as_computed(rescale, self.precision) + value
        return new.astype(array.dtype, copy=False)

    ############################################################################
    # Levels                                                                   #
    ############################################################################

    def iterations(self, level: Level, env: Env) -> list[Env]:
        """The names in scope of each iteration, but for the lets that vary in it."""
        env = self.with_lets(level, env, fixed=True)
        bounds = [evaluate_dims((r.lo, r.hi), env) for r in level.ranges]
        names = [r.iterator for r in level.ranges]
        return [
            {**env, **dict(zip(names, positions, strict=True))}
            for positions in product(*(range(lo, hi) for lo, hi in bounds))
        ]

    def run_body(self, level: Level, env: Env) -> Env:
        """Run an iteration: tiles go to `values`, the names in scope are returned."""
        env = self.with_lets(level, env, fixed=False)
        place = _place(level, env)
        for argument, view in zip(level.view_arguments, level.views, strict=True):
            where = f"{place}: view {value_text(argument, 'without a name')}"
            self.values[argument] = self.window(view, env, where)
        for op in level.body.block.ops:
            if isinstance(op, LoopOp):
                self.run_loop(op, env)
            elif isinstance(op, Operator):
                self.values[op.results[0]] = self.applied(op, env)
        return env

    def with_lets(self, level: Level, env: Env, fixed: bool) -> Env:
        """Add the lets that bounds may use, or those that vary with the iteration."""
        if not (lets := level.lets):
            return env
        chosen = level.fixed_lets
        env = dict(env)
        for let in lets:
            if (let.name in chosen) != fixed:
                continue
            where = f"{_place(level, env)}: let {let.name}"
            table = Window.of(self.values[let.table])
            env[let.name] = table.element(evaluate_dims(let.index, env), where)
        return env

    def window(self, view: View, env: Env, where: str) -> Window:
        source = Window.of(self.values[view.source])
        gathers = zip(view.tmap.gathers, view.gathers, strict=True)
        return source.cut(
            evaluate_dims(view.tmap.offsets, env),
            evaluate_dims(view.tmap.tile, env),
            {dim: self.read(index, where) for dim, index in gathers},
            where,
        )

    def applied(self, op: Operator, env: Env) -> Array:
        operands = [self.read(operand, f"'{op.name}' op") for operand in op.operands]
        return apply_operator(op, operands, env, self.precision)

    def read(self, value: SSAValue, where: str) -> Array:
        """The elements of a tile."""
        held = self.values[value]
        if not isinstance(held, Window):
            return held
        if self.strict and held.shows_unknown:
            raise ExecutionError(
                f"{where}: {value_text(value, 'a view')} reads past the end of what it "
                "is cut from"
            )
        return held.tile


def _place(level: Level, env: Env) -> str:
    """The level and its iteration in messages."""
    iterators = [
        range_.iterator
        for outer in (level, *levels_around(level))
        for range_ in outer.ranges
        if range_.iterator in env
    ]
    place = ", ".join(f"{name} = {env[name]}" for name in reversed(iterators))
    return f"'{level.name}' op" + (f" at {place}" if place else "")
