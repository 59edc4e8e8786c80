"""What a kernel must be for the form `persistent`: a loop of matmuls, an epilogue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import BlockArgument, SSAValue

from cleave.dialects.algebra.generators import Constant
from cleave.dialects.algebra.operator import GUARDED, Operator
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.level import Level, memory_of, value_text
from cleave.dialects.itgraph.loop import LoopOp, NextOp
from cleave.dialects.itgraph.operators import Copy
from cleave.dialects.itgraph.tmap import names_in


class Misfit(Exception):
    """Why a kernel cannot have the form."""


@dataclass(frozen=True)
class Structure:
    """
    A kernel as the form sees it: one loop whose steps are matmuls of tiles that are
    loaded for them, and an epilogue of elementwise operators.

    `renames` give tiles of a step other dims of size 1; `matmuls` add to states of the
    loop; `statistics` are the other operators of a step, which run beside them.
    `beside` are tiles in SMEM that the epilogue reads; `staged` are copies to SMEM that
    exist only for a store.
    """

    loop: LoopOp
    renames: tuple[Operator, ...]
    matmuls: tuple[Operator, ...]
    statistics: tuple[Operator, ...]
    beside: tuple[BlockArgument, ...]
    epilogue: tuple[Operator, ...]
    staged: tuple[Copy, ...]
    divides_rows: bool
    """Whether each warpgroup has other rows of a tile, or other columns."""

    @property
    def accumulators(self) -> tuple[SSAValue, ...]:
        """The states to which matmuls add, as results of the loop, each once."""
        last = self.loop.terminator
        results = {op.results[0] for op in self.matmuls}
        return tuple(
            final
            for final, value in zip(self.loop.finals, last.values, strict=True)
            if value in results
        )


def structure_of(kernel: KernelOp) -> Structure:
    """Raises Misfit for a kernel that is not built like this."""
    _require_views(kernel)
    loops = [op for op in kernel.walk() if isinstance(op, LoopOp)]
    if len(loops) != 1:
        raise Misfit(f"it has {len(loops)} loops, and the form is for one")
    (loop,) = loops
    _require_views(loop)
    varying = names_in([loop.range.extent]) & {*kernel.own_names}
    if varying:
        raise Misfit(
            f"the loop over {loop.range.iterator} takes {loop.range.extent} steps, "
            f"which changes with {', '.join(sorted(varying))}"
        )
    step = list(_step_operators(loop))
    matmuls = tuple(op for op in step if op.ON_TENSOR_CORES)
    renames = tuple(op for op in step if op.KEEPS_ORDER)
    statistics = tuple(op for op in step if op not in (*matmuls, *renames))
    if not matmuls:
        raise Misfit(f"the loop over {loop.range.iterator} has no matmul")
    for op in matmuls:
        _require_loaded_operands(op, loop)
    for op in (*renames, *statistics):
        _require_independent(op, loop)
    _require_sums(loop)
    return Structure(
        loop=loop,
        renames=renames,
        matmuls=matmuls,
        statistics=statistics,
        beside=_views_beside(kernel, loop),
        epilogue=_epilogue(kernel),
        staged=tuple(
            value.owner
            for value in dict.fromkeys(kernel.yielded)
            if isinstance(value.owner, Copy) and value.has_one_use()
        ),
        divides_rows=kernel.attributes.get("warps") != StringAttr("columns"),
    )


def _require_views(level: Level) -> None:
    if level.lets:
        raise Misfit(f"'{level.name}' op: it has lets")
    if level.indices:
        raise Misfit(f"'{level.name}' op: it gathers rows")


# The loop


def _step_operators(loop: LoopOp) -> Iterator[Operator]:
    for op in loop.body.block.ops:
        if isinstance(op, Operator) and op.operands:
            if GUARDED in op.attributes:
                _refuse(op, "is a mask under a condition")
            yield op


def _require_loaded_operands(op: Operator, loop: LoopOp) -> None:
    """The producer knows no other tiles than those that it loads."""
    for position, operand in enumerate(op.operands):
        loaded = _renamed(operand)
        if loaded not in loop.view_arguments:
            made = "loaded before" if isinstance(loaded, BlockArgument) else "computed"
            _refuse(op, f"operand {position} is {made}, not loaded in its loop")
        memory = memory_of(loaded)
        source = memory_of(loop.sources[loop.view_arguments.index(loaded)])
        if memory is None or memory.space != "smem":
            _refuse(op, f"operand {position} is not in SMEM")
        if source is None or source.space != "gmem":
            _refuse(op, f"operand {position} is a part of a tile that is loaded before")
    if [type(use.operation) for use in op.results[0].uses] != [NextOp]:
        _refuse(op, "its result is used in the loop, and not only summed")


def _renamed(value: SSAValue) -> SSAValue:
    """The tile of which a value is only another name."""
    owner = value.owner
    if isinstance(owner, Operator) and owner.KEEPS_ORDER:
        return _renamed(owner.operands[0])
    return value


def _require_independent(op: Operator, loop: LoopOp) -> None:
    """What runs beside the matmuls neither waits for them nor for other threads."""
    if isinstance(op, Copy) and op.params["memory"].space == "smem":
        _refuse(op, "a tile of the loop is exchanged through SMEM")
    for operand in op.operands:
        owner = operand.owner
        if operand in loop.view_arguments:
            continue
        is_known = isinstance(owner, Operator) and (
            owner.parent_op() is loop or not owner.operands
        )
        if not is_known:
            _refuse(op, "it uses what the loop does not load")


def _require_sums(loop: LoopOp) -> None:
    for state, argument, given in zip(
        loop.states, loop.state_arguments, loop.contributions, strict=True
    ):
        what = f"state {value_text(argument, 'of the loop')}"
        owner = given.value.owner
        on_tensor_cores = isinstance(owner, Operator) and owner.ON_TENSOR_CORES
        if given.rescale is not None:
            raise Misfit(f"{what} is rescaled in each step")
        if state.kind not in ("sum", "max"):
            raise Misfit(f"{what} is a '{state.kind}', not a sum or a maximum")
        initial = state.initial.owner
        if not isinstance(initial, Constant):
            raise Misfit(f"{what} begins with a computed value")
        if on_tensor_cores and initial.params["value"] != 0:
            raise Misfit(f"{what} begins with {initial.params['value']}, not with 0")


# The epilogue


def _views_beside(kernel: KernelOp, loop: LoopOp) -> tuple[BlockArgument, ...]:
    beside: list[BlockArgument] = []
    for argument in kernel.view_arguments:
        memory = memory_of(argument)
        if memory is None or memory.space == "gmem":
            continue
        if argument in loop.operands:
            name = value_text(argument, "of the kernel")
            raise Misfit(f"tile {name} is loaded before the loop that slices it")
        if memory.space != "smem":
            name = value_text(argument, "of the kernel")
            raise Misfit(f"tile {name} is loaded into registers, not into SMEM")
        beside.append(argument)
    for op in loop.body.walk():
        for operand in op.operands:
            if operand in kernel.view_arguments and operand not in loop.operands:
                raise Misfit("the loop uses a tile that is loaded before it")
    return tuple(beside)


def _epilogue(kernel: KernelOp) -> tuple[Operator, ...]:
    operators = tuple(
        op for op in kernel.body.block.ops if isinstance(op, Operator) and op.operands
    )
    for op in operators:
        if not op.ELEMENTWISE and not op.KEEPS_ORDER:
            _refuse(op, "the epilogue is for elementwise operators")
        if GUARDED in op.attributes:
            _refuse(op, "is a mask under a condition")
    for value in kernel.yielded:
        if isinstance(_renamed(value), BlockArgument):
            name = value_text(value, "of the kernel")
            raise Misfit(f"tile {name} is stored as it was loaded")
    return operators


def _refuse(op: Operator, reason: str) -> NoReturn:
    raise Misfit(f"'{op.name}' op: {reason}")
