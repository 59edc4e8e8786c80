"""The page of a report: pictures of graphs, loop nests, and the stages behind them."""

from collections.abc import Callable
from itertools import pairwise
from subprocess import CompletedProcess
from xml.etree import ElementTree

import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.hardware import load_hardware
from cleave.lowering.report_page.graph_picture import pictures, svg
from cleave.lowering.report_page.layered import layered
from cleave.lowering.report_page.loop_nest import loop_nest
from cleave.lowering.search.candidates import Candidates, find_candidates
from cleave.lowering.search.compiling import symbolized
from cleave.lowering.search.effort import EFFORTS, Ablation
from cleave.lowering.search.stages import PLAN, chosen_stages

SVG = "{http://www.w3.org/2000/svg}"


def found(graph: GraphOp, *, superoptimize: bool = False) -> Candidates:
    return find_candidates(
        graph,
        EFFORTS["quick"],
        load_hardware("h200"),
        Ablation(superoptimize=superoptimize),
        False,
        lambda _: None,
    )


def test_a_layout_has_no_overlaps_and_goes_down() -> None:
    sizes = [(60.0 + 7 * (n % 5), 30.0) for n in range(12)]
    edges = [(0, 3), (1, 3), (2, 4), (3, 5), (4, 5), (3, 6), (5, 7), (0, 7), (6, 8)]
    edges += [(7, 9), (8, 9), (2, 9), (9, 10), (10, 11), (1, 11)]
    layout = layered(sizes, edges)
    boxes = list(zip(layout.centers, sizes, strict=True))
    for number, (a, (width, height)) in enumerate(boxes):
        assert width / 2 <= a.x <= layout.width - width / 2
        assert height / 2 <= a.y <= layout.height - height / 2
        for b, (other, _) in boxes[:number]:
            apart = abs(a.x - b.x) >= (width + other) / 2 + 1
            assert apart or abs(a.y - b.y) > height
    for (source, target), path in zip(edges, layout.paths, strict=True):
        assert path[0].x == layout.centers[source].x
        assert path[-1].x == layout.centers[target].x
        assert all(a.y <= b.y for a, b in pairwise(path))
        assert path[0].y < path[-1].y


