"""
What the class of each operator says is consistent: its NumPy meaning with a formula,
its TileLang text with its meaning, its tensor expression with its meaning on tiles.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, bf16, f32

from cleave.dialects.algebra import OPERATORS, contraction, elementwise, views
from cleave.dialects.algebra.elementwise import Elementwise
from cleave.dialects.algebra.generators import Generator
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.algebra.operator import Operator
from cleave.dialects.itgraph.tmap import TMap
from cleave.dialects.tensor import TensorType
from cleave.lowering.numpy_algebra import execute_graph
from cleave.passes.scheduling.propagation import full_ranges, operand_tmaps

ROOT = Path(__file__).parents[2]

FORMULAS = {
    "exp": "exp(a)",
    "exp2": "2**a",
    "log": "log(a)",
    "log2": "log(a) / log(2)",
    "sqrt": "sqrt(a)",
    "rsqrt": "1 / sqrt(a)",
    "square": "a * a",
    "neg": "-a",
    "abs": "fabs(a)",
    "relu": "a if a > 0 else 0",
    "tanh": "tanh(a)",
    "sigmoid": "1 / (1 + exp(-a))",
    "silu": "a / (1 + exp(-a))",
    "erf": "erf(a)",
    "softplus": "log(1 + exp(a))",
    "gelu": "a * (1 + erf(a / sqrt(2))) / 2",
    "add": "a + b",
    "sub": "a - b",
    "mul": "a * b",
    "div": "a / b",
    "max": "a if a > b else b",
    "min": "a if a < b else b",
    "select": "b if a else c",
    "cast": "a",
}
"""Of elementwise operators, in the words of `math`."""

POSITIVE = {"log", "log2", "sqrt", "rsqrt"}


def unchanged(x: Any, dtype: str) -> Any:
    return x


def infinity(dtype: str) -> float:
    return np.inf


def inverse_root(x: Any) -> Any:
    return 1 / np.sqrt(x)


TILELANG = {
    "exp2": np.exp2,
    "T": SimpleNamespace(
        **{name: getattr(np, name) for name in ("sqrt", "log", "log2", "tanh", "abs")},
        rsqrt=inverse_root,
        erf=np.frompyfunc(math.erf, 1, 1),
        max=np.maximum,
        min=np.minimum,
        cast=unchanged,
        infinity=infinity,
        Select=np.where,
        And=np.logical_and,
        Or=np.logical_or,
    ),
}
"""What the text of one element may use, in NumPy."""


def elementwise_operators() -> list[type[Elementwise]]:
    return [op for op in OPERATORS if issubclass(op, Elementwise)]


def short_name(op: type[Operator]) -> str:
    return op.name.removeprefix("algebra.")


def random_operands(op: type[Elementwise]) -> list[Any]:
    rng = np.random.default_rng(1)
    operands: list[Any] = [rng.standard_normal(40) * 3 for _ in range(op.ARITY)]
    if short_name(op) in POSITIVE:
        operands[0] = np.abs(operands[0])
    if op is elementwise.Select:
        operands[0] = operands[0] > 0
    return operands


@pytest.mark.parametrize("op", elementwise_operators(), ids=short_name)
def test_meaning_and_text_of_an_elementwise_operator(op: type[Elementwise]) -> None:
    operands = random_operands(op)
    params = {"element_type": f32} if op is elementwise.Cast else {}
    names = ["a", "b", "c"][: op.ARITY]
    formula = FORMULAS[short_name(op)]
    expected = [
        eval(formula, {**vars(math), **dict(zip(names, element, strict=True))})
        for element in zip(*operands, strict=True)
    ]
    meant = op.numpy(np, operands, params, (40,))
    tolerance = 1e-6 if op is elementwise.Cast else 1e-13
    np.testing.assert_allclose(meant, expected, rtol=tolerance)
    scalars = [np.asarray(operand[0]) for operand in operands]
    (scalar,) = np.broadcast_arrays(op.numpy(np, scalars, params, ()))
    assert float(scalar) == float(meant[0])

    text = op.emit(names, ["i"], params)
    written = eval(text, {**TILELANG, **dict(zip(names, operands, strict=True))})
    np.testing.assert_allclose(
        np.asarray(written, np.float64), expected, rtol=1e-13, atol=1e-300
    )


def test_every_elementwise_operator_has_a_formula() -> None:
    assert {short_name(op) for op in elementwise_operators()} == FORMULAS.keys()


def test_every_operator_is_read_and_printed() -> None:
    text = (ROOT / "test/filecheck/dialects/algebra/ops.mlir").read_text()
    assert [op.name for op in OPERATORS if f" = {op.name} " not in text] == []


@pytest.mark.parametrize("x", [-1e4, -700.0, 700.0, 1e4])
@pytest.mark.parametrize("op", [elementwise.Sigmoid, elementwise.Silu])
def test_sigmoid_does_not_overflow(op: type[Elementwise], x: float) -> None:
    with np.errstate(over="raise", invalid="raise"):
        value = op.numpy(np, [np.float64(x)], {}, ())
    large = x if op is elementwise.Silu else 1.0
    assert value == pytest.approx(large if x > 0 else 0.0, abs=1e-200)


@dataclass(frozen=True)
class Sample:
    """An operator on shapes, and a tile of its result."""

    op: type[Operator]
    shapes: Sequence[tuple[int, ...]]
    offsets: tuple[int, ...]
    tile: tuple[int, ...]
    params: dict[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        words = [
            short_name(self.op),
            *map(str, self.shapes),
            *map(str, self.params.items()),
        ]
        return "-".join(words)


def flags(*names: str) -> dict[str, bool]:
    return dict.fromkeys(names, True)


SAMPLES = [
    Sample(contraction.Matmul, [(7, 5), (5, 9)], (2, 3), (4, 2)),
    Sample(contraction.Matmul, [(2, 7, 5), (5, 9)], (1, 2, 0), (1, 4, 9)),
    Sample(contraction.Matmul, [(1, 7, 5), (3, 5, 9)], (1, 0, 3), (2, 7, 2)),
    Sample(
        contraction.Matmul,
        [(3, 1, 5, 7), (1, 4, 9, 5)],
        (1, 2, 2, 3),
        (2, 1, 4, 2),
        flags("transpose_lhs", "transpose_rhs"),
    ),
    *(
        Sample(op, [(3, 6, 5)], offsets, tile, {"dim": dim})
        for op in (contraction.ReduceSum, contraction.ReduceMax, contraction.Reference)
        for dim, offsets, tile in (
            (0, (0, 2, 1), (1, 3, 4)),
            (1, (1, 0, 1), (2, 1, 4)),
            (2, (1, 2, 0), (2, 3, 1)),
        )
    ),
    Sample(elementwise.Exp, [(3, 6)], (1, 2), (2, 3)),
    Sample(elementwise.Sub, [(3, 6), (3, 1)], (1, 2), (2, 3)),
    Sample(elementwise.Add, [(6,), (4, 3, 1)], (1, 1, 2), (3, 2, 4)),
    Sample(elementwise.Mul, [(), (3, 6)], (1, 2), (2, 3)),
    Sample(
        views.Split, [(4, 6, 5)], (2, 1, 1, 0), (1, 3, 1, 5), {"dim": 1, "count": 3}
    ),
    Sample(views.Split, [(6, 5)], (1, 1, 2), (1, 2, 3), {"dim": 0, "count": 2}),
    Sample(views.Reshape, [(6, 1, 5)], (0, 2, 1), (1, 3, 2), {"shape": (1, 6, 5)}),
    Sample(
        views.Reshape, [(6, 5)], (2, 0, 1, 0), (3, 1, 2, 1), {"shape": (6, 1, 5, 1)}
    ),
    Sample(
        views.Transpose,
        [(3, 6, 5)],
        (1, 1, 2),
        (3, 2, 4),
        {"permutation": (2, 0, 1)},
    ),
]


GRAPH = """
algebra.graph @g (%x: !algebra.tensor<[3], f32>) -> (!algebra.tensor<[3], f32>) {{
  {}
  algebra.return %o
}}
"""


def part(array: Any, tmap: TMap) -> Any:
    dims = zip(tmap.offsets, tmap.tile, strict=True)
    return array[tuple(slice(offset, offset + size) for offset, size in dims)]


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_a_tile_comes_from_the_tiles_that_the_expression_names(sample: Sample) -> None:
    op, params = sample.op, sample.params
    rng = np.random.default_rng(2)
    operands = [rng.standard_normal(shape) for shape in sample.shapes]
    shape = op.infer_shape(sample.shapes, params)
    whole = op.numpy(np, operands, params, shape)
    assert whole.shape == shape

    expression = op.tensor_expression(sample.shapes, params)
    result = TMap(sample.offsets, sample.tile)
    tmaps = operand_tmaps(expression, result, full_ranges(expression))
    tiles = [part(array, tmap) for array, tmap in zip(operands, tmaps, strict=True)]
    if op is views.Split or op is views.Reshape:
        # What is left of them on a tile is another shape of it.
        computed = tiles[0].reshape(sample.tile)
    else:
        computed = op.numpy(np, tiles, params, sample.tile)
    np.testing.assert_allclose(computed, part(whole, result), rtol=1e-13)


@pytest.mark.parametrize(
    "text",
    [
        "algebra.causal diagonal 2 : !algebra.tensor<[6, 7], i1>",
        "algebra.window diagonal 1 size 3 : !algebra.tensor<[6, 7], i1>",
        "algebra.iota dim 0 : !algebra.tensor<[6, 7], i32>",
        "algebra.iota dim 1 start 5 : !algebra.tensor<[6, 7], i32>",
        "algebra.constant -2.5 : !algebra.tensor<[6, 7], f32>",
    ],
    ids=lambda text: text.partition(" :")[0].removeprefix("algebra."),
)
def test_a_generator_moves_with_its_tile(
    text: str, parse_ir: Callable[[str], ModuleOp]
) -> None:
    module = parse_ir(GRAPH.format(f"%o = {text}"))
    op = next(op for op in module.walk() if isinstance(op, Generator))
    whole = op.numpy(np, [], op.params, (6, 7))
    tile_op = op.at_tile([], op.result_type.with_dims((3, 4)), (2, 1))
    tile = tile_op.numpy(np, [], tile_op.params, (3, 4))
    np.testing.assert_array_equal(tile, whole[2:5, 1:5])
    written = [
        [eval(op.emit([], [str(i), str(j)], op.params), TILELANG) for j in range(7)]
        for i in range(6)
    ]
    np.testing.assert_array_equal(np.array(written, whole.dtype), whole)


def test_casts_round_to_their_type_in_rounded_execution_only(
    parse_ir: Callable[[str], ModuleOp],
) -> None:
    module = parse_ir(GRAPH.format("%n = algebra.cast %x to bf16 %o = algebra.neg %n"))
    graph = module.body.block.first_op
    assert isinstance(graph, GraphOp)
    x = np.array([1 + 2**-8 + 2**-10, 2**-20, 3.0])
    (exact,) = execute_graph(graph, [x])
    (rounded,) = execute_graph(graph, [x], precision="rounded")
    assert exact.tolist() == (-x).tolist()
    assert rounded.tolist() == [-(1 + 2**-7), -(2**-20), -3.0]
    assert rounded.dtype == np.float32
    # In the type: elementwise operators compute in f32 whatever their operands are.
    assert elementwise.Neg.infer_type([TensorType([3], bf16)], {}).element_type == f32


@pytest.mark.parametrize(("first", "last"), [("%x", 1100), ("%c", 60)])
def test_deep_graphs_of_products_are_verified(
    first: str, last: int, parse_ir: Callable[[str], ModuleOp]
) -> None:
    """Neither by recursion, nor once for each path to a number."""
    lines = [f"%p0 = algebra.mul {first}, {first}"]
    lines += [f"%p{n + 1} = algebra.mul %p{n}, %p{n}" for n in range(last)]
    module = parse_ir(
        f"""
        algebra.graph @deep [M] (%x: !algebra.tensor<[M], f32>)
            -> (!algebra.tensor<[M], f32>) {{
          %c = algebra.constant 1.0 : !algebra.tensor<[], f32>
          {chr(10).join(lines)}
          %o = algebra.mul %x, %p{last}
          algebra.return %o
        }}
        """
    )
    module.verify()
