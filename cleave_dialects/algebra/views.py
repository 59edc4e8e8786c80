"""Operators that only rename elements: split, reshape, transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from xdsl.dialects.builtin import I64, ArrayAttr, IntegerAttr
from xdsl.interfaces import (
    HasCanonicalizationPatternsInterface,
    HasFolderInterface,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import Pure

from cleave.dialects.algebra.operator import Array, D, NumPy, Operator, V
from cleave.dialects.algebra.params import Axes, Axis, DimParam, DimsParam, Params
from cleave.dialects.algebra.tensor_expression import (
    Index,
    TensorExpression,
    Term,
)
from cleave.dialects.dims import Dim, floordiv, mod
from cleave.dialects.facts import Facts
from cleave.dialects.tensor import DimAttr, Shape, TensorType
from cleave.dialects.wording import counted

if TYPE_CHECKING:
    from cleave.passes.superoptimize.semantics import Domain


class View(Operator):
    """The same elements under other indices."""

    ARITY: ClassVar = 1
    INSTRUCTIONS: ClassVar = 0
    IS_VIEW: ClassVar = True
    source = operand_def(TensorType)
    out = result_def(TensorType)
    traits = traits_def(Pure())

    @classmethod
    def infer_element_type(
        cls, elements: Sequence[Attribute], params: Params
    ) -> Attribute:
        return elements[0]


@irdl_op_definition
class Split(View):
    """
    A dim in `count` parts, which come first: `[m, k] -> [s, m, k floordiv s]`.

    Paper section 4: reducing over the part's dim and then over the parts is Split-K.
    The count has to divide the dim; `where [s | K]` or numbers say that it does.

    With a chunk it need not: in `algebra.split %x dim 1 count s chunk C`,
    `[m, k] -> [s, m, C]`, part `z` holds the positions from `z * C` up to the next
    part. All parts together hold at least as many positions as the dim. Those beyond
    its end are zeros, as loads give them. In a tile of a generator or of a computed
    value they are not, so that reductions have to mask them (`algebra.within`).
    """

    name = "algebra.split"
    PARAMS: ClassVar = (
        Axis("dim"),
        DimParam("count"),
        DimParam("chunk", optional=True),
    )
    dim = prop_def(IntegerAttr[I64])
    count = prop_def(DimAttr)
    chunk = opt_prop_def(DimAttr)

    @classmethod
    def infer_shape(
        cls, shapes: Sequence[tuple[D, ...]], params: Params
    ) -> tuple[D, ...]:
        shape = cast(Shape, shapes[0])
        dim: int = params["dim"]
        count: Dim = params["count"]
        if not 0 <= dim < len(shape):
            cls.refuse(f"dim {dim} is out of range for an operand of rank {len(shape)}")
        if isinstance(count, int) and count < 1:
            cls.refuse(f"count is {count}, but there is at least 1 part")
        part: Dim | None = params.get("chunk")
        if part is None:
            if isinstance(rest := mod(shape[dim], count), int) and rest:
                cls.refuse(
                    f"count {count} does not divide dim {dim}, which is {shape[dim]}"
                )
            part = floordiv(shape[dim], count)
        elif isinstance(part, int) and part < 1:
            cls.refuse(f"chunk is {part}, but a part holds at least 1 position")
        return cast(tuple[D, ...], (count, *shape[:dim], part, *shape[dim + 1 :]))

    def verify_facts(self, facts: Facts) -> None:
        dim: int = self.params["dim"]
        count, extent = self.params["count"], self.operand_types[0].dims[dim]
        chunk: Dim | None = self.params.get("chunk")
        if chunk is not None:
            if not facts.at_most(extent, count * chunk):
                held = count * chunk
                values = f"{facts.resolve(held)} and {facts.resolve(extent)}"
                self.refuse(
                    f"{count} parts of {chunk} are not known to hold dim {dim}, which "
                    f"is {extent} (here {values}); declare `{held} >= {extent}`"
                )
        elif not facts.divides(count, extent):
            values = f"{facts.resolve(count)} and {facts.resolve(extent)}"
            self.refuse(
                f"count {count} is not known to divide dim {dim}, which is {extent} "
                f"(here {values}); declare `{count} | {extent}`"
            )

    @classmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        (array,) = arrays
        dim, count = params["dim"], params["count"]
        extents = array.shape
        part = params.get("chunk", extents[dim] // count)
        if beyond := count * part - extents[dim]:
            widths = [(0, beyond if axis == dim else 0) for axis in range(array.ndim)]
            array = np.pad(array, widths)
        parts = (*extents[:dim], count, part, *extents[dim + 1 :])
        return np.moveaxis(array.reshape(parts), dim, 0)

    @classmethod
    def interpret(
        cls,
        domain: Domain[V],
        values: Sequence[V],
        shapes: Sequence[tuple[Any, ...]],
        params: Params,
    ) -> V:
        if "chunk" in params:
            raise NotImplementedError(f"'{cls.name}' op: the search splits evenly")
        count, *rest = cls.infer_shape(shapes, params)
        dim: int = params["dim"]
        parts = domain.reshape(values[0], (*rest[:dim], count, *rest[dim:]))
        others = (axis for axis in range(len(rest) + 1) if axis != dim)
        return domain.transpose(parts, (dim, *others))

    @classmethod
    def retyped(cls, params: Params, shape: tuple[Any, ...]) -> Params:
        chunk = {"chunk": shape[params["dim"] + 1]} if "chunk" in params else {}
        return {**params, "count": shape[0], **chunk}

    @classmethod
    def tensor_expression(
        cls, shapes: Sequence[tuple[Any, ...]], params: Params
    ) -> TensorExpression:
        (shape,) = shapes
        dim: int = params["dim"]
        part = cls.infer_shape(shapes, params)[dim + 1]
        indices: list[Index] = [(Term(axis + 1),) for axis in range(len(shape))]
        indices[dim] = (Term(0, part), Term(dim + 1))
        return TensorExpression(len(shape) + 1, (tuple(indices),))

    def at_tile(
        self,
        operands: Sequence[SSAValue],
        result_type: TensorType,
        offsets: Sequence[Dim],
    ) -> Operator:
        # The tile lies in one part: what is left of the split is a dim of size 1.
        return Reshape(operands[0], shape=result_type.dims)


@irdl_op_definition
class Reshape(View, HasFolderInterface, HasCanonicalizationPatternsInterface):
    """Another shape with as many elements: `algebra.reshape %q to [8, 4, M, D]`."""

    name = "algebra.reshape"
    PARAMS: ClassVar = (DimsParam("shape", "to"),)
    KEEPS_ORDER: ClassVar = True
    shape = prop_def(ArrayAttr[DimAttr])

    @classmethod
    def infer_shape(
        cls, shapes: Sequence[tuple[D, ...]], params: Params
    ) -> tuple[D, ...]:
        before = _product(cast(Shape, shapes[0]))
        after = _product(params["shape"])
        if before != after:
            cls.refuse(f"{before} elements do not become {after}")
        return params["shape"]

    @classmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        return arrays[0].reshape(shape)

    @classmethod
    def interpret(
        cls,
        domain: Domain[V],
        values: Sequence[V],
        shapes: Sequence[tuple[Any, ...]],
        params: Params,
    ) -> V:
        return domain.reshape(values[0], params["shape"])

    @classmethod
    def retyped(cls, params: Params, shape: tuple[Any, ...]) -> Params:
        return {"shape": shape}

    @classmethod
    def tensor_expression(
        cls, shapes: Sequence[tuple[Any, ...]], params: Params
    ) -> TensorExpression:
        """Only dims of size 1 may come and go: other reshapes mix up tiles."""
        (before,) = shapes
        after = params["shape"]
        axes = [axis for axis, dim in enumerate(after) if dim != 1]
        if [after[axis] for axis in axes] != [dim for dim in before if dim != 1]:
            texts = [f"[{', '.join(str(d) for d in dims)}]" for dims in (before, after)]
            cls.refuse(
                f"from {texts[0]} to {texts[1]} regroups dims of a computed value, "
                "which no tile map expresses; reshape inputs or outputs instead"
            )
        remaining = iter(axes)
        index = tuple(() if dim == 1 else (Term(next(remaining)),) for dim in before)
        return TensorExpression(len(after), (index,))

    def at_tile(
        self,
        operands: Sequence[SSAValue],
        result_type: TensorType,
        offsets: Sequence[Dim],
    ) -> Operator:
        return Reshape(operands[0], shape=result_type.dims)

    def fold(self) -> Sequence[SSAValue | Attribute] | None:
        return (self.source,) if self.source.type == self.out.type else None

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from cleave.dialects.algebra.canonicalization import ReshapeOfReshape

        return (ReshapeOfReshape(),)


@irdl_op_definition
class Transpose(View, HasFolderInterface, HasCanonicalizationPatternsInterface):
    """Dims in another order: result dim `i` is the operand's `permutation[i]`."""

    name = "algebra.transpose"
    PARAMS: ClassVar = (Axes("permutation"),)
    permutation = prop_def(ArrayAttr[IntegerAttr])

    @classmethod
    def infer_shape(
        cls, shapes: Sequence[tuple[D, ...]], params: Params
    ) -> tuple[D, ...]:
        (shape,) = shapes
        permutation: tuple[int, ...] = params["permutation"]
        if sorted(permutation) != list(range(len(shape))):
            dims = counted(len(shape), "dim")
            cls.refuse(f"{list(permutation)} is no order of {dims}")
        return tuple(shape[axis] for axis in permutation)

    @classmethod
    def numpy(
        cls, np: NumPy, arrays: Sequence[Array], params: Params, shape: tuple[int, ...]
    ) -> Array:
        return arrays[0].transpose(params["permutation"])

    @classmethod
    def interpret(
        cls,
        domain: Domain[V],
        values: Sequence[V],
        shapes: Sequence[tuple[Any, ...]],
        params: Params,
    ) -> V:
        return domain.transpose(values[0], params["permutation"])

    @classmethod
    def tensor_expression(
        cls, shapes: Sequence[tuple[Any, ...]], params: Params
    ) -> TensorExpression:
        permutation: tuple[int, ...] = params["permutation"]
        indices: list[Index] = [()] * len(permutation)
        for axis, source in enumerate(permutation):
            indices[source] = () if shapes[0][source] == 1 else (Term(axis),)
        return TensorExpression(len(permutation), (tuple(indices),))

    def fold(self) -> Sequence[SSAValue | Attribute] | None:
        permutation: tuple[int, ...] = self.params["permutation"]
        if permutation == tuple(range(len(permutation))):
            return (self.source,)
        return None

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from cleave.dialects.algebra.canonicalization import TransposeOfTranspose

        return (TransposeOfTranspose(),)


def _product(dims: Sequence[Dim]) -> Dim:
    product: Dim = 1
    for dim in dims:
        product = product * dim
    return product