def test_an_edge_goes_around_nodes() -> None:
    layout = layered([(80.0, 30.0)] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    around = [point.x for point in layout.paths[3][1:-1]]
    assert around
    for center in layout.centers[1:3]:
        assert all(abs(x - center.x) >= 40 for x in around)


def test_a_picture_has_a_box_a_value(example_graph: Callable[..., GraphOp]) -> None:
    graph = example_graph("attention_softmax", H=2, M=64, L=64, D=64)
    root = ElementTree.fromstring(svg(graph))
    groups = root.findall(f"{SVG}g")
    operators = list(graph.operators)
    assert len(groups) == len(graph.inputs) + len(operators) + 1
    edges = sum(len(op.operands) for op in operators) + 1
    assert len(root.findall(f"{SVG}path")) == edges
    texts = [node.text for node in root.iter(f"{SVG}text")]
    assert "reduce_max dim 2" in texts
    assert "%p [H, M, L] f32" in texts
    assert {group.get("class") for group in groups} == {
        *("end", "product", "reduction", "elementwise", "view")
    }


def test_names_in_a_picture_are_escaped(example_graph: Callable[..., GraphOp]) -> None:
    graph = example_graph("matmul")
    graph.sym_name = StringAttr("<script>")
    for title, picture in pictures(graph, [graph, graph]).items():
        assert title.startswith("@<script>, ")
        root = ElementTree.fromstring(picture)
        assert root.findtext(f"{SVG}title") == "@<script>"
        assert not list(root.iter(f"{SVG}script"))


@pytest.mark.parametrize("name", ["attention_softmax", "rmsnorm_matmul"])
def test_the_stages_of_a_plan_parse_and_end_with_it(
    name: str,
    example_graph: Callable[..., GraphOp],
    cleave_opt: Callable[..., CompletedProcess[str]],
) -> None:
    """Also where a plan is of several kernels, or calls a library."""
    candidates = found(symbolized(example_graph(name)))
    assert any(len(plan.pieces) > 1 for plan in candidates.plans)
    assert any(plan.calls_library for plan in candidates.plans)
    for plan in candidates.plans:
        stages = chosen_stages(plan)
        for text in (*candidates.stages.values(), *stages.values()):
            done = cleave_opt(text)
            assert (done.returncode, done.stderr) == (0, "")
        assert stages[PLAN] == f"{plan.plan!s}\n"
        graphs = stages["chosen-graphs"].count("algebra.graph @")
        assert graphs == stages["schedule-loops"].count("itgraph.plan @")


def test_the_equal_graphs_are_a_stage(
    example_graph: Callable[..., GraphOp],
    cleave_opt: Callable[..., CompletedProcess[str]],
) -> None:
    graph = symbolized(example_graph("matmul_matmul"))
    stages = found(graph, superoptimize=True).stages
    assert list(stages) == ["drop-shifts", "equal-graphs"]
    assert stages["equal-graphs"].count("equals = @matmul_matmul") >= 1
    assert cleave_opt(stages["equal-graphs"]).returncode == 0


def test_a_loop_nest_says_what_a_level_loads_and_keeps(
    example_graph: Callable[..., GraphOp],
) -> None:
    plan = found(symbolized(example_graph("matmul"))).plans[1]
    nest = loop_nest(str(plan.plan))
    assert nest.count("<div>") == nest.count("</div>") == 2
    for text in (
        "M = 4096, K = 4096, N = 4096, BM = ",
        "threadblocks over i_M = 0 to M ceildiv BM",
        "loop over i_K = 0 to K ceildiv BK",
        "loads %tx_1 = ",
        "stores to [i_M * BM, i_N * BN] of [M, N] f16",
        "keeps %o_acc = sum %zero",
        "form = persistent, threads = ",
        "[BM, BN] f32 in rmem",
    ):
        assert text in nest


MANY_ROWS = """
algebra.graph @many [M, L, D] where [M = 64, L = 16381, D = 64]
    (%a: !algebra.tensor<[M, L], f32>, %b: !algebra.tensor<[M, L], f32>,
     %c: !algebra.tensor<[M, L], f32>, %d: !algebra.tensor<[M, L], f32>,
     %v: !algebra.tensor<[L, D], f16>)
    -> (!algebra.tensor<[M, D], f16>) {
  %ma = algebra.reduce_max %a dim 1
  %mb = algebra.reduce_max %b dim 1
  %mc = algebra.reduce_max %c dim 1
  %md = algebra.reduce_max %d dim 1
  %sa = algebra.sub %a, %ma
  %sb = algebra.sub %b, %mb
  %sc = algebra.sub %c, %mc
  %sd = algebra.sub %d, %md
  %ab = algebra.mul %sa, %sb
  %cd = algebra.mul %sc, %sd
  %n = algebra.mul %ab, %cd
  %o = algebra.matmul %n, %v
  algebra.return %o
}"""


def test_groups_without_a_schedule_are_divided_into_operators(
    example_graph: Callable[..., GraphOp], parse_ir: Callable[[str], ModuleOp]
) -> None:
    """Registers hold no such row; a graph of one group needs no other plan."""
    long_rows = example_graph("attention_softmax", H=8, M=1023, L=20001, D=56)
    many = next(op for op in parse_ir(MANY_ROWS).ops if isinstance(op, GraphOp))
    for graph in (long_rows, many):
        candidates = found(symbolized(graph))
        (plan,) = (each for each in candidates.plans if each.is_unfused)
        assert plan.graphs[0].count("algebra.reduce_max") <= 1
        assert not candidates.notes
    for name, sizes in (("softmax", {"M": 33, "N": 1023}), ("rmsnorm_matmul", {})):
        assert found(symbolized(example_graph(name, **sizes))).notes == []
