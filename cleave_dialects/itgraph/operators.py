"""Operators that only tile programs need: masking a tail, and copying a tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import I64, FloatAttr, IntegerAttr
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.pattern_rewriter import RewritePattern
from xdsl.printer import Printer
from xdsl.traits import Pure

from cleave.dialects.algebra.generators import Constant
from cleave.dialects.algebra.operator import MEMORY, Array, D, NumPy, Operator
from cleave.dialects.algebra.params import Axis, DimParam, Number, Param, Params
from cleave.dialects.algebra.tensor_expression import (
    TensorExpression,
    broadcast_indices,
)
from cleave.dialects.dims import Dim
from cleave.dialects.itgraph.memory import MemoryAttr, parse_memory
from cleave.dialects.tensor import DimAttr, TensorType
from cleave.passes.superoptimize.semantics import Domain, V


class _Fill(Number):
    """A number after its word, `fill -inf`."""

    parse_optional = Param.parse_optional
    print = Param.print


class _To(Param):
    """A memory, `to smem<swizzled>`."""

    def encode(self, value: Any) -> Attribute:
        return MemoryAttr(value)

    def decode(self, attribute: Attribute) -> Any:
        return cast(MemoryAttr, attribute).data

    def parse_value(self, parser: Parser) -> Attribute:
        return parse_memory(parser)

    def print_value(self, printer: Printer, attribute: Attribute) -> None:
        printer.print_string(f" {self.decode(attribute)}")


class _SameTile(Operator):
    """An operator whose result has the type of its operand, position for position."""

    ARITY: ClassVar = 1
    ELEMENTWISE: ClassVar = True
    INSTRUCTIONS: ClassVar = 0
    source = operand_def(TensorType)
    out = result_def(TensorType)
    traits = traits_def(Pure())

    @classmethod
    def infer_shape(
        cls, shapes: Sequence[tuple[D, ...]], params: Params
    ) -> tuple[D, ...]:
        return shapes[0]

    @classmethod
    def infer_element_type(
        cls, elements: Sequence[Attribute], params: Params
    ) -> Attribute:
        return elements[0]

    @classmethod
    def tensor_expression(
        cls, shapes: Sequence[tuple[Any, ...]], params: Params
    ) -> TensorExpression:
        (shape,) = shapes
        return TensorExpression(len(shape), (broadcast_indices(shape, shape),))


@irdl_op_definition
class Tail(_SameTile, HasCanonicalizationPatternsInterface):
    """
    Replaces what lies beyond the end of a tensor, from `limit` on along a tile's dim:

        %t = itgraph.tail %s dim 1 limit L - j * BL fill -inf
            : !algebra.tensor<[BM, BL], f32>

    A reduction masks its tail with its own identity: rows that were loaded as zeros are
    no longer zeros after an exp.
    """

    name = "itgraph.tail"
    INSTRUCTIONS: ClassVar = 2
    PARAMS: ClassVar = (Axis("dim"), DimParam("limit"), _Fill("fill"))
    dim = prop_def(IntegerAttr[I64])
    limit = prop_def(DimAttr)
    fill = prop_def(FloatAttr | DimAttr)

    @classmethod
    def infer_shape(
        cls, shapes: Sequence[tuple[D, ...]], params: Params
    ) -> tuple[D, ...]:
        (shape,) = shapes
        if not 0 <= (dim := params["dim"]) < len(shape):
            cls.refuse(f"dim {dim} is out of range for an operand of rank {len(shape)}")
        return shape

    @classmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        (tile,) = arrays
        positions = np.indices(shape, sparse=True)[params["dim"]]
        fill = tile.dtype.type(params["fill"])
        return np.where(positions < params["limit"], tile, fill)

    @classmethod
    def emit(cls, args: Sequence[str], positions: Sequence[str], params: Params) -> str:
        from cleave.dialects.algebra.elementwise import Select

        fill = Constant.emit((), (), {"value": params["fill"]})
        inside = f"{positions[params['dim']]} < {params['limit']}"
        return Select.emit([inside, args[0], fill], positions, {})

    @classmethod
    def interpret(
        cls,
        domain: Domain[V],
        values: Sequence[V],
        shapes: Sequence[tuple[Any, ...]],
        params: Params,
    ) -> V:
        within = domain.opaque(f"{cls.name} {params['dim']} {params['limit']}")
        return domain.select(within, values[0], domain.number(params["fill"]))

    def clear_when(self) -> Sequence[Dim] | None:
        params = self.params
        limit: Dim = params["limit"]
        axis: int = params["dim"]
        return [limit - self.result_type.dims[axis] + 1]

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from cleave.dialects.itgraph.canonicalization import DropTailWithinLimit

        return (DropTailWithinLimit(),)


@irdl_op_definition
class Copy(_SameTile, HasCanonicalizationPatternsInterface):
    """
    The same tile in another memory or layout:

        %c = itgraph.copy %x to smem<swizzled> : !algebra.tensor<[BM, D], f16>
    """

    name = "itgraph.copy"
    PARAMS: ClassVar = (_To("memory", "to"),)
    memory = prop_def(MemoryAttr)

    def verify_(self) -> None:
        super().verify_()
        if MEMORY in self.attributes:
            self.refuse("says twice where its result lives")

    @classmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        return arrays[0]

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from cleave.dialects.itgraph.canonicalization import DropCopyInPlace

        return (DropCopyInPlace(),)
