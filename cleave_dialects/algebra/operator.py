"""
`Operator`: the base of every algebra operator, and the one place where each is defined.

Its class gives the verifier and shape rule, the NumPy meaning, the meaning in the
domains of the search, the tensor expression (tile dependence), the TileLang emission
and the arithmetic cost. These are class-level and take plain data (shapes, parameters,
arrays), so that the search and the scheduler use them without building IR; no pass asks
for an operator's name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    f32,
)
from xdsl.ir import Attribute, Data, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Commutative
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.algebra.params import Param, Params
from cleave.dialects.algebra.tensor_expression import TensorExpression
from cleave.dialects.dims import Dim
from cleave.dialects.facts import Facts
from cleave.dialects.tensor import TensorType, parse_tensor

if TYPE_CHECKING:
    from cleave.passes.superoptimize.semantics import Domain

MEMORY = "memory"
"""The attribute that says where a tile lives, an `#itgraph.memory`."""
GUARDED = "guarded"
"""
The attribute of an operator that is written under a condition, because elsewhere it
changes nothing (`Operator.clear_when`).
"""

D = TypeVar("D")
"""A dim: an int, a SymbolicDim, or a symbol of the search. Only `==` is asked of it."""

V = TypeVar("V")
"""A value of a domain of the search."""

NumPy: TypeAlias = Any
"""The numpy module, handed in so that a tool's start-up does not import it."""
Array: TypeAlias = Any
"""A NumPy array."""

ReductionKind: TypeAlias = Literal["sum", "max"]
IDENTITY: dict[ReductionKind, float] = {"sum": 0.0, "max": float("-inf")}
"""The value that leaves a reduction unchanged; what masks its tails."""


def is_float(element_type: Attribute) -> bool:
    return isinstance(
        element_type, Float16Type | BFloat16Type | Float32Type | Float64Type
    )


