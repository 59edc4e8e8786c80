"""`itgraph.kernel`, the parallel level: one threadblock an iteration; `yield`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import I64, ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.pattern_rewriter import RewritePattern
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.itgraph.coverage import verify_outputs
from cleave.dialects.itgraph.level import (
    Level,
    level_operands,
    level_properties,
    value_text,
)
from cleave.dialects.itgraph.memory import Memory
from cleave.dialects.itgraph.parsing import parse_tensor_type
from cleave.dialects.itgraph.parts import Let, Output, View, tensor_type
from cleave.dialects.itgraph.plan import PlanOp
from cleave.dialects.itgraph.syntax import (
    clause,
    parse_level,
    print_attributes,
    print_level,
)
from cleave.dialects.itgraph.terminator import Terminator
from cleave.dialects.itgraph.tmap import Range, TMap
from cleave.dialects.itgraph.verification import verify_level
from cleave.dialects.tensor import (
    DimAttr,
    TensorType,
    dim_array,
    dims_of,
    parse_dims,
    print_dims,
)


class ReadsThroughViews(IsolatedFromAbove):
    """A kernel touches what is around it only through its views, lets and gathers."""

    def verify(self, op: Operation) -> None:
        for inner in op.walk():
            if inner is op:
                continue
            for operand in inner.operands:
                if not op.is_ancestor(operand.owner) or operand.owner is op:
                    raise VerifyException(
                        f"'itgraph.kernel' op: '{inner.name}' op uses "
                        f"{value_text(operand, 'a value')} of the plan, but a kernel "
                        "reads tensors through its ins"
                    )


@irdl_op_definition
class KernelOp(Level, HasCanonicalizationPatternsInterface):
    """
    A parallel loop: every iteration computes one tile of each output, in any order.

        %o = itgraph.kernel (h = 0 to H, i_M = 0 to M ceildiv BM)
            ins (%tq = %q[h, i_M * BM, 0] tile [1, BM, D], %gk = %k)
            outs ([h, i_M * BM, 0] of !algebra.tensor<[H, M, D], f16>)
            attributes {form = "pipelined", threads = 128 : i64} {
          ...
          itgraph.yield %t
        }

    The yielded tiles give the tile shapes of the outputs. Tiles are disjoint and cover
    the output: along each dim either one iterator from 0 to `D ceildiv T` and offset
    `i * T`, or offset 0 and a tile that holds the dim. Stores are clipped.
    """

    name = "itgraph.kernel"

    output_offsets = prop_def(ArrayAttr[ArrayAttr[DimAttr]])
    form = opt_prop_def(StringAttr)
    """Which kernel form of the emitter is used."""
    threads = opt_prop_def(IntegerAttr[I64])
    """Threads of a threadblock that compute; a form may add some that only load."""
    stages = opt_prop_def(IntegerAttr[I64])
    """Stages of the software pipeline."""
    swizzle = opt_prop_def(IntegerAttr[I64])
    """Panel width in which threadblocks walk the output, for reuse in L2."""

    outputs = var_result_def(TensorType)

    traits = traits_def(Pure(), ReadsThroughViews(), HasParent(PlanOp))

    def __init__(
        self,
        iterators: Sequence[Range],
        views: Sequence[View],
        outs: Sequence[Output],
        body: Region | Block,
        *,
        lets: Sequence[Let] = (),
        form: str | None = None,
        threads: int | None = None,
        stages: int | None = None,
        swizzle: int | None = None,
        attributes: Mapping[str, Attribute] | None = None,
    ):
        offsets = ArrayAttr(dim_array(out.offsets) for out in outs)
        super().__init__(
            operands=level_operands(views, lets),
            result_types=[[out.type for out in outs]],
            regions=[body if isinstance(body, Region) else Region(body)],
            properties={
                **level_properties(iterators, views, lets, [v.memory for v in views]),
                "output_offsets": offsets,
                "form": None if form is None else StringAttr(form),
                "threads": _integer(threads),
                "stages": _integer(stages),
                "swizzle": _integer(swizzle),
            },
            attributes=dict(attributes or {}),
        )

    @property
    def outs(self) -> tuple[Output, ...]:
        return tuple(
            Output(dims_of(offsets), result.type)
            for offsets, result in zip(self.output_offsets, self.outputs, strict=True)
        )

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """The tiles that an iteration gives to the outputs."""
        return tuple(cast(YieldOp, self.body.block.last_op).values)

    @property
    def output_tmaps(self) -> tuple[TMap, ...]:
        return tuple(
            TMap(out.offsets, tensor_type(tile).dims)
            for out, tile in zip(self.outs, self.yielded, strict=True)
        )

    def with_views(self, views: Sequence[View], lets: Sequence[Let]) -> KernelOp:
        kernel = KernelOp(
            self.ranges,
            views,
            self.outs,
            self.detach_region(self.body),
            lets=lets,
            attributes=self.attributes,
        )
        kernel.properties.update(self._settings)
        return kernel

    def result_memory(self, result: OpResult) -> Memory:
        return Memory("gmem")

    @property
    def _settings(self) -> dict[str, Attribute]:
        """What is printed in the attribute dictionary although it is a property."""
        return {
            name: self.properties[name] for name in _SETTINGS if name in self.properties
        }

    def verify_(self) -> None:
        verify_level(self, len(self.sources))
        for name in ("threads", "stages", "swizzle"):
            setting = self._settings.get(name)
            if isinstance(setting, IntegerAttr) and setting.value.data < 1:
                self.refuse(f"{name} is {setting.value.data}, but it is at least 1")
        if not isinstance(self.body.block.last_op, YieldOp):
            self.refuse("body does not end in itgraph.yield")
        verify_outputs(self, self.outs, self.yielded)

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        level = parse_level(parser)
        parser.parse_keyword("outs")
        outs = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: _parse_output(parser)
        )
        given = parser.parse_optional_attr_dict_with_keyword()
        attributes = dict(given.data) if given else {}
        settings = {
            name: attributes.pop(name) for name in _SETTINGS if name in attributes
        }
        kernel = cls(
            level.ranges,
            level.views,
            outs,
            parser.parse_region(level.arguments),
            lets=level.lets,
            attributes=attributes,
        )
        kernel.properties.update(settings)
        return kernel

    def print(self, printer: Printer) -> None:
        print_level(printer, self)
        with clause(printer, "outs"):
            printer.print_list(self.outs, lambda out: _print_output(printer, out))
        print_attributes(printer, self._settings | self.attributes)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from cleave.dialects.itgraph.canonicalization import DropUnusedViews

        return (DropUnusedViews(),)


_SETTINGS = ("form", "threads", "stages", "swizzle")


def _integer(value: int | None) -> IntegerAttr[I64] | None:
    return None if value is None else IntegerAttr(value, i64)


def _parse_output(parser: Parser) -> Output:
    offsets = parse_dims(parser)
    parser.parse_keyword("of")
    return Output(offsets, parse_tensor_type(parser))


def _print_output(printer: Printer, out: Output) -> None:
    print_dims(printer, out.offsets)
    printer.print_string(" of ")
    printer.print_attribute(out.type)


@irdl_op_definition
class YieldOp(Terminator):
    """The tile of each output that an iteration of a kernel computes."""

    name = "itgraph.yield"

    traits = traits_def(IsTerminator(), Pure(), HasParent(KernelOp))
