"""`itgraph.loop`: the sequential level and its states, and `itgraph.next`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import I64, ArrayAttr, IntegerAttr, i64
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Block, BlockArgument, OpResult, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.pattern_rewriter import RewritePattern
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.itgraph.attributes import StateAttr, StateKind, parse_state_kind
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.dialects.itgraph.level import (
    Level,
    level_operands,
    level_properties,
    memory_of,
)
from cleave.dialects.itgraph.memory import Memory
from cleave.dialects.itgraph.parts import Contribution, Let, State, View
from cleave.dialects.itgraph.syntax import (
    clause,
    parse_level,
    parse_placement,
    print_attributes,
    print_level,
    print_placement,
)
from cleave.dialects.itgraph.tmap import Range
from cleave.dialects.itgraph.verification import verify_level, verify_states
from cleave.dialects.tensor import (
    TensorType,
    dims_of,
    parse_dims,
    parse_tensor,
    print_dims,
)
from cleave.dialects.wording import counted


@irdl_op_definition
class LoopOp(Level, HasCanonicalizationPatternsInterface):
    """
    A sequential loop with one iterator; its results are the final states.

        %m, %l = itgraph.loop (j = 0 to min(L, (i + 1) * BM) ceildiv BL)
            ins (%tk = %gk[j * BL, 0] tile [BL, D])
            state (%mo = carry %m0, %lo = sum %l0) {
          ...
          itgraph.next %mn, %ps rescale %w
        }

    Initial values are operands, so that two loops can continue one accumulator; a loop
    without iterations returns them. Values from outside may be used directly.
    """

    name = "itgraph.loop"

    updates = prop_def(ArrayAttr[StateAttr])
    initials = var_operand_def(TensorType)

    finals = var_result_def(TensorType)

    traits = lazy_traits_def(lambda: (Pure(), HasParent(KernelOp, LoopOp)))

    def __init__(
        self,
        iterator: Range,
        views: Sequence[View],
        states: Sequence[State],
        body: Region | Block,
        *,
        lets: Sequence[Let] = (),
        attributes: Mapping[str, Attribute] | None = None,
    ):
        placement = [*(v.memory for v in views), *(state.memory for state in states)]
        initials = [state.initial for state in states]
        super().__init__(
            operands=[initials, *level_operands(views, lets)],
            result_types=[[initial.type for initial in initials]],
            regions=[body if isinstance(body, Region) else Region(body)],
            properties={
                **level_properties([iterator], views, lets, placement),
                "updates": ArrayAttr(StateAttr(s.kind, s.offsets) for s in states),
            },
            attributes=dict(attributes or {}),
        )

    @property
    def range(self) -> Range:
        (only,) = self.ranges
        return only

    @property
    def state_arguments(self) -> tuple[BlockArgument, ...]:
        return self.body.block.args[len(self.sources) :]

    @property
    def states(self) -> tuple[State, ...]:
        return tuple(
            State(
                cast(StateKind, attribute.kind.data),
                initial,
                dims_of(attribute.offsets),
                memory_of(argument),
                argument.name_hint,
            )
            for attribute, initial, argument in zip(
                self.updates, self.initials, self.state_arguments, strict=True
            )
        )

    @property
    def terminator(self) -> NextOp:
        return cast(NextOp, self.body.block.last_op)

    @property
    def contributions(self) -> tuple[Contribution, ...]:
        """What an iteration gives to each state."""
        return self.terminator.contributions

    def with_views(self, views: Sequence[View], lets: Sequence[Let]) -> LoopOp:
        return self.rebuilt(views, lets, self.states)

    def rebuilt(
        self, views: Sequence[View], lets: Sequence[Let], states: Sequence[State]
    ) -> LoopOp:
        """
        A new loop that takes over the body of this one; the caller brings the block
        arguments and the terminator in line with `views` and `states`.
        """
        body = self.detach_region(self.body)
        return LoopOp(
            self.range, views, states, body, lets=lets, attributes=self.attributes
        )

    def result_memory(self, result: OpResult) -> Memory | None:
        return memory_of(self.state_arguments[result.index])

    def verify_(self) -> None:
        if (count := len(self.iterators)) != 1:
            self.refuse(f"has {counted(count, 'iterator')}, but a loop has one")
        if not len(self.updates):
            self.refuse("has no state, so it computes nothing")
        counts = [len(each) for each in (self.updates, self.initials, self.finals)]
        if len({*counts}) > 1:
            nouns = ("state", "initial value", "result")
            self.refuse("has {}, {} and {}".format(*map(counted, counts, nouns)))
        verify_level(self, len(self.sources) + len(self.updates))
        if not isinstance(self.body.block.last_op, NextOp):
            self.refuse("body does not end in itgraph.next")
        verify_states(
            self, self.states, self.state_arguments, self.finals, self.contributions
        )

    @classmethod
    def parse(cls, parser: Parser) -> LoopOp:
        level = parse_level(parser)
        states: list[State] = []
        arguments = level.arguments
        if parser.parse_optional_keyword("state") is not None:
            parsed = parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, lambda: _parse_state(parser)
            )
            states = [state for _, state in parsed]
            arguments = [*arguments, *(argument for argument, _ in parsed)]
        attributes = parser.parse_optional_attr_dict_with_keyword()
        if len(level.ranges) != 1:
            parser.raise_error(
                f"'itgraph.loop' op: has {counted(len(level.ranges), 'iterator')}, "
                "but a loop has one"
            )
        return cls(
            level.ranges[0],
            level.views,
            states,
            parser.parse_region(arguments),
            lets=level.lets,
            attributes=attributes.data if attributes else None,
        )

    def print(self, printer: Printer) -> None:
        print_level(printer, self)
        with clause(printer, "state"):
            printer.print_list(
                zip(self.state_arguments, self.states, strict=True),
                lambda pair: _print_state(printer, *pair),
            )
        print_attributes(printer, self.attributes)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from cleave.dialects.itgraph import canonicalization

        return (
            canonicalization.DropUnusedViews(),
            canonicalization.DropUnusedStates(),
            canonicalization.UseWholeViewDirectly(),
            canonicalization.DropLoopWithoutIterations(),
        )


def _parse_state(parser: Parser) -> tuple[Parser.Argument, State]:
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    kind = parse_state_kind(parser)
    initial = parse_tensor(parser)
    offsets = parse_dims(parser) if kind == "tiles" else ()
    state = State(kind, initial, offsets, parse_placement(parser))
    return argument.resolve(initial.type), state


def _print_state(printer: Printer, argument: SSAValue, state: State) -> None:
    printer.print_ssa_value(argument)
    printer.print_string(f" = {state.kind} ")
    printer.print_ssa_value(state.initial)
    if state.kind == "tiles":
        print_dims(printer, state.offsets)
    print_placement(printer, state.memory)


@irdl_op_definition
class NextOp(IRDLOperation):
    """What an iteration gives to the states, `itgraph.next %mn, %ps rescale %w`."""

    name = "itgraph.next"

    values = var_operand_def(TensorType)
    rescales = var_operand_def(TensorType)
    rescaled = prop_def(ArrayAttr[IntegerAttr[I64]])
    """Positions of the values that come with a rescale, ascending."""

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(IsTerminator(), Pure(), HasParent(LoopOp))

    def __init__(self, contributions: Sequence[Contribution]):
        rescaled = [i for i, x in enumerate(contributions) if x.rescale is not None]
        super().__init__(
            operands=[
                [given.value for given in contributions],
                [given.rescale for given in contributions if given.rescale is not None],
            ],
            properties={"rescaled": ArrayAttr(IntegerAttr(i, i64) for i in rescaled)},
        )

    @property
    def contributions(self) -> tuple[Contribution, ...]:
        positions = [position.value.data for position in self.rescaled]
        rescales = dict(zip(positions, self.rescales, strict=True))
        return tuple(
            Contribution(value, rescales.get(position))
            for position, value in enumerate(self.values)
        )

    def verify_(self) -> None:
        positions = [position.value.data for position in self.rescaled]
        if len(positions) != len(self.rescales) or positions != sorted(
            {*positions} & {*range(len(self.values))}
        ):
            raise VerifyException(
                f"'itgraph.next' op: rescaled positions {positions} do not fit "
                f"{counted(len(self.values), 'value')} and "
                f"{counted(len(self.rescales), 'rescale')}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> NextOp:
        def contribution() -> Contribution:
            value = parse_tensor(parser)
            if parser.parse_optional_keyword("rescale") is None:
                return Contribution(value)
            return Contribution(value, parse_tensor(parser))

        return cls(
            parser.parse_comma_separated_list(parser.Delimiter.NONE, contribution)
        )

    def print(self, printer: Printer) -> None:
        def contribution(given: Contribution) -> None:
            printer.print_ssa_value(given.value)
            if given.rescale is not None:
                printer.print_string(" rescale ")
                printer.print_ssa_value(given.rescale)

        printer.print_string(" ")
        printer.print_list(self.contributions, contribution)
