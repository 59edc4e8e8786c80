"""
Elementwise operators.

One entry each: the name, the meaning in NumPy, the laws that the search may use (none
by default), one element in TileLang, and the cost where it is not one flop. Operands of
size 1 are broadcast, dims right-aligned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, isnan, log
from typing import TYPE_CHECKING, Any, ClassVar

from xdsl.dialects.builtin import f32, i1
from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Commutative, Pure

from cleave.dialects.algebra.constants import number_everywhere
from cleave.dialects.algebra.emission import LOG2_E, divided, exp2
from cleave.dialects.algebra.generators import Mask
from cleave.dialects.algebra.operator import (
    Array,
    D,
    NumPy,
    Operator,
    V,
    broadcast_shapes,
    is_float,
)
from cleave.dialects.algebra.params import ElementType, Params
from cleave.dialects.algebra.tensor_expression import (
    TensorExpression,
    broadcast_indices,
)
from cleave.dialects.dims import Dim, SymbolicDim
from cleave.dialects.facts import Facts
from cleave.dialects.tensor import TensorType

if TYPE_CHECKING:
    from cleave.passes.superoptimize.semantics import Domain

################################################################################
# Bases                                                                        #
################################################################################


def meaning1(meaning: Callable[[NumPy, Array], Array]) -> staticmethod[..., Array]:
    """The meaning of a function of one number."""
    return staticmethod(meaning)


def meaning2(
    meaning: Callable[[NumPy, Array, Array], Array],
) -> staticmethod[..., Array]:
    """The meaning of a function of two numbers."""
    return staticmethod(meaning)


def law1(law: Callable[[Domain[Any], Any], Any]) -> staticmethod[..., Any]:
    """The law of a function of one number."""
    return staticmethod(law)


def law2(law: Callable[[Domain[Any], Any, Any], Any]) -> staticmethod[..., Any]:
    """The law of a function of two numbers."""
    return staticmethod(law)


def text1(text: Callable[[str], str]) -> staticmethod[..., str]:
    """The TileLang text of a function of one number."""
    return staticmethod(text)


class Elementwise(Operator):
    """`out[i] = f(a[i], b[i], ...)`."""

    ELEMENTWISE: ClassVar = True
    MEANING: ClassVar[Callable[..., Array]]
    """`MEANING(np, *arrays)`."""
    LAW: ClassVar[Callable[..., Any] | None] = None
    """
    `LAW(domain, *values)`, in what a domain of the search knows; None for a function
    of which only that it is one is used.
    """
    TILELANG: ClassVar[str | Callable[..., str]]
    """
    One element: text with `{0}`, `{1}`, ... for the operands' elements, or a function
    of them.
    """

    @classmethod
    def infer_shape(
        cls, shapes: Sequence[tuple[D, ...]], params: Params
    ) -> tuple[D, ...]:
        return broadcast_shapes(cls, shapes)

    @classmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        return cls.MEANING(np, *arrays)

    @classmethod
    def interpret(
        cls,
        domain: Domain[V],
        values: Sequence[V],
        shapes: Sequence[tuple[Any, ...]],
        params: Params,
    ) -> V:
        if cls.LAW is None:
            return domain.opaque(cls.name, *values)
        return cls.LAW(domain, *values)

    @classmethod
    def tensor_expression(
        cls, shapes: Sequence[tuple[Any, ...]], params: Params
    ) -> TensorExpression:
        result = cls.infer_shape(shapes, params)
        indices = tuple(broadcast_indices(shape, result) for shape in shapes)
        return TensorExpression(len(result), indices)

    @classmethod
    def emit(cls, args: Sequence[str], positions: Sequence[str], params: Params) -> str:
        text = cls.TILELANG
        return text.format(*args) if isinstance(text, str) else text(*args)


class Unary(Elementwise):
    """A function of one number."""

    ARITY: ClassVar = 1
    source = operand_def(TensorType)
    out = result_def(TensorType)
    traits = traits_def(Pure())


class Binary(Elementwise):
    """A function of two numbers."""

    ARITY: ClassVar = 2
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    out = result_def(TensorType)
    traits = traits_def(Pure())

    def said(self, position: int, value: float) -> str:
        """An operand whose elements all are a number, for messages."""
        operand = self.operands[position]
        owner = operand.owner
        number = owner.number(owner.params) if isinstance(owner, Operator) else None
        if isinstance(number, SymbolicDim):
            return f"the constant {number}, which is {value:g}"
        if number is not None:
            return f"the constant {value:g}"
        name = f"%{operand.name_hint}" if operand.name_hint else f"operand {position}"
        return f"{name}, which is {value:g}"


################################################################################
# Unary                                                                        #
################################################################################


@irdl_op_definition
class Exp(Unary):
    """`e ** x`."""

    name = "algebra.exp"
    MEANING: ClassVar = meaning1(lambda np, x: np.exp(x))
    LAW: ClassVar = law1(lambda domain, x: domain.exp(x))
    TILELANG: ClassVar = text1(lambda x: exp2(x, LOG2_E))
    EXPONENTIALS: ClassVar = 1


@irdl_op_definition
class Exp2(Unary):
    """`2 ** x`."""

    name = "algebra.exp2"
    MEANING: ClassVar = meaning1(lambda np, x: np.exp2(x))
    LAW: ClassVar = law1(
        lambda domain, x: domain.exp(domain.mul(x, domain.number(log(2))))
    )
    TILELANG: ClassVar = text1(lambda x: exp2(x))
    EXPONENTIALS: ClassVar = 1


@irdl_op_definition
class Log(Unary):
    """The natural logarithm."""

    name = "algebra.log"
    MEANING: ClassVar = meaning1(lambda np, x: np.log(x))
    LAW: ClassVar = law1(lambda domain, x: domain.log(x))
    TILELANG: ClassVar = "T.log({0})"
    INSTRUCTIONS: ClassVar = 6
    EXPONENTIALS: ClassVar = 1


@irdl_op_definition
class Log2(Unary):
    """The logarithm to base 2."""

    name = "algebra.log2"
    MEANING: ClassVar = meaning1(lambda np, x: np.log2(x))
    LAW: ClassVar = law1(
        lambda domain, x: domain.mul(domain.log(x), domain.number(1 / log(2)))
    )
    TILELANG: ClassVar = "T.log2({0})"
    INSTRUCTIONS: ClassVar = 5
    EXPONENTIALS: ClassVar = 1


@irdl_op_definition
class Sqrt(Unary):
    """The square root."""

    name = "algebra.sqrt"
    MEANING: ClassVar = meaning1(lambda np, x: np.sqrt(x))
    LAW: ClassVar = law1(lambda domain, x: domain.sqrt(x))
    TILELANG: ClassVar = "T.sqrt({0})"
    INSTRUCTIONS: ClassVar = 9
    EXPONENTIALS: ClassVar = 1


@irdl_op_definition
class Rsqrt(Unary):
    """`1 / sqrt(x)`."""

    name = "algebra.rsqrt"
    MEANING: ClassVar = meaning1(lambda np, x: 1 / np.sqrt(x))
    LAW: ClassVar = law1(
        lambda domain, x: domain.div(domain.number(1.0), domain.sqrt(x))
    )
    TILELANG: ClassVar = "T.rsqrt({0})"
    INSTRUCTIONS: ClassVar = 3
    EXPONENTIALS: ClassVar = 1


@irdl_op_definition
class Square(Unary):
    """`x * x`."""

    name = "algebra.square"
    REPEATS_OPERAND: ClassVar = True
    MEANING: ClassVar = meaning1(lambda np, x: x * x)
    LAW: ClassVar = law1(lambda domain, x: domain.square(x))
    TILELANG: ClassVar = "{0} * {0}"


@irdl_op_definition
class Neg(Unary):
    """`-x`."""

    name = "algebra.neg"
    MEANING: ClassVar = meaning1(lambda np, x: -x)
    LAW: ClassVar = law1(lambda domain, x: domain.neg(x))
    TILELANG: ClassVar = "-{0}"


@irdl_op_definition
class Abs(Unary):
    """`|x|`."""

    name = "algebra.abs"
    MEANING: ClassVar = meaning1(lambda np, x: np.abs(x))
    LAW: ClassVar = law1(lambda domain, x: domain.maximum(x, domain.neg(x)))
    TILELANG: ClassVar = "T.abs({0})"


@irdl_op_definition
class Relu(Unary):
    """`max(x, 0)`."""

    name = "algebra.relu"
    MEANING: ClassVar = meaning1(lambda np, x: np.maximum(x, 0))
    LAW: ClassVar = law1(lambda domain, x: domain.maximum(x, domain.number(0.0)))
    TILELANG: ClassVar = "T.max({0}, 0.0)"


@irdl_op_definition
class Tanh(Unary):
    """The hyperbolic tangent."""

    name = "algebra.tanh"
    MEANING: ClassVar = meaning1(lambda np, x: np.tanh(x))
    TILELANG: ClassVar = "T.tanh({0})"
    INSTRUCTIONS: ClassVar = 12
    EXPONENTIALS: ClassVar = 1


@irdl_op_definition
class Sigmoid(Unary):
    """`1 / (1 + exp(-x))`."""

    name = "algebra.sigmoid"
    # Written with tanh, which saturates where exp(-x) would overflow.
    MEANING: ClassVar = meaning1(lambda np, x: 0.5 * (1 + np.tanh(0.5 * x)))
    TILELANG: ClassVar = text1(lambda x: f"1.0 / (1.0 + {exp2(x, -LOG2_E)})")
    INSTRUCTIONS: ClassVar = 12
    EXPONENTIALS: ClassVar = 1


@irdl_op_definition
class Silu(Unary):
    """`x * sigmoid(x)`."""

    name = "algebra.silu"
    REPEATS_OPERAND: ClassVar = True
    MEANING: ClassVar = meaning1(lambda np, x: x * 0.5 * (1 + np.tanh(0.5 * x)))
    TILELANG: ClassVar = text1(lambda x: f"{x} / (1.0 + {exp2(x, -LOG2_E)})")
    INSTRUCTIONS: ClassVar = 12
    EXPONENTIALS: ClassVar = 1


def _erf(np: NumPy, x: Array) -> Array:
    from math import erf

    # NumPy has no erf of its own.
    return np.asarray(np.frompyfunc(erf, 1, 1)(x)).astype(x.dtype)


@irdl_op_definition
class Erf(Unary):
    """The error function."""

    name = "algebra.erf"
    MEANING: ClassVar = meaning1(_erf)
    TILELANG: ClassVar = "T.erf({0})"
    INSTRUCTIONS: ClassVar = 22
    EXPONENTIALS: ClassVar = 1


@irdl_op_definition
class Gelu(Unary):
    """`x * (1 + erf(x / sqrt(2))) / 2`, the exact form."""

    name = "algebra.gelu"
    REPEATS_OPERAND: ClassVar = True
    MEANING: ClassVar = meaning1(lambda np, x: 0.5 * x * (1 + _erf(np, x * 0.5**0.5)))
    TILELANG: ClassVar = "0.5 * {0} * (1.0 + T.erf({0} * 0.7071067811865476))"
    INSTRUCTIONS: ClassVar = 25
    EXPONENTIALS: ClassVar = 1


@irdl_op_definition
class Softplus(Unary):
    """`log(1 + exp(x))`."""

    name = "algebra.softplus"
    REPEATS_OPERAND: ClassVar = True
    # The exponential is of -|x|, which does not overflow.
    MEANING: ClassVar = meaning1(lambda np, x: np.logaddexp(0, x))
    TILELANG: ClassVar = text1(
        lambda x: f"T.max({x}, 0.0) + T.log(1.0 + {exp2(f'T.abs({x})', -LOG2_E)})"
    )
    INSTRUCTIONS: ClassVar = 5
    EXPONENTIALS: ClassVar = 2


################################################################################
# Binary                                                                       #
################################################################################


@irdl_op_definition
class Add(Binary):
    """`a + b`."""

    name = "algebra.add"
    COMBINES: ClassVar = "sum"
    traits = traits_def(Pure(), Commutative())
    MEANING: ClassVar = meaning2(lambda np, a, b: a + b)
    LAW: ClassVar = law2(lambda domain, a, b: domain.add(a, b))
    TILELANG: ClassVar = "{0} + {1}"


@irdl_op_definition
class Sub(Binary):
    """`a - b`."""

    name = "algebra.sub"
    MEANING: ClassVar = meaning2(lambda np, a, b: a - b)
    LAW: ClassVar = law2(lambda domain, a, b: domain.sub(a, b))
    TILELANG: ClassVar = "{0} - {1}"


@irdl_op_definition
class Mul(Binary):
    """`a * b`."""

    name = "algebra.mul"
    traits = traits_def(Pure(), Commutative())
    MEANING: ClassVar = meaning2(lambda np, a, b: a * b)
    LAW: ClassVar = law2(lambda domain, a, b: domain.mul(a, b))
    TILELANG: ClassVar = "{0} * {1}"

    def verify_facts(self, facts: Facts) -> None:
        factors = [number_everywhere(operand, facts) for operand in self.operands]
        if None not in factors:
            return  # a number itself, such as that of a mask: its readers judge it
        for position, factor in enumerate(factors):
            if factor is not None and not isfinite(factor):
                self.refuse(f"multiplies by {self.said(position, factor)}")


@irdl_op_definition
class Div(Binary):
    """`a / b`."""

    name = "algebra.div"
    INSTRUCTIONS: ClassVar = 10
    MEANING: ClassVar = meaning2(lambda np, a, b: a / b)
    LAW: ClassVar = law2(lambda domain, a, b: domain.div(a, b))

    def verify_facts(self, facts: Facts) -> None:
        divisor = number_everywhere(self.rhs, facts)
        if divisor is not None and (divisor == 0 or isnan(divisor)):
            self.refuse(f"divides by {self.said(1, divisor)}")
        if divisor is None:
            dividend = number_everywhere(self.lhs, facts)
            if dividend is not None and not isfinite(dividend):
                self.refuse(f"divides {self.said(0, dividend)}")

    @classmethod
    def emit(cls, args: Sequence[str], positions: Sequence[str], params: Params) -> str:
        return divided(args[0], args[1], positions)


@irdl_op_definition
class Max(Binary):
    """The larger of two numbers."""

    name = "algebra.max"
    COMBINES: ClassVar = "max"
    traits = traits_def(Pure(), Commutative())
    MEANING: ClassVar = meaning2(lambda np, a, b: np.maximum(a, b))
    LAW: ClassVar = law2(lambda domain, a, b: domain.maximum(a, b))
    TILELANG: ClassVar = "T.max({0}, {1})"


@irdl_op_definition
class Min(Binary):
    """The smaller of two numbers."""

    name = "algebra.min"
    traits = traits_def(Pure(), Commutative())
    MEANING: ClassVar = meaning2(lambda np, a, b: np.minimum(a, b))
    LAW: ClassVar = law2(
        lambda domain, a, b: domain.neg(domain.maximum(domain.neg(a), domain.neg(b)))
    )
    TILELANG: ClassVar = "T.min({0}, {1})"


################################################################################
# Selection and rounding                                                       #
################################################################################


def _select(np: NumPy, mask: Array, a: Array, b: Array) -> Array:
    return np.where(mask, a, b)


@irdl_op_definition
class Select(Elementwise):
    """`a` where the mask holds, else `b`: `algebra.select %mask, %a, %b`."""

    name = "algebra.select"
    ARITY: ClassVar = 3
    CLEAR_OPERAND: ClassVar = 1
    condition = operand_def(TensorType)
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    out = result_def(TensorType)
    traits = traits_def(Pure())
    MEANING: ClassVar = staticmethod(_select)
    # Not `T.if_then_else`, from whose condition TileLang derives bounds of the thread
    # that it then takes for bounds of the statements behind.
    TILELANG: ClassVar = "T.Select({0}, {1}, {2})"

    @classmethod
    def interpret(
        cls,
        domain: Domain[V],
        values: Sequence[V],
        shapes: Sequence[tuple[Any, ...]],
        params: Params,
    ) -> V:
        mask, lhs, rhs = values
        return domain.select(mask, lhs, rhs)

    @classmethod
    def infer_element_type(
        cls, elements: Sequence[Attribute], params: Params
    ) -> Attribute:
        if elements[0] != i1:
            cls.refuse(f"operand 0 is the mask and must be i1, not {elements[0]}")
        # Only the other two are numbers; they keep their positions in messages.
        return super().infer_element_type([f32, *elements[1:]], params)

    def clear_when(self) -> Sequence[Dim] | None:
        mask = self.condition.owner
        while isinstance(mask, Operator) and mask.IS_VIEW:
            mask = mask.operands[0].owner
        return mask.whole_when() if isinstance(mask, Mask) else None


@irdl_op_definition
class Cast(Elementwise, HasFolderInterface):
    """
    A value in another element type, `algebra.cast %p to f16`.

    Between floats it rounds and nothing else, so the search runs without it; from
    integers and masks to floats it is a conversion (a mask becomes 0 or 1).
    """

    name = "algebra.cast"
    PARAMS: ClassVar = (ElementType("element_type", "to"),)
    ARITY: ClassVar = 1
    source = operand_def(TensorType)
    element_type = prop_def(Attribute)
    out = result_def(TensorType)
    traits = traits_def(Pure())
    ONLY_ROUNDS: ClassVar = True

    @classmethod
    def infer_element_type(
        cls, elements: Sequence[Attribute], params: Params
    ) -> Attribute:
        target = params["element_type"]
        if not is_float(target) and is_float(elements[0]):
            cls.refuse(f"from {elements[0]} to {target} would truncate")
        return target

    @classmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        from cleave.dialects.algebra.dtypes import numpy_dtype

        return arrays[0].astype(numpy_dtype(params["element_type"]))

    @classmethod
    def interpret(
        cls,
        domain: Domain[V],
        values: Sequence[V],
        shapes: Sequence[tuple[Any, ...]],
        params: Params,
    ) -> V:
        return values[0]

    @classmethod
    def emit(cls, args: Sequence[str], positions: Sequence[str], params: Params) -> str:
        from cleave.dialects.algebra.dtypes import dtype_name

        return f'T.cast({args[0]}, "{dtype_name(params["element_type"])}")'

    def fold(self) -> Sequence[SSAValue | Attribute] | None:
        return (self.source,) if self.source.type == self.out.type else None
