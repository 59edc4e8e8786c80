"""
The closure: all values that can be part of the target.

Values are taken from a work list and combined with each other by every operator. What
abstract classes and live dims rule out is never evaluated; what remains is evaluated on
fingerprints and interned. Every operator adds a factor to the classes of its operands
and the target has finitely many, so this ends by itself: no bound on the size of graphs
has to be chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

from cleave.dialects.algebra.operator import Operator
from cleave.passes.superoptimize.abstract import Abstraction, Class, ClassTooLarge
from cleave.passes.superoptimize.contexts import Contexts
from cleave.passes.superoptimize.graph import (
    Dims,
    Generated,
    Input,
    Leaf,
    Number,
    SearchGraph,
    Source,
    Step,
    view_leaf,
)
from cleave.passes.superoptimize.limits import Clock, Limits
from cleave.passes.superoptimize.moves import Move, Operand, moves_of
from cleave.passes.superoptimize.plans import Plan, Planner
from cleave.passes.superoptimize.sampling import Sample
from cleave.passes.superoptimize.semantics import (
    Shape,
    Undefined,
)
from cleave.passes.superoptimize.space import Producer, Space, TypeId
from cleave.passes.superoptimize.splitting import split_forms


class Closure:
    """
    The closure of a graph's leaves under operators.

    `run` fills `space`. If a limit stops it, `stopped_by` names the limit and the space
    holds what was found so far, the graph's own values at least.
    """

    def __init__(
        self,
        graph: SearchGraph,
        dims: Dims,
        sample: Sample,
        *,
        companions: Sequence[type[Operator]],
        distribute: bool,
    ) -> None:
        """`companions` are operators to use beside the graph's own."""
        self.graph = graph
        self.dims = dims
        self.sample = sample
        self.stopped_by: str | None = None
        self.abstraction = Abstraction(dims.primes, distribute=distribute)
        self.contexts = Contexts(self.abstraction)
        self.space = Space(max(len(shape) for shape in graph.shapes()))
        self.evaluated = 0
        """The number of operators that were evaluated."""
        self.originals: dict[Producer, int] = {}
        """The producers that make up the graph itself, in order, and their values."""
        self._produced: dict[Producer, int | None] = {}
        self._by_class: dict[Class, dict[TypeId, list[int]]] = {}
        leaves = [self._add_leaf(leaf) for leaf in graph.leaves]
        self.outputs = self._add_graph([leaf.value for leaf in leaves])
        for leaf in graph.extra_leaves:
            self._add_leaf(leaf)
            self._add_split_leaves(leaf)
        split_leaves = [self._add_split_leaves(leaf) for leaf in graph.leaves]
        forms = {
            position: (leaf, *parts)
            for position, (leaf, parts) in enumerate(
                zip(leaves, split_leaves, strict=True)
            )
        }
        moves = moves_of(graph, companions, forms)
        self._planner = Planner(
            self.space, self.abstraction, self.contexts, dims, moves
        )
        self.counts = self._planner.counts

    # The beginning: the leaves, and the graph itself

    def _source_class(self, source: Source) -> Class:
        match source:
            case Input(position=position):
                return self.abstraction.leaf("input", position)
            case Number(value=value):
                return self.abstraction.number(value)
            case Generated():
                return self.abstraction.leaf("generated", source)

    def _add_leaf(self, leaf: Leaf) -> Operand:
        cls = self._source_class(leaf.source)
        field, sources = self.sample.field, self.sample.sources
        type_ = self.space.type_of(leaf.shape, leaf.element)
        fingerprint = view_leaf(leaf, field, sources[leaf.source])
        value = self.space.intern(type_, fingerprint, leaf)
        self.space.add_node(cls, value)
        return Operand(value, type_, cls)

    def _add_split_leaves(self, leaf: Leaf) -> list[Operand]:
        """The leaf with one of its dims split, for every dim that may be."""
        forms = split_forms(leaf, self.dims, self.space.rank)
        return [self._add_leaf(form) for form in forms]

    def _add_graph(self, leaves: Sequence[int]) -> list[int]:
        """
        Add the graph's own values, and make contexts such that none of them is pruned.
        Returns the values of its outputs.
        """
        graph, space = self.graph, self.space
        sources = {
            leaf.source: self._source_class(leaf.source) for leaf in graph.leaves
        }
        classes = graph.evaluate(self.abstraction, sources)
        unshifted = graph.evaluate(self.abstraction.ignoring_shifts(), sources)
        shapes, elements = graph.shapes(), graph.elements()
        dims = [self.abstraction.dim_mask(shape) for shape in shapes]
        for output in graph.outputs:
            self.contexts.add(classes[output], dims[output])
            self.contexts.add(unshifted[output], dims[output])
        for value in reversed(range(len(classes))):
            if not self.contexts.admits(classes[value], dims[value]):
                self.contexts.add(classes[value], dims[value])
        values = list(leaves)
        for number, node in enumerate(graph.nodes, start=len(leaves)):
            producer = self._originally(
                node.step,
                tuple(values[v] for v in node.operands),
                node.shapes,
                space.type_of(shapes[number], elements[number]),
            )
            value = self._produced[producer]
            assert value is not None
            self.originals[producer] = value
            space.add_node(classes[number], value)
            values.append(value)
        return [values[output] for output in graph.outputs]

    def _originally(
        self,
        step: Step,
        operands: tuple[int, ...],
        shapes: tuple[Shape, ...],
        type_: TypeId,
    ) -> Producer:
        """
        A producer that gives what the step gives on operands of the graph's shapes.

        In the space these may have more leading dims of size 1, so that parameters that
        count dims are others.
        """
        space = self.space
        fingerprint = step.interpret(
            self.sample.field,
            [
                space.values[operand].fingerprint.with_rank(len(shape))
                for operand, shape in zip(operands, shapes, strict=True)
            ],
            shapes,
        )
        wanted = space.intern(type_, fingerprint)
        types = tuple(space.values[operand].type for operand in operands)
        aligned = tuple(space.shapes[operand] for operand in types)
        if aligned != shapes and not step.operator.IS_VIEW:
            for params in step.operator.search_params(aligned, [dict(step.params)]):
                producer = Producer(
                    space.step_of(Step.of(step.operator, params)), operands
                )
                if self._evaluate(producer, type_) == wanted:
                    return producer
        producer = Producer(space.step_of(step), operands)
        if aligned != shapes:
            space.seen_as[producer.step, types] = shapes
        self._evaluate(producer, type_)
        return producer

    # The work list

    def run(self, limits: Limits, clock: Clock) -> None:
        space = self.space
        position = 0
        while position < len(space.nodes):
            if len(space.values) > limits.values:
                self.stopped_by = f"values={limits.values}"
            elif clock.expired:
                self.stopped_by = f"seconds={limits.seconds:.3g}"
            if self.stopped_by is not None:
                return
            try:
                self._combine(*space.nodes[position], clock)
            except ClassTooLarge as error:
                self.stopped_by = str(error)
            position += 1

    def _combine(self, cls: Class, value: int, clock: Clock) -> None:
        """Apply every move to a value, with those that came before it and itself."""
        type_ = self.space.values[value].type
        kind = (type_, cls)
        for move in self._planner.unary:
            for plan in self._planner.plans(move, (kind,)):
                self._apply(plan, move, (value,))
        self._by_class.setdefault(cls, {}).setdefault(type_, []).append(value)
        for other_cls, by_type in self._by_class.items():
            forwards = self._planner.moves(cls, other_cls)
            backwards = self._planner.moves(other_cls, cls)
            if not forwards and not backwards:
                continue
            if clock.expired:
                return  # and the next value finds out as well
            for other_type, others in by_type.items():
                other_kind = (other_type, other_cls)
                for move in forwards:
                    for plan in self._planner.plans(move, (kind, other_kind)):
                        for other in others:
                            self._apply(plan, move, (value, other))
                for move in backwards:
                    if move.commutative:
                        continue
                    for plan in self._planner.plans(move, (other_kind, kind)):
                        for other in others:
                            if other != value or other_cls != cls:
                                self._apply(plan, move, (other, value))

    def _apply(self, plan: Plan, move: Move, open_operands: tuple[int, ...]) -> None:
        operands = move.fill(open_operands, lambda fixed: fixed.value)
        if move.commutative:
            operands = tuple(sorted(operands))
        producer = Producer(plan.step, operands)
        type_, cls = plan.result
        if producer in self._produced:
            value = self._produced[producer]
        else:
            value = self._evaluate(producer, type_)
        if value is not None:
            self.space.add_node(cls, value)

    def _evaluate(self, producer: Producer, type_: TypeId) -> int | None:
        """The value that a producer gives, of a known type; None if undefined."""
        self.evaluated += 1
        values = self.space.values
        shapes = self.space.operand_shapes(producer)
        operands = [
            values[operand].fingerprint.with_rank(len(shape))
            for operand, shape in zip(producer.operands, shapes, strict=True)
        ]
        step = self.space.steps[producer.step]
        try:
            fingerprint = step.interpret(self.sample.field, operands, shapes)
        except Undefined:
            self._produced[producer] = None
            return None
        value = self.space.intern(type_, fingerprint)
        self._produced[producer] = value
        if value not in producer.operands and values[value].leaf is None:
            values[value].producers[producer] = None
        return value
