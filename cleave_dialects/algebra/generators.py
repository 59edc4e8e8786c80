"""
Generators: values that need no operand, computed from positions wherever they are used.

They are leaves like inputs, and a tile of one is the same generator with its parameters
moved by the tile's offsets, so masks cost no memory traffic.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import I64, IntegerAttr, i1, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.traits import Pure

from cleave.dialects.algebra.operator import Array, D, NumPy, Operator, is_float
from cleave.dialects.algebra.params import Axis, DimParam, Number, Params
from cleave.dialects.algebra.tensor_expression import TensorExpression
from cleave.dialects.dims import Dim
from cleave.dialects.facts import Facts
from cleave.dialects.tensor import DimAttr, TensorType


class Generator(Operator):
    """A leaf whose type is written, not inferred."""

    ARITY: ClassVar = 0
    INSTRUCTIONS: ClassVar = 1
    out = result_def(TensorType)
    traits = traits_def(Pure())

    @classmethod
    def infer_shape(
        cls, shapes: Sequence[tuple[D, ...]], params: Params
    ) -> tuple[D, ...]:
        return cls.refuse("has no operands to infer its type from: write the type")

    @classmethod
    def parse_inferred(
        cls,
        parser: Parser,
        operands: Sequence[SSAValue[TensorType]],
        properties: dict[str, Attribute],
    ) -> TensorType:
        parser.raise_error(f"'{cls.name}' op: has no operands, so write its type")

    def verify_(self) -> None:
        self.verify_type(self.result_type)

    @abstractmethod
    def verify_type(self, type_: TensorType) -> None:
        """Raise VerifyException if the result cannot have this type."""

    @classmethod
    def tensor_expression(
        cls, shapes: Sequence[tuple[Any, ...]], params: Params
    ) -> TensorExpression:
        return TensorExpression(0, ())

    def moved(self, offsets: Sequence[Dim]) -> dict[str, Any]:
        """The parameters of the tile at these offsets."""
        return self.params

    def at_tile(
        self,
        operands: Sequence[SSAValue],
        result_type: TensorType,
        offsets: Sequence[Dim],
    ) -> Operator:
        return type(self)(result_type=result_type, **self.moved(offsets))


@irdl_op_definition
class Constant(Generator):
    """
    One number everywhere: `algebra.constant 0.125 : !algebra.tensor<[], f32>`.

    The number may be a dim, `algebra.constant K : !algebra.tensor<[], f32>`.
    """

    name = "algebra.constant"
    PARAMS: ClassVar = (Number("value"),)
    INSTRUCTIONS: ClassVar = 0
    value = prop_def(Attribute)

    def verify_type(self, type_: TensorType) -> None:
        element = type_.element_type
        if isinstance(self.params["value"], float) and not is_float(element):
            self.refuse(f"{self.params['value']} is no value of {element}")

    @classmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        return np.full(shape, float(params["value"]))

    @classmethod
    def number(cls, params: Params) -> Any | None:
        return params["value"]

    @classmethod
    def emit(cls, args: Sequence[str], positions: Sequence[str], params: Params) -> str:
        value = params["value"]
        if isinstance(value, float) and value in (float("inf"), -float("inf")):
            return f'{"-" if value < 0 else ""}T.infinity("float32")'
        return str(value) if isinstance(value, float) else f'T.cast({value}, "float32")'


@irdl_op_definition
class Iota(Generator):
    """Positions along a dim: `algebra.iota dim 1 start i * BM : [M, L], i32`."""

    name = "algebra.iota"
    PARAMS: ClassVar = (Axis("dim"), DimParam("start", optional=True))
    dim = prop_def(Attribute)
    start = opt_prop_def(DimAttr)

    def verify_type(self, type_: TensorType) -> None:
        if type_.element_type != i32:
            self.refuse(f"positions are i32, not {type_.element_type}")
        if not 0 <= self.params["dim"] < type_.rank:
            self.refuse(f"dim {self.params['dim']} is out of range for {type_}")

    @classmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        dim: int = params["dim"]
        along = [shape[dim] if axis == dim else 1 for axis in range(len(shape))]
        positions = np.arange(shape[dim], dtype=np.int32) + np.int32(
            params.get("start", 0)
        )
        return np.broadcast_to(positions.reshape(along), shape)

    @classmethod
    def emit(cls, args: Sequence[str], positions: Sequence[str], params: Params) -> str:
        return f"{positions[params['dim']]} + ({params.get('start', 0)})"

    def moved(self, offsets: Sequence[Dim]) -> dict[str, Any]:
        params = self.params
        return {**params, "start": params.get("start", 0) + offsets[params["dim"]]}


class Mask(Generator):
    """A mask that is true where a few dims in the positions are positive."""

    def verify_type(self, type_: TensorType) -> None:
        if type_.element_type != i1:
            self.refuse(f"a mask is i1, not {type_.element_type}")

    @abstractmethod
    def seen_when(self) -> list[Dim]:
        """Dims of which one is not positive where nothing of the mask is true."""

    @abstractmethod
    def whole_when(self) -> list[Dim]:
        """Dims that are all positive where all of the mask is true."""


@irdl_op_definition
class Within(Mask):
    """
    The positions that a dim has of the parts that it was split into, true where
    `part * chunk + position < limit`:
    `algebra.within part 0 dim 2 chunk C limit K : [s, 1, C], i1`.

    `part` and `dim` are the dims of the parts and of the positions in each.
    """

    name = "algebra.within"
    PARAMS: ClassVar = (
        Axis("part"),
        Axis("dim"),
        DimParam("chunk"),
        DimParam("limit"),
    )
    part = prop_def(IntegerAttr[I64])
    dim = prop_def(IntegerAttr[I64])
    chunk = prop_def(DimAttr)
    limit = prop_def(DimAttr)

    def verify_type(self, type_: TensorType) -> None:
        super().verify_type(type_)
        for name in ("part", "dim"):
            if not 0 <= self.params[name] < type_.rank:
                self.refuse(f"{name} {self.params[name]} is out of range for {type_}")
        if self.params["part"] == self.params["dim"]:
            self.refuse(f"dim {self.params['dim']} is both the parts and the positions")

    @classmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        positions = np.indices(shape, sparse=True)
        part, dim = positions[params["part"]], positions[params["dim"]]
        return np.broadcast_to(part * params["chunk"] + dim < params["limit"], shape)

    @classmethod
    def emit(cls, args: Sequence[str], positions: Sequence[str], params: Params) -> str:
        part, dim = positions[params["part"]], positions[params["dim"]]
        first = "" if part == "0" else f"{part} * ({params['chunk']}) + "
        return f"{first}{dim} < {params['limit']}"

    def moved(self, offsets: Sequence[Dim]) -> dict[str, Any]:
        params = self.params
        part: int = params["part"]
        dim: int = params["dim"]
        chunk: Dim = params["chunk"]
        first = offsets[part] * chunk + offsets[dim]
        return {**params, "limit": params["limit"] - first}

    def seen_when(self) -> list[Dim]:
        return [self.params["limit"]]

    def whole_when(self) -> list[Dim]:
        params, dims = self.params, self.result_type.dims
        part: int = params["part"]
        dim: int = params["dim"]
        chunk: Dim = params["chunk"]
        last = (dims[part] - 1) * chunk + dims[dim] - 1
        return [params["limit"] - last]


class PositionMask(Mask):
    """A mask over (row, column) of the last two dims, true where a row may look."""

    def verify_type(self, type_: TensorType) -> None:
        super().verify_type(type_)
        if type_.rank < 2:
            self.refuse(f"needs a row dim and a column dim, but the type is {type_}")

    @classmethod
    def positions(
        cls, np: NumPy, params: Params, shape: tuple[int, ...]
    ) -> tuple[Array, Array]:
        """Rows, moved onto the diagonal, and columns."""
        rows = np.arange(shape[-2])[:, None] + params["diagonal"]
        return rows, np.arange(shape[-1])[None, :]

    def moved(self, offsets: Sequence[Dim]) -> dict[str, Any]:
        params = self.params
        return {**params, "diagonal": params["diagonal"] + offsets[-2] - offsets[-1]}


@irdl_op_definition
class Causal(PositionMask):
    """
    `column <= row + diagonal`: `algebra.causal diagonal L - M : [M, L], i1`.

    With diagonal `L - M` the last row sees every column (bottom-right aligned).
    """

    name = "algebra.causal"
    PARAMS: ClassVar = (DimParam("diagonal"),)
    diagonal = prop_def(DimAttr)

    @classmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        rows, columns = cls.positions(np, params, shape)
        return np.broadcast_to(columns <= rows, shape)

    @classmethod
    def emit(cls, args: Sequence[str], positions: Sequence[str], params: Params) -> str:
        return f"{positions[-1]} <= {positions[-2]} + ({params['diagonal']})"

    def seen_when(self) -> list[Dim]:
        # The last row sees the first column.
        return [self.params["diagonal"] + self.result_type.dims[-2]]

    def whole_when(self) -> list[Dim]:
        # The first row sees the last column.
        return [self.params["diagonal"] - self.result_type.dims[-1] + 2]


@irdl_op_definition
class Window(PositionMask):
    """
    The last `size` columns up to the diagonal: `row + diagonal - size < column` and
    `column <= row + diagonal`; `algebra.window diagonal L - M size 128 : [M, L], i1`.
    """

    name = "algebra.window"
    PARAMS: ClassVar = (DimParam("diagonal"), DimParam("size"))
    diagonal = prop_def(DimAttr)
    size = prop_def(DimAttr)

    def verify_type(self, type_: TensorType) -> None:
        super().verify_type(type_)
        size = self.params["size"]
        if isinstance(size, int) and size < 1:
            self.refuse(f"a window of size {size} sees nothing; it is at least 1")

    def verify_facts(self, facts: Facts) -> None:
        size = self.params["size"]
        if facts.at_most(size, 0):
            self.refuse(
                f"a window of size {size}, which is at most 0, sees nothing; "
                "it is at least 1"
            )

    @classmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        rows, columns = cls.positions(np, params, shape)
        seen = (columns <= rows) & (columns > rows - params["size"])
        return np.broadcast_to(seen, shape)

    @classmethod
    def emit(cls, args: Sequence[str], positions: Sequence[str], params: Params) -> str:
        row = f"{positions[-2]} + ({params['diagonal']})"
        column = positions[-1]
        return f"T.And({column} <= {row}, {column} > {row} - ({params['size']}))"

    def seen_when(self) -> list[Dim]:
        rows, columns = self.result_type.dims[-2:]
        diagonal, size = self.params["diagonal"], self.params["size"]
        return [diagonal + rows, size + columns - 1 - diagonal]

    def whole_when(self) -> list[Dim]:
        rows, columns = self.result_type.dims[-2:]
        diagonal, size = self.params["diagonal"], self.params["size"]
        return [diagonal - columns + 2, size - rows + 1 - diagonal]
