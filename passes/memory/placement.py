"""Where views, results and states live, once all copies are explicit."""

from __future__ import annotations

from typing import Literal, cast

from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.dtypes import element_bytes
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.level import Level, memory_of, plan_of, set_memory
from cleave.dialects.itgraph.loop import LoopOp
from cleave.dialects.itgraph.memory import Memory
from cleave.dialects.itgraph.operators import Copy
from cleave.dialects.itgraph.parts import tensor_type
from cleave.dialects.itgraph.plan import PlanOp
from cleave.dialects.itgraph.tmap import TMap
from cleave.dialects.tensor import TensorType
from cleave.passes.memory.bulk import moves_in_bulk
from cleave.passes.memory.layouts import Layouts

WARPGROUP = 128
"""Threads that issue one wgmma."""
WGMMA_ROWS = 64
MAX_ACCUMULATORS = 192
"""Registers of a thread for matmul results, so that operands still fit beside them."""


def require_element_types(whole: Operation) -> None:
    """
    Raise PassFailedException for an operator of a graph or plan that computes f64, or
    from f64 without a cast: kernels compute f32, and nobody has said that they may. So
    for i64 that becomes f16 or bf16, which CUDA has no conversion for.
    """
    for op in whole.walk():
        if not isinstance(op, Operator) or op.IS_VIEW:
            continue
        result = op.result_type
        if result.element_type == f64:
            raise PassFailedException(
                f"'{op.name}' op: yields {result}, but kernels compute f32"
            )
        if op.ONLY_ROUNDS:
            source = _unrounded(op.operands[0]).element_type
            if source == i64 and element_bytes(result.element_type) == 2:
                raise PassFailedException(
                    f"'{op.name}' op: yields {result} from i64, but kernels convert "
                    "i64 to no type of 16 bits"
                )
            continue
        for position, type_ in enumerate(op.operand_types):
            if type_.element_type == f64:
                raise PassFailedException(
                    f"'{op.name}' op: operand {position} is {type_}, but kernels "
                    "compute f32: cast it to f32"
                )


def _unrounded(value: SSAValue) -> TensorType:
    """The type before all casts, which a copy makes in one step."""
    while isinstance(op := value.owner, Operator) and op.ONLY_ROUNDS:
        value = op.operands[0]
    return tensor_type(value)


def require_narrow_operands(whole: Operation) -> None:
    """
    Raise PassFailedException for a matmul of a graph or plan whose operands tensor
    cores would round although nobody has said that they may.
    """
    for op in whole.walk():
        if not isinstance(op, Operator) or not op.ON_TENSOR_CORES:
            continue
        for position, type_ in enumerate(op.operand_types):
            element = type_.element_type
            if element == f32 and op.params.get("precision") == "tf32":
                continue
            if element_bytes(element) > 2:
                raise PassFailedException(
                    f"'{op.name}' op: operand {position} is {type_}, but tensor cores "
                    "multiply f16 and bf16, and f32 rounded to tf32: give it as one "
                    "of these, or say `precision tf32` of f32 operands"
                )


def place_kernel(kernel: KernelOp, layouts: Layouts) -> None:
    """Annotate every view, operator and state of a kernel with its memory."""
    for op in kernel.walk():
        if isinstance(op, Level):
            for argument in op.view_arguments:
                set_memory(argument, _view_memory(op, argument, layouts))
        if isinstance(op, LoopOp):
            for state in op.state_arguments:
                set_memory(state, Memory("rmem", layouts[state]))
        elif isinstance(op, Operator) and op.operands and not isinstance(op, Copy):
            result = op.results[0]
            if op.KEEPS_ORDER:
                set_memory(result, memory_of(op.operands[0]))
            else:
                set_memory(result, Memory("rmem", layouts[result]))


