"""
Execution of generated modules in NumPy: what the printed TileLang means.

The text is executed as it is, with a stand-in for TileLang's language, one threadblock
after the other. Elements have their real types, and a product that is added is not
rounded before, so results are those of the "rounded" execution of the plan, but for the
last places of sums.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

from cleave.lowering.generated import GeneratedModule
from cleave.lowering.numpy_algebra import ExecutionError
from cleave.lowering.numpy_language import (
    GridAsked,
    dtype_named,
    nothing,
    poisoned,
)
from cleave.lowering.numpy_multiply_add import (
    MULTIPLY_ADD,
    multiply_add,
    with_multiply_adds,
)
from cleave.lowering.numpy_regions import Array, Tensor
from cleave.lowering.numpy_warpgroups import Priority, WarpgroupLanguage
from cleave.lowering.plan import KernelSpec, LibraryCall, evaluate_shape


def execute_module(
    module: GeneratedModule,
    inputs: Sequence[Array],
    sizes: Mapping[str, int],
    priority: Priority = "loads",
) -> list[Array]:
    """
    The results of a generated module for these inputs.

    Args:
        inputs: one array an argument, of its shape under `sizes`; rounded to its dtype.
        sizes: integers for the dynamic dims.
        priority: which warps run where they are divided and several could.
    Raises:
        ExecutionError: something that has no meaning here, or warps that wait for ever.
    """
    plan = module.plan
    tensors: dict[str, Array] = {}
    for spec, array in zip(plan.args, inputs, strict=True):
        shape = evaluate_shape(spec.shape, sizes)
        tensors[spec.name] = array.astype(dtype_named(spec.dtype)).reshape(shape)
    for spec in (*plan.results, *plan.temporaries):
        shape = evaluate_shape(spec.shape, sizes)
        tensors[spec.name] = poisoned(shape, spec.dtype)
    language = WarpgroupLanguage(sizes, priority)
    functions = _functions(module, language)
    # Overflow and NaN are results like others here, not something to warn of.
    with np.errstate(all="ignore"):
        for launch in plan.launches:
            arrays = [_argument(tensors, a.name, a.view, sizes) for a in launch.args]
            if isinstance(launch, LibraryCall):
                _multiply(launch, *arrays)
            else:
                arguments = list(map(Tensor, arrays))
                _launch(functions[launch.function](), arguments, launch, language)
    return [tensors[spec.name] for spec in plan.results]


def _multiply(call: LibraryCall, lhs: Array, rhs: Array, out: Array) -> None:
    lhs, rhs = (
        operand.astype(np.float32).swapaxes(-1, -2)
        if side in call.transposed
        else operand.astype(np.float32)
        for side, operand in (("lhs", lhs), ("rhs", rhs))
    )
    out[...] = np.matmul(lhs, rhs).astype(out.dtype)


def _functions(
    module: GeneratedModule, language: WarpgroupLanguage
) -> dict[str, Callable[[], Any]]:
    """The functions of the text, in which the imports of TileLang are left out."""
    tree = ast.parse(module.text, filename=str(module.path))
    tree.body = [node for node in tree.body if not isinstance(node, ast.Import)]
    layout = SimpleNamespace(make_swizzled_layout=nothing)
    names: dict[str, Any] = {
        "T": language,
        "tilelang": SimpleNamespace(layout=layout),
        MULTIPLY_ADD: multiply_add,
    }
    exec(compile(with_multiply_adds(tree), str(module.path), "exec"), names)
    return names


def _launch(
    function: Callable[..., None],
    arguments: Sequence[Tensor],
    kernel: KernelSpec,
    language: WarpgroupLanguage,
) -> None:
    """Run every threadblock; what the first call asks for says how many there are."""
    language.block = None
    try:
        function(*arguments)
    except GridAsked as asked:
        grid = asked.extents
    else:
        raise ExecutionError(f"{kernel.function} launches no T.Kernel")
    for block in product(*map(range, reversed(grid))):
        language.block = block[::-1]
        language.run(lambda: function(*arguments))


def _argument(
    tensors: Mapping[str, Array],
    name: str,
    view: Sequence[int | str] | None,
    sizes: Mapping[str, int],
) -> Array:
    array = tensors[name]
    # A view of a contiguous array: what a kernel writes is in the tensor.
    return array if view is None else array.reshape(evaluate_shape(view, sizes))
