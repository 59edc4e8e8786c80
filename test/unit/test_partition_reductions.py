"""Cuts of graphs at reductions: their pieces compute together what the graph does."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, bf16, f16, f32
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.numpy_algebra import evaluate_dims, execute_graph
from cleave.lowering.numpy_pieces import execute_pieces
from cleave.passes.insert_casts import insert_casts
from cleave.passes.partition_reductions import PartitionReductionsPass
from cleave.passes.partitioning.cutting import cut
from cleave.passes.partitioning.piece import piece_of
from cleave.passes.partitioning.reduction_cuts import ReductionCut, ReductionCuts

ParseIR = Callable[[str], ModuleOp]

ROOT = Path(__file__).parents[2]
FILES = sorted(
    file
    for folder in ("examples", "test/graphs")
    for file in (ROOT / folder).glob("*.mlir")
    if file.stem != "split_k"  # cut at its split
)


def loaded(parse_ir: ParseIR, name: str) -> GraphOp:
    file = next(file for file in FILES if file.stem == name)
    return graph_in(parse_ir, file.read_text())


def graph_in(parse_ir: ParseIR, text: str) -> GraphOp:
    return cast(GraphOp, parse_ir(text).body.block.first_op)


def sizes_of(graph: GraphOp) -> dict[str, int]:
    """Sizes that differ, with some that are odd."""
    return {name: 3 + 2 * n + n % 2 for n, name in enumerate(graph.symbol_names)}


def random_inputs(graph: GraphOp, sizes: dict[str, int]) -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = [evaluate_dims(type_.dims, sizes) for type_ in graph.input_types]
    return [rng.standard_normal(shape) * 0.3 for shape in shapes]


def sequences(module: ModuleOp) -> Iterator[tuple[str, list[GraphOp]]]:
    """The pieces of each cut in a module, by the name of the whole."""
    found: dict[str, list[GraphOp]] = {}
    for op in module.ops:
        if isinstance(op, GraphOp) and (piece := piece_of(op)) is not None:
            found.setdefault(piece.of, []).append(op)
    yield from found.items()


def kept(found: ReductionCut) -> list[list[str]]:
    """The names of the values that each piece computes for others, or as outputs."""
    return [
        [str(v.name_hint) for v in (*draft.passed_on, *draft.outputs.values())]
        for draft in found.drafts
    ]


def value_of(graph: GraphOp, name: str) -> SSAValue:
    results = (op.results[0] for op in graph.operators)
    (value,) = (result for result in results if result.name_hint == name)
    return value


@pytest.mark.parametrize(
    "file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_pieces_together_are_the_graph(file: Path, parse_ir: ParseIR) -> None:
    module = parse_ir(file.read_text())
    PartitionReductionsPass(limit=6).apply(Context(), module)
    module.verify()
    graph = cast(GraphOp, module.body.block.first_op)
    sizes = sizes_of(graph)
    inputs = random_inputs(graph, sizes)
    expected = execute_graph(graph, inputs, sizes)
    whole = graph.clone()
    insert_casts(whole)
    rounded = execute_graph(whole, inputs, sizes, "rounded")
    for _, pieces in sequences(module):
        found = execute_pieces(pieces, inputs, sizes)
        for result, array in zip(found, expected, strict=True):
            np.testing.assert_allclose(result, array, rtol=1e-12, atol=1e-12)
        for piece in pieces:
            insert_casts(piece)
            piece.verify()
        # Interfaces round nothing that the graph does not round.
        found = execute_pieces(pieces, inputs, sizes, "rounded")
        for result, array in zip(found, rounded, strict=True):
            np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize(
    ("name", "first", "operator_groups"),
    [
        ("rmsnorm_matmul", [["rms"], ["o"]], [["normal"], ["o"]]),
        ("rmsnorm_matmul_scaled", [["rms"], ["o"]], [["rms"], ["y"], ["o"]]),
        ("gated_mlp", [["h"], ["o"]], [["gate"], ["up"], ["h"], ["o"]]),
        ("lora", [["xa"], ["o"]], [["xw"], ["xa"], ["xab"], ["o"]]),
        ("mha", [["p"], ["o"]], [["s"], ["n"], ["o"]]),
        ("attention_softmax", [["s"], ["o"]], [["qk"], ["n"], ["o"]]),
        ("layernorm_matmul", [["mean"], ["o"]], [["xn"], ["o"]]),
        ("attention_qk_norm", [["qroot"], ["o"]], None),
        ("two_outputs", [["p"], ["o", "lse"]], None),
        (
            "attention_projection",
            [["rows"], ["y"]],
            [["s"], ["p", "l"], ["a"], ["rows"], ["y"]],
        ),
        ("column_norm", [["c"], ["o"]], [["c"], ["o"]]),
        ("softmax", [["m"], ["o"]], [["o"]]),
    ],
)
def test_the_cheapest_cut_and_the_operator_groups(
    name: str,
    first: list[list[str]],
    operator_groups: list[list[str]] | None,
    parse_ir: ParseIR,
) -> None:
    cuts = ReductionCuts(loaded(parse_ir, name))
    assert kept(next(cuts.by_traffic())) == first
    if operator_groups is not None:
        assert kept(cuts.unfused()) == operator_groups


def test_cuts_come_by_their_traffic_and_each_once(parse_ir: ParseIR) -> None:
    cuts = ReductionCuts(loaded(parse_ir, "attention_qk_norm"))
    found = list(islice(cuts.by_traffic(), 12))
    traffic = [each.traffic for each in found]
    assert traffic == sorted(traffic)
    pieces = [sorted(map(tuple, kept(each))) for each in found]
    assert all(pieces.count(each) == 1 for each in pieces)
    # Queries and keys have rows of their own, so they are normalized by two kernels.
    assert [["qn"], ["kn"], ["o"]] in [kept(each) for each in found]
    limit = traffic[4]
    assert len(list(cuts.by_traffic(limit))) == sum(t <= limit for t in traffic)


def test_what_fits_into_no_threadblock_is_left_out(parse_ir: ParseIR) -> None:
    # A softmax over 4096 columns behind a matmul would need 64 rows of them at once.
    graph = loaded(parse_ir, "mha")
    assert [["n"], ["o"]] not in map(kept, ReductionCuts(graph).by_traffic())
    small = str(graph).replace("L = 4096", "L = 256")
    assert [["n"], ["o"]] in map(
        kept, ReductionCuts(graph_in(parse_ir, small)).by_traffic()
    )


class TestInterfaces:
    """The types in which values go from one piece to another."""

    @staticmethod
    def pieces(parse_ir: ParseIR, *lines: str, u: str = "f16") -> list[GraphOp]:
        """A matmul whose result `%t` is kept, and the lines that compute `%o`."""
        graph = graph_in(
            parse_ir,
            f"""
            algebra.graph @chain [M, K]
                (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, M], f16>,
                 %v: !algebra.tensor<[M, M], f32>, %u: !algebra.tensor<[M, M], {u}>)
                -> (!algebra.tensor<[M, M], f32>, !algebra.tensor<[M, M], f16>) {{
              %y = algebra.matmul %x, %w
              %t = algebra.tanh %y
              {chr(10).join(lines)}
              algebra.return %o, %t
            }}""",
        )
        graph.verify()
        return cut(graph, [[value_of(graph, "t")]], "chain")

    @staticmethod
    def passed_on(pieces: list[GraphOp]) -> list[Any]:
        first, second = pieces
        for piece in pieces:
            piece.verify()
            insert_casts(piece)
            piece.verify()
        assert all(
            operand.element_type in (f16, bf16) or "precision" in op.params
            for op in second.operators
            if op.ON_TENSOR_CORES
            for operand in op.operand_types
        )
        return [type_.element_type for type_ in first.output_types]

    def test_a_matmul_operand_is_rounded_once(self, parse_ir: ParseIR) -> None:
        pieces = self.pieces(
            parse_ir,
            "%z = algebra.transpose %t permutation [1, 0]",
            "%o = algebra.matmul %t, %z",
        )
        # It is an output of that type as well, so it is one tensor.
        assert self.passed_on(pieces) == [f16]
        assert "algebra.cast" not in str(pieces[1])
        assert cast(Any, piece_of(pieces[0])).results == (1,)

    def test_other_uses_keep_it_in_f32(self, parse_ir: ParseIR) -> None:
        pieces = self.pieces(
            parse_ir,
            "%p = algebra.matmul %t, %t transpose_rhs",
            "%o = algebra.add %p, %t",
        )
        # The cast is there already: that the inputs were f16 is not seen any more.
        assert "algebra.cast %t to f16" in str(pieces[1])
        assert self.passed_on(pieces) == [f32, f16]

    def test_matmuls_may_disagree(self, parse_ir: ParseIR) -> None:
        pieces = self.pieces(
            parse_ir,
            "%p = algebra.matmul %t, %x transpose_lhs",
            "%q = algebra.matmul %t, %u",
            "%r = algebra.reduce_sum %p dim 1",
            "%o = algebra.add %q, %r",
            u="bf16",
        )
        assert self.passed_on(pieces) == [f32, f16]

    def test_a_matmul_of_f32_gets_f32(self, parse_ir: ParseIR) -> None:
        pieces = self.pieces(parse_ir, "%o = algebra.matmul %t, %v precision tf32")
        assert self.passed_on(pieces) == [f32, f16]

    def test_an_operand_type_that_nothing_tells_is_refused(
        self, parse_ir: ParseIR
    ) -> None:
        with pytest.raises(
            PassFailedException, match="inputs of @chain are f16 and bf16"
        ):
            self.pieces(parse_ir, "%o = algebra.matmul %t, %t", u="bf16")


def test_an_unused_input_is_an_operand_of_the_last_piece(parse_ir: ParseIR) -> None:
    graph = graph_in(
        parse_ir,
        """
        algebra.graph @rows [M]
            (%x: !algebra.tensor<[M, M], f32>, %no: !algebra.tensor<[M], f32>)
            -> (!algebra.tensor<[M, M], f32>) {
          %m = algebra.reduce_max %x dim 1
          %o = algebra.sub %x, %m
          algebra.return %o
        }""",
    )
    first, second = cut(graph, [[value_of(graph, "m")]], "rows")
    assert [value.name_hint for value in first.inputs] == ["x"]
    assert [value.name_hint for value in second.inputs] == ["x", "no", "m"]


def test_steps_of_which_nothing_is_needed_are_no_pieces(parse_ir: ParseIR) -> None:
    graph = loaded(parse_ir, "rmsnorm_matmul")
    values = [value_of(graph, name) for name in ("count", "sum", "rms", "o")]
    count, total, rms, output = values
    pieces = cut(
        graph, [[graph.inputs[0], count], [total, rms], [total], [output]], "n"
    )
    assert [piece.graph_name for piece in pieces] == ["n_0", "n_1"]
    assert [len(piece.output_types) for piece in pieces] == [1, 1]
