"""
Register layouts of computed tiles (paper appendix B, figure 13).

A matmul on tensor cores dictates which thread holds which element of its result: a
`fragment`. Elementwise operators keep the layout of a tile and reductions hand it to
their row vectors; everything that no matmul reaches is `linear`, free for the backend.
"""

from __future__ import annotations

from typing import cast

from xdsl.ir import Block, OpResult, SSAValue

from cleave.dialects.algebra.operator import Operator
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.loop import LoopOp
from cleave.dialects.itgraph.memory import Layout
from cleave.dialects.itgraph.operators import Copy
from cleave.dialects.tensor import TensorType

Layouts = dict[SSAValue, Layout]


def infer_layouts(kernel: KernelOp, carries_on: bool = True) -> Layouts:
    """
    The register layout of each computed tile and loop state of a kernel.

    Without `carries_on`, only what a matmul writes is a fragment (the paper's ablation
    "no tensor-core layout reasoning").
    """
    layouts: Layouts = {}
    # A carried state is read before the loop that decides its layout has been seen.
    while True:
        before = dict(layouts)
        _infer_block(kernel.body.block, layouts, carries_on)
        if layouts == before:
            return layouts


def _infer_block(block: Block, layouts: Layouts, carries_on: bool) -> None:
    for op in block.ops:
        if isinstance(op, LoopOp):
            _infer_block(op.body.block, layouts, carries_on)
            for state, result, given in zip(
                op.state_arguments, op.results, op.contributions, strict=True
            ):
                layout = layouts.get(given.value, "linear")
                layouts[state] = layouts[result] = layout
        elif isinstance(op, Copy):
            if op.params["memory"].space == "rmem":
                layouts[op.results[0]] = op.params["memory"].layout
        elif isinstance(op, Operator) and op.KEEPS_ORDER:
            if op.operands[0] in layouts:
                layouts[op.results[0]] = layouts[op.operands[0]]
        elif isinstance(op, Operator) and op.operands:
            is_free = not op.ON_TENSOR_CORES and not carries_on
            layouts[op.results[0]] = "linear" if is_free else _layout_of(op, layouts)


def _layout_of(op: Operator, layouts: Layouts) -> Layout:
    if op.ON_TENSOR_CORES:
        return "fragment"
    dims = op.result_type.dims
    for operand in op.operands:
        same_tile = cast(TensorType, operand.type).dims == dims
        if layouts.get(operand) == "fragment" and (same_tile or not op.ELEMENTWISE):
            return "fragment"
    return "linear"


def reductions_behind(value: SSAValue) -> set[Operator]:
    """
    The reductions whose results a value holds element by element, each changed by
    elementwise operators only: they decide which thread holds which element.
    """
    found: set[Operator] = set()
    seen: set[SSAValue] = set()
    stack = [value]
    while stack:
        current = stack.pop()
        if current in seen:
            continue
        seen.add(current)
        owner = current.owner
        if isinstance(owner, LoopOp) and isinstance(current, OpResult):
            stack.append(owner.contributions[current.index].value)
        elif not isinstance(owner, Operator) or isinstance(owner, Copy):
            continue
        elif owner.REDUCTION is not None:
            extents = owner.expression.reduced
            if not owner.ON_TENSOR_CORES and any(dim != 1 for dim in extents):
                found.add(owner)
        elif owner.ELEMENTWISE or owner.KEEPS_ORDER:
            dims = owner.result_type.dims
            stack += [
                operand
                for operand in owner.operands
                if owner.KEEPS_ORDER or cast(TensorType, operand.type).dims == dims
            ]
    return found
