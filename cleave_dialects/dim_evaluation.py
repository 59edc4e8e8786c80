"""
Dims as functions of integers: one value at a time, or closed forms over whole arrays.

Python source is generated from the terms of a dim and compiled once. NumPy is loaded by
`compile_dims` only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cleave.dialects.symbolic_dim import (
    Atom,
    Call,
    Dim,
    SymbolicDim,
    names_of,
    terms_of,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


def evaluate(dim: Dim, values: Mapping[str, int]) -> int:
    """
    The value of a dim, equal to that of the same expression in Python integers.

    Raises KeyError naming a symbol without a value, ZeroDivisionError for a divisor 0.
    """
    if isinstance(dim, int):
        return dim
    names, function = _compiled(dim)
    try:
        return function(*[values[name] for name in names])
    except KeyError as error:
        raise KeyError(f"no value for symbol '{error.args[0]}' of '{dim}'") from None


def compile_dims(
    dims: Sequence[Dim], names: Sequence[str]
) -> Callable[..., tuple[NDArray[np.int64], ...]]:
    """
    One function that evaluates several dims over arrays of values, one array a name.

    The arrays broadcast against each other; every result is int64 and has their common
    shape. Divisions that several dims share are computed once. Raises KeyError naming a
    symbol that `names` lacks. A divisor of 0 gives 0 and NumPy's RuntimeWarning; values
    beyond 2^63 wrap.
    """
    import numpy as np

    for dim in dims:
        if missing := sorted(names_of(dim) - set(names)):
            raise KeyError(f"no values for symbol '{missing[0]}' of '{dim}'")
    function = _function(dims, names, {"minimum": np.minimum, "maximum": np.maximum})

    def closed_forms(*values: ArrayLike) -> tuple[NDArray[np.int64], ...]:
        if len(values) != len(names):
            raise TypeError(f"{len(values)} arrays given for {len(names)} names")
        arrays = [np.asarray(value, dtype=np.int64) for value in values]
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
        results: tuple[Any, ...] = function(*arrays)
        return tuple(
            np.broadcast_to(np.asarray(r, dtype=np.int64), shape) for r in results
        )

    return closed_forms


@lru_cache(1 << 14)
def _compiled(dim: SymbolicDim) -> tuple[tuple[str, ...], Callable[..., int]]:
    names = tuple(sorted(dim.names))
    function = _function((dim,), names, {"minimum": min, "maximum": max})
    return names, lambda *values: function(*values)[0]


def _function(
    dims: Sequence[Dim], names: Sequence[str], scope: Mapping[str, Any]
) -> Callable[..., tuple[Any, ...]]:
    """A function from the values of the names to the values of the dims."""
    # Names of symbols may be words of Python: in the source they are numbered.
    arguments = {name: f"x{i}" for i, name in enumerate(names)}
    results_of_calls: dict[Call, str] = {}
    lines: list[str] = []

    def variable(atom: Atom) -> str:
        if isinstance(atom, str):
            return arguments[atom]
        if atom not in results_of_calls:
            source = _call_source(atom, [sum_source(arg) for arg in atom.args])
            results_of_calls[atom] = f"c{len(lines)}"
            lines.append(f"{results_of_calls[atom]} = {source}")
        return results_of_calls[atom]

    def sum_source(dim: Dim) -> str:
        products: list[str] = []
        for term in terms_of(dim):
            factors = [
                variable(a) for a, exponent in term.factors for _ in range(exponent)
            ]
            if term.coefficient != 1 or not factors:
                factors.insert(0, f"({term.coefficient})")
            products.append(" * ".join(factors))
        return f"({' + '.join(products)})" if products else "0"

    results = [f"{sum_source(dim)}, " for dim in dims]
    body = [*lines, f"return ({''.join(results)})"]
    source = f"def closed_forms({', '.join(arguments.values())}):\n" + "".join(
        f"    {line}\n" for line in body
    )
    defined: dict[str, Any] = dict(scope)
    exec(compile(source, "<dims>", "exec"), defined)
    return defined["closed_forms"]


def _call_source(call: Call, args: Sequence[str]) -> str:
    match call.kind:
        case "floordiv":
            return f"{args[0]} // {args[1]}"
        case "ceildiv":
            return f"-(-{args[0]} // {args[1]})"
        case "mod":
            return f"{args[0]} % {args[1]}"
        case "min" | "max":
            source = args[0]
            for arg in args[1:]:
                source = f"{call.kind}imum({source}, {arg})"
            return source