class Operator(IRDLOperation, ABC):
    """
    An operator on tensors with one result.

    Text: operands, parameters, attributes, result type, and where the result lives once
    memory is planned:
    `%s = algebra.matmul %q, %k transpose_rhs : !algebra.tensor<[M, L], f32>`.
    The type is always printed and may be left out where it follows from the operands.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = ()
    ARITY: ClassVar[int]
    ELEMENTWISE: ClassVar[bool] = False
    """Every result element depends on the operands' elements at the same position."""
    REDUCTION: ClassVar[ReductionKind | None] = None
    """How the reduction axes of the tensor expression are combined."""
    REPEATS_OPERAND: ClassVar[bool] = False
    """Its TileLang text mentions an operand more than once."""
    COMBINES: ClassVar[ReductionKind | None] = None
    """Combines two values elementwise as this kind of reduction does."""
    CLEAR_OPERAND: ClassVar[int] = 0
    """The operand that `clear_when` is about."""
    IS_REFERENCE: ClassVar[bool] = False
    """A value to shift exponents by: any is sound, so a loop may use a running one."""
    ONLY_ROUNDS: ClassVar[bool] = False
    """Changes how a value is represented, not which value is meant (`cast`)."""
    ON_TENSOR_CORES: ClassVar[bool] = False
    """A matrix product: tensor cores compute it from operands of one narrow type."""
    IS_VIEW: ClassVar[bool] = False
    """Renames the elements of a tensor without touching them."""
    KEEPS_ORDER: ClassVar[bool] = False
    """A view with the same elements in the same row-major order: free in memory."""
    INSTRUCTIONS: ClassVar[int] = 1
    """
    What a thread issues for one element, beside special functions: of the result of an
    elementwise operator, of the operand of a reduction. Correctly rounded divisions and
    roots are sequences of about ten (a seed, Newton steps, a check of the range).
    """
    EXPONENTIALS: ClassVar[int] = 0
    """Special-function evaluations per point."""

    def __init__(
        self,
        *operands: SSAValue | Operation,
        result_type: TensorType | None = None,
        **params: Any,
    ):
        values = [SSAValue.get(operand) for operand in operands]
        given = {name: value for name, value in params.items() if value is not False}
        if result_type is None:
            types = [cast(TensorType, value.type) for value in values]
            result_type = self.infer_type(types, given)
        super().__init__(
            operands=values,
            result_types=[result_type],
            properties=self.encode(given),
        )

    # Parameters and types

    @property
    def params(self) -> dict[str, Any]:
        """The parameters as plain values; flags that are not set are absent."""
        return {
            param.name: param.decode(self.properties[param.name])
            for param in self.PARAMS
            if param.name in self.properties
        }

    @classmethod
    def encode(cls, params: Params) -> dict[str, Attribute]:
        """Properties that hold the given parameters."""
        known = {param.name: param for param in cls.PARAMS}
        return {name: known[name].encode(value) for name, value in params.items()}

    @property
    def operand_types(self) -> list[TensorType]:
        return [cast(TensorType, operand.type) for operand in self.operands]

    @property
    def result_type(self) -> TensorType:
        return cast(TensorType, self.results[0].type)

    @classmethod
    def infer_type(cls, types: Sequence[TensorType], params: Params) -> TensorType:
        """The result type; raises VerifyException naming the operator and the rule."""
        shape = cls.infer_shape([type_.dims for type_ in types], params)
        element = cls.infer_element_type([t.element_type for t in types], params)
        return TensorType(shape, element)

    @classmethod
    @abstractmethod
    def infer_shape(
        cls, shapes: Sequence[tuple[D, ...]], params: Params
    ) -> tuple[D, ...]:
        """The result's dims from the operands'; raises VerifyException."""

    @classmethod
    def infer_element_type(
        cls, elements: Sequence[Attribute], params: Params
    ) -> Attribute:
        """Everything computed is f32; operands are floats."""
        for position, element in enumerate(elements):
            if not is_float(element):
                cls.refuse(
                    f"operand {position} has elements of type {element}, "
                    "but this operator computes with floats"
                )
        return f32

    @classmethod
    def refuse(cls, rule: str) -> Any:
        raise VerifyException(f"'{cls.name}' op: {rule}")

    def verify_(self) -> None:
        expected = self.infer_type(self.operand_types, self.params)
        if expected != self.result_type:
            self.refuse(f"yields {expected}, not {self.result_type}")

    # Meaning

    @classmethod
    @abstractmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        """
        The result, of the given shape; float operands are all float64 or all float32.

        Dims among the parameters are already evaluated to integers.
        """

    @classmethod
    def interpret(
        cls,
        domain: Domain[V],
        values: Sequence[V],
        shapes: Sequence[tuple[Any, ...]],
        params: Params,
    ) -> V:
        """
        The meaning in a domain of the search: fingerprints, abstract classes, signs.

        `shapes` are the operands'. An operator that does not say what it means there
        cannot be part of a graph that is searched; raises NotImplementedError.
        """
        raise NotImplementedError(f"'{cls.name}' op: has no meaning in a finite field")

    @classmethod
    def search_params(
        cls, shapes: Sequence[tuple[Any, ...]], seen: Sequence[Params]
    ) -> Sequence[Params]:
        """
        The parameters that the search tries on operands of these shapes; `seen` are
        those in the graph that it began with.
        """
        return seen

    @classmethod
    def without_views(
        cls, shapes: Sequence[tuple[Any, ...]], params: Params
    ) -> tuple[Params, Sequence[Sequence[int] | None]]:
        """
        The parameters left when transpositions that they ask for are done beforehand,
        and the permutation of each operand that does it (None for none).
        """
        return params, [None] * len(shapes)

    @classmethod
    def retyped(cls, params: Params, shape: tuple[Any, ...]) -> Params:
        """The parameters of the same operator with a result of other dims."""
        return params

    @classmethod
    def number(cls, params: Params) -> Any | None:
        """The float or dim that every element of the result is, if that is known."""
        return None

    @classmethod
    def commutes(cls) -> bool:
        """Whether the order of the operands does not matter."""
        return cls.has_trait(Commutative())

    @classmethod
    @abstractmethod
    def tensor_expression(
        cls, shapes: Sequence[tuple[Any, ...]], params: Params
    ) -> TensorExpression:
        """Index maps for operands of these shapes (see `TensorExpression`)."""

    @property
    def expression(self) -> TensorExpression:
        return self.tensor_expression([t.dims for t in self.operand_types], self.params)

    # Emission

    @classmethod
    def emit(cls, args: Sequence[str], positions: Sequence[str], params: Params) -> str:
        """
        One element of the result as a TileLang expression (elementwise, generators).

        `args` are the operands' elements, `positions` where the element stands in the
        result, dim by dim; dims among the parameters are TileLang text.
        """
        raise NotImplementedError(cls.name)

    @classmethod
    def emit_tile(
        cls, operands: Sequence[str], result: str, params: Params, accumulate: bool
    ) -> str:
        """
        A TileLang statement that computes the whole tile (what is not elementwise).

        With `accumulate` it combines into what `result` holds. Positions of dims among
        the parameters count the dims that the operand's buffer has.
        """
        raise NotImplementedError(cls.name)

    def at_tile(
        self,
        operands: Sequence[SSAValue],
        result_type: TensorType,
        offsets: Sequence[Dim],
    ) -> Operator:
        """
        What computes the tile of the result at `offsets` from tiles of the operands.
        """
        return type(self)(*operands, result_type=result_type, **self.params)

    def clear_when(self) -> Sequence[Dim] | None:
        """
        Dims that, if all are positive, show that the result is the operand at position
        `CLEAR_OPERAND` (a mask that masks nothing of a tile); None if none do.
        """
        return None

    def verify_facts(self, facts: Facts) -> None:
        """Check what the shapes alone cannot tell; raises VerifyException."""

    # Text

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        operands: list[SSAValue[TensorType]] = []
        for position in range(cls.ARITY):
            if position:
                parser.parse_punctuation(",")
            operands.append(parse_tensor(parser))
        properties: dict[str, Attribute] = {}
        for param in cls.PARAMS:
            if (attribute := param.parse_optional(parser)) is not None:
                properties[param.name] = attribute
        attributes = dict(parser.parse_optional_attr_dict())
        if parser.parse_optional_punctuation(":") is not None:
            result_type = parser.parse_type()
        else:
            end = parser.pos
            try:
                result_type = cls.parse_inferred(parser, operands, properties)
            except VerifyException as error:
                # The parser has gone on to the next token, which is another operator.
                parser.raise_error(str(error), start, end)
        if parser.parse_optional_keyword("in") is not None:
            attributes[MEMORY] = _parse_memory(parser)
        return cls.create(
            operands=operands,
            result_types=[result_type],
            properties=properties,
            attributes=attributes,
        )

    @classmethod
    def parse_inferred(
        cls,
        parser: Parser,
        operands: Sequence[SSAValue[TensorType]],
        properties: dict[str, Attribute],
    ) -> TensorType:
        """The type that was not written; raises VerifyException if there is none."""
        params = {
            param.name: param.decode(properties[param.name])
            for param in cls.PARAMS
            if param.name in properties
        }
        return cls.infer_type([operand.type for operand in operands], params)

    def print(self, printer: Printer) -> None:
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_ssa_value)
        for param in self.PARAMS:
            if param.name in self.properties:
                param.print(printer, self.properties[param.name])
        others = {key: value for key, value in self.attributes.items() if key != MEMORY}
        if others:
            printer.print_op_attributes(others)
        printer.print_string(" : ")
        printer.print_attribute(self.result_type)
        if MEMORY in self.attributes:
            printer.print_string(f" in {cast(Data[Any], self.attributes[MEMORY]).data}")


def _parse_memory(parser: Parser) -> Attribute:
    # Only a planned tile program says where its values live.
    from cleave.dialects.itgraph.memory import parse_memory

    return parse_memory(parser)


def broadcast_shapes(
    op: type[Operator], shapes: Sequence[tuple[D, ...]]
) -> tuple[D, ...]:
    """
    The shape of an elementwise result: dims right-aligned, size 1 stretched.

    Raises VerifyException naming the operator, the operand and the dim.
    """
    rank = max(len(shape) for shape in shapes)
    result: list[Any] = [1] * rank
    for position, shape in enumerate(shapes):
        for dim, extent in enumerate(shape, start=rank - len(shape)):
            if result[dim] == 1:
                result[dim] = extent
            elif extent != 1 and extent != result[dim]:
                op.refuse(
                    f"operand {position} has {extent} where the other operands "
                    f"have {result[dim]} (dim {dim} of the result)"
                )
    return tuple(result)
