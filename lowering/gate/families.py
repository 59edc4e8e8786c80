"""
Adversarial inputs for any graph, as families drawn from its input types.

Some families exist for each graph with float inputs, others where there is something
for them: exponentials, inputs that are added to an exponent, masks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cleave.dialects.algebra.dtypes import dtype_name
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import is_float
from cleave.dialects.tensor import TensorType
from cleave.lowering.gate.executors import Array, Executor, Sizes
from cleave.lowering.gate.exponents import added_inputs, exponents_graph
from cleave.lowering.gate.rule import format_of
from cleave.lowering.numpy_algebra import evaluate_dims

Inputs: TypeAlias = list[Array]

AMPLITUDES = (1, 3, 6, 30, 300)
LARGE_MEAN = 293.25
"""Not close to a power of two, whose squares float32 would sum without an error."""
SPREADS = {"float16": 0.25, "bfloat16": 2.0, "float32": 2.0**-6, "float64": 2.0**-20}
"""Steps around the large mean that each type can represent."""
TINY = {"float16": 2.0**-12}
"""What numbers are multiplied by to be tiny: in float16 some become subnormal."""
TINY_ELSEWHERE = 2.0**-40
LOW_LOGIT = -5e4
RELATIVE_SPREAD = 2.0**-8
"""Of inputs that make all logits low: what the coarsest type just represents."""


@dataclass(frozen=True)
class Family:
    """
    Inputs of one kind; `draw` gives them in the types that the graph declares, or None
    if it has none of this kind.
    """

    name: str
    draw: Callable[[], Inputs | None]


@dataclass(frozen=True)
class Families:
    """
    The families of a graph on some sizes.

    `plain` is the graph without shifts of its exponents (`drop-shifts`), so that an
    exponent is a logit.
    """

    plain: GraphOp
    sizes: Sizes
    executor: Executor
    seed: int = 0

    def __iter__(self) -> Iterator[Family]:
        if not any(map(self._is_float, self._positions)):
            yield Family("integers and masks", self._base)
            return
        for amplitude in AMPLITUDES:
            yield Family(f"amplitude {amplitude}", lambda a=amplitude: self._scaled(a))
        yield Family("tiny values", self._tiny)
        for position in filter(self._is_float, self._positions):
            name = self._name(position)
            yield Family(
                f"large mean of {name}", lambda p=position: self._large_mean(p, 1)
            )
            yield Family(
                f"equal elements of {name}", lambda p=position: self._large_mean(p, 0)
            )
        yield from self._of_exponents()
        for position, type_ in enumerate(self.plain.input_types):
            if dtype_name(type_.element_type) == "bool" and type_.rank:
                yield from self._of_mask(position)

    # Bases

    @property
    def _positions(self) -> range:
        return range(len(self.plain.inputs))

    def _is_float(self, position: int) -> bool:
        return is_float(self.plain.input_types[position].element_type)

    def _name(self, position: int) -> str:
        return f"%{self.plain.inputs[position].name_hint or position}"

    def _typed(self, arrays: Sequence[Array]) -> Inputs:
        return [
            self.executor.typed(array, type_.element_type)
            for array, type_ in zip(arrays, self.plain.input_types, strict=True)
        ]

    def _base(self) -> Inputs:
        """Normally distributed numbers, masks that hide a quarter, small integers."""
        return [self._drawn(*each) for each in enumerate(self.plain.input_types)]

    def _drawn(self, position: int, type_: TensorType) -> Array:
        shape = evaluate_dims(type_.dims, self.sizes)
        seed = self.seed + position
        if is_float(type_.element_type):
            return self.executor.normal(shape, seed)
        if dtype_name(type_.element_type) == "bool":
            return self.executor.integers(shape, 4, seed) > 0
        return self.executor.integers(shape, 8, seed)

    # For every graph

    def _scaled(self, factor: float) -> Inputs:
        base = self._base()
        for position in filter(self._is_float, self._positions):
            base[position] = base[position] * factor
        return self._typed(base)

    def _tiny(self) -> Inputs:
        base = self._base()
        for position in filter(self._is_float, self._positions):
            element = self.plain.input_types[position].element_type
            factor = TINY.get(dtype_name(element), TINY_ELSEWHERE)
            base[position] = base[position] * factor
        return self._typed(base)

    def _large_mean(self, position: int, spread: int) -> Inputs:
        """
        The numbers of one input close to a large one, or all equal to it. Along the
        last dim they come in pairs around it, so that their mean is represented exactly
        and eager mode is not the worse for it.
        """
        base = self._base()
        element = self.plain.input_types[position].element_type
        step = SPREADS[dtype_name(element)] * spread
        base[position] = LARGE_MEAN + step * self._paired(base[position])
        return self._typed(base)

    def _paired(self, normal: Array) -> Array:
        steps = self.executor.np.round(normal * 1.5)
        if steps.ndim:
            even = steps.shape[-1] // 2 * 2
            steps[..., 1:even:2] = -steps[..., 0:even:2]
            steps[..., even:] = 0.0
        return steps

    # For graphs with exponentials

    def _of_exponents(self) -> Iterator[Family]:
        exponents = exponents_graph(self.plain)
        if exponents is None:
            return
        yield Family(f"logits near {LOW_LOGIT:g}", lambda: self._low_logits(exponents))
        base = self._typed(self._base())
        for position in added_inputs(exponents, self.executor, base, self.sizes):
            name = self._name(position)
            for kind, seen in self._patterns(position):
                yield Family(
                    f"{name} infinite, {kind}",
                    lambda p=position, s=seen: self._hidden(p, s()),
                )

    def _low_logits(self, exponents: GraphOp) -> Inputs | None:
        """
        Almost equal numbers for each input, of such signs and of such a size that the
        exponents are as low as wanted. A size is found by how exponents grow with it.
        """
        count = sum(map(self._is_float, self._positions))
        for signs in range(1 << count):
            size = self._size_for(exponents, signs)
            if size is not None:
                return self._almost_equal(size, signs)
        return None

    def _size_for(self, exponents: GraphOp, signs: int) -> float | None:
        """None where none of the inputs' types goes that far: norms ignore a scale."""
        types = [self.plain.input_types[i].element_type for i in self._positions]
        largest = min(format_of(each).largest for each in types if is_float(each))
        size = 1.0
        for _ in range(3):
            logit = self._typical_exponent(exponents, size, signs)
            if logit is None or logit >= 0:
                return None
            if abs(logit / LOW_LOGIT - 1) < 0.05:
                return size
            larger = self._typical_exponent(exponents, 2 * size, signs)
            if larger is None or larger >= logit:
                return None
            power = math.log2(larger / logit)
            doublings = math.log2(LOW_LOGIT / logit)
            if not power or doublings > power * math.log2(largest / size):
                return None
            size *= 2.0 ** (doublings / power)
        return None

    def _typical_exponent(
        self, exponents: GraphOp, size: float, signs: int
    ) -> float | None:
        inputs = self._almost_equal(size, signs)
        results = self.executor.execute(exponents, inputs, self.sizes, "float64")
        logits = results[0].reshape(-1)
        finite = logits[self.executor.np.isfinite(logits)]
        return None if 0 in finite.shape else float(finite.mean())

    def _almost_equal(self, size: float, signs: int) -> Inputs:
        base = self._base()
        floats = filter(self._is_float, self._positions)
        for number, position in enumerate(floats):
            sign = -1.0 if signs >> number & 1 else 1.0
            near_one = 1.0 + RELATIVE_SPREAD * base[position]
            base[position] = sign * size * near_one
        return self._typed(base)

    # For graphs with masks

    def _hidden(self, position: int, seen: Array) -> Inputs:
        base = self._base()
        infinite = -float("inf")
        base[position] = self.executor.np.where(seen, base[position], infinite)
        return self._typed(base)

    def _of_mask(self, position: int) -> Iterator[Family]:
        for kind, seen in self._patterns(position):
            yield Family(
                f"mask {self._name(position)}, {kind}",
                lambda p=position, s=seen: self._masked(p, s()),
            )

    def _masked(self, position: int, seen: Array) -> Inputs:
        base = self._base()
        base[position] = seen
        return self._typed(base)

    def _patterns(self, position: int) -> Iterator[tuple[str, Callable[[], Array]]]:
        """What is seen of an input, along its last dim."""
        dims = self.plain.input_types[position].dims
        shape = evaluate_dims(dims, self.sizes)
        drawn = self.executor.integers
        seed = self.seed + len(self._positions) + position
        row = (*shape[:-1], 1)
        columns = self.executor.positions(shape[-1])

        def half() -> Array:
            return drawn(shape, 2, seed) > 0

        def one_key() -> Array:
            return columns == drawn(row, max(1, shape[-1]), seed)

        def some_rows() -> Array:
            return half() & (drawn(row, 2, seed + 1) > 0)

        yield "half of it hidden", half
        yield "one key a row", one_key
        yield "some rows hidden", some_rows