def _view_memory(level: Level, argument: BlockArgument, layouts: Layouts) -> Memory:
    source = level.sources[argument.index]
    held = memory_of(source)
    if held is not None and held.space != "gmem":
        return held  # a part of a tile that is on chip already
    if all(isinstance(use.operation, Level) for use in argument.uses):
        return Memory("gmem")
    users = _users(argument)
    readers = [user for user in users if isinstance(user, Operator)]
    is_sliced = any(isinstance(user, Level) for user in users)
    if any(reader.ON_TENSOR_CORES for reader in readers):
        return Memory("smem", "swizzled")
    # A load inside of a loop is overlapped with the steps before it, which needs SMEM;
    # a fragment's threads would read rows in pieces; and of what is broadcast, each
    # thread would hold all that any of its elements needs.
    meets_fragment = any(
        layouts.get(reader.results[0]) == "fragment" for reader in readers
    )
    dims = cast(TensorType, argument.type).dims
    is_broadcast = any(
        reader.ELEMENTWISE and reader.result_type.dims != dims for reader in readers
    )
    if is_sliced or isinstance(level, LoopOp) or meets_fragment or is_broadcast:
        return Memory("smem", "linear")
    return Memory("rmem", "linear")


def _users(value: SSAValue) -> list[Operation]:
    """What uses a value, also under another shape."""
    users: list[Operation] = []
    for use in value.uses:
        op = use.operation
        if isinstance(op, Operator) and op.KEEPS_ORDER:
            users += _users(op.results[0])
        else:
            users.append(op)
    return users


def drop_copies_in_place(kernel: KernelOp) -> None:
    """Erase copies of what is where it is wanted already."""
    for op in list(kernel.walk()):
        if isinstance(op, Copy) and memory_of(op.source) == op.memory.data:
            Rewriter.replace_op(op, [], [op.source])


def default_threads(kernel: KernelOp) -> int:
    """
    A warpgroup for each 64 rows of the matmuls, two at most; two as well where one
    alone would have to hold more of their results than its registers take.
    """
    facts = cast(PlanOp, plan_of(kernel)).facts
    rows = elements = 0
    for op in kernel.walk():
        if isinstance(op, Operator) and op.ON_TENSOR_CORES:
            extents = [facts.resolve(dim) for dim in op.result_type.dims[-2:]]
            if not isinstance(extents[0], int) or not isinstance(extents[1], int):
                return 2 * WARPGROUP
            rows = max(rows, extents[0])
            elements += extents[0] * extents[1]
    if rows == 0 or elements > MAX_ACCUMULATORS * WARPGROUP:
        return 2 * WARPGROUP
    return WARPGROUP * min(2, max(1, rows // WGMMA_ROWS))


def warps_along(kernel: KernelOp) -> Literal["rows", "columns"]:
    """
    Which dim of the matmul results the warpgroups of a kernel divide.

    Rows, so that a row and its statistics stay in one warp, unless there are fewer than
    64 rows for each warpgroup.
    """
    facts = cast(PlanOp, plan_of(kernel)).facts
    threads = kernel.threads.value.data if kernel.threads else WARPGROUP
    for op in kernel.walk():
        if isinstance(op, Operator) and op.ON_TENSOR_CORES:
            rows = facts.resolve(op.result_type.dims[-2])
            if isinstance(rows, int) and rows < WGMMA_ROWS * (threads // WARPGROUP):
                return "columns"
    return "rows"


def default_specialization(kernel: KernelOp) -> Literal["single-loop", "role-based"]:
    """
    The older planner where there is one loop; it moves the initial values of nested
    loops to the wrong place, and of several loops it pipelines the first only. Where
    the loop loads a tile that TMA cannot move, it takes two warpgroups for that, and
    leaves those that compute too few registers.
    """
    loops = [op for op in kernel.walk() if isinstance(op, LoopOp)]
    is_simple = len(loops) <= 1 and all(map(_loads_in_bulk, loops))
    return "single-loop" if is_simple else "role-based"


def _loads_in_bulk(loop: LoopOp) -> bool:
    """Whether TMA can move all that a loop loads."""
    facts = cast(PlanOp, plan_of(loop)).facts
    for view in loop.views:
        source, tmap = _in_tensor(view.source, view.tmap)
        tensor = tensor_type(source)
        if not moves_in_bulk(tensor.dims, tmap, tensor.element_type, facts):
            return False
    return True


def _in_tensor(value: SSAValue, tmap: TMap) -> tuple[SSAValue, TMap]:
    """What a view shows a part of, through the levels around, and which part."""
    while isinstance(value, BlockArgument):
        level = value.block.parent_op()
        if not isinstance(level, Level) or value.index >= len(level.sources):
            break
        tmap = level.views[value.index].tmap.then(tmap)
        value = level.sources[value.index]
    return value, tmap
