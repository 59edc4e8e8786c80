"""
When a result is right: its error against float64, and how large that may be.

A kernel rounds where its graph says so, and so is no better than the graph computed
operator by operator with these roundings. Its error may be twice that, for sums are
taken in another order, plus what the coarsest of its types cannot represent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from cleave.dialects.algebra.dtypes import dtype_name
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import is_float

SPACING: Mapping[str, float] = {
    "bfloat16": 2.0**-7,
    "float16": 2.0**-10,
    "tf32": 2.0**-10,
    "float32": 2.0**-23,
    "float64": 2.0**-52,
}
"""The distance of 1 to the next number."""
REORDERED_SUM = 1e-5
"""A relative error that a long sum of float32 may have for its order alone."""


@dataclass(frozen=True)
class Drawing:
    """How random inputs are drawn: normally distributed numbers times `scale`."""

    scale: float
    positive: bool = False

    def __str__(self) -> str:
        values = "|N(0, 1)|" if self.positive else "N(0, 1)"
        return values if self.scale == 1 else f"{self.scale:g} {values}"


DRAWINGS = tuple(
    Drawing(2.0**-exponent, positive)
    for positive in (False, True)
    for exponent in range(8)
)
"""The first with which nothing overflows is taken: an exponential may be unsafe."""


@dataclass(frozen=True)
class NumericCheck:
    """
    Results of a kernel against float64.

    `errors` are those of the results, relative in the Frobenius norm; `allowed` is how
    large each may be. `reasons` says why the kernel is refused; empty if it is right.
    """

    method: Literal["numpy-tiles", "device"]
    sizes: Mapping[str, int]
    drawing: Drawing
    errors: Sequence[float]
    allowed: Sequence[float]
    reasons: Sequence[str]

    def literal(self) -> dict[str, Any]:
        """The check as plain data, for JSON."""
        return asdict(self)

    @classmethod
    def parse(cls, literal: Mapping[str, Any]) -> NumericCheck:
        """The check that `literal` came from."""
        fields: dict[str, Any] = dict(literal)
        fields["drawing"] = Drawing(**literal["drawing"])
        return cls(**fields)

    @property
    def max_error(self) -> float:
        return max(self.errors)

    @property
    def max_allowed(self) -> float:
        """What the result with the largest error was allowed."""
        return self.allowed[list(self.errors).index(self.max_error)]


def allowed_error(graph: GraphOp, operator_error: float) -> float:
    """
    How large the relative error of a result of a kernel for `graph` may be.

    `operator_error` is that of the result when it is computed operator by operator.
    """
    types = [*graph.input_types, *graph.output_types]
    precisions = [op.params.get("precision") for op in graph.operators]
    spacings = [
        SPACING[dtype_name(type_.element_type)]
        for type_ in types
        if is_float(type_.element_type)
    ]
    spacings += [SPACING[precision] for precision in precisions if precision]
    return 2 * operator_error + max([*spacings, REORDERED_SUM])


def relative_error(np: Any, result: Any, reference: Any) -> tuple[float, int]:
    """
    ||result - reference|| / ||reference|| where both are finite, and the number of
    elements where only one is, or where they are different infinities.

    `np` is NumPy or PyTorch, the arrays are of float64.
    """
    finite = np.isfinite(result) & np.isfinite(reference)
    wrong = int((~finite & (result != reference)).sum())
    zero = np.zeros_like(reference)
    expected = np.where(finite, reference, zero)
    difference = float(((np.where(finite, result, zero) - expected) ** 2).sum()) ** 0.5
    size = float((expected**2).sum()) ** 0.5
    return (difference / size if size else difference), wrong


def is_usable(np: Any, exact: Sequence[Any], rounded: Sequence[Any]) -> bool:
    """
    Whether inputs are fit for a check: the exact results are numbers, and rounding them
    operator by operator makes none of them overflow.
    """
    return all(
        not bool(np.isnan(reference).any())
        and bool(np.isfinite(reference).any())
        and relative_error(np, result, reference)[1] == 0
        for result, reference in zip(rounded, exact, strict=True)
    )
