"""The `algebra` dialect: tensor graphs over symbolic shapes (DESIGN section 5)."""

from xdsl.ir import Dialect

from cleave.dialects.algebra import contraction, elementwise, generators, views
from cleave.dialects.algebra.graph import GraphOp, ReturnOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.tensor import DimAttr, FactAttr, TensorType

OPERATORS: tuple[type[Operator], ...] = tuple(
    op
    for module in (contraction, elementwise, generators, views)
    for op in vars(module).values()
    if isinstance(op, type) and issubclass(op, Operator) and "name" in vars(op)
)
"""Every operator. A new one is found here by being defined in one of the modules."""

Algebra = Dialect(
    "algebra", [GraphOp, ReturnOp, *OPERATORS], [DimAttr, FactAttr, TensorType]
)
