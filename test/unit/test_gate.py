"""The numerical gate: who passes on adversarial inputs, and whom they give away."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, bf16, f16, f32, i32

from cleave.dialects.algebra.dtypes import numpy_dtype
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.itgraph import PlanOp
from cleave.lowering.compilation.pipeline import prepare
from cleave.lowering.gate.eager import eager_graph
from cleave.lowering.gate.executors import NumPyExecutor, TorchExecutor
from cleave.lowering.gate.families import LOW_LOGIT, Families
from cleave.lowering.gate.gate import GateReport, NumericalGate
from cleave.lowering.gate.rule import format_of, judge, last_place, lost
from cleave.lowering.numpy_algebra import execute_graph
from cleave.passes.insert_casts import insert_casts
from cleave.passes.schedule_blocks import schedule_blocks
from cleave.passes.schedule_reductions import schedule_reductions
from cleave.passes.stabilize_exp import stabilize

ParseIR = Callable[[str], ModuleOp]
Parse = Callable[[str], GraphOp]

NORM = """
algebra.graph @layernorm [M, K] where [M = 24, K = 48]
    (%x: !algebra.tensor<[M, K], {element}>)
    -> (!algebra.tensor<[M, K], {element}>) {{
  %n = algebra.constant K : !algebra.tensor<[], f32>
  %eps = algebra.constant 1.0e-6 : !algebra.tensor<[], f32>
  %sum = algebra.reduce_sum %x dim 1
  %mean = algebra.div %sum, %n
  %c = algebra.sub %x, %mean
  {variance}
  %above = algebra.add %var, %eps
  %root = algebra.sqrt %above
  %y = algebra.div %c, %root
  algebra.return %y
}}
"""
TWO_PASS = """
  %cc = algebra.square %c
  %sum2 = algebra.reduce_sum %cc dim 1
  %var = algebra.div %sum2, %n
"""
ONE_PASS = """
  %xx = algebra.square %x
  %sum2 = algebra.reduce_sum %xx dim 1
  %mean2 = algebra.div %sum2, %n
  %square = algebra.square %mean
  %var = algebra.sub %mean2, %square
"""
MASKED = """
algebra.graph @attention [M, L, D] where [M = 40, L = 70, D = 16]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>, %bias: !algebra.tensor<[M, L], f16>,
     %seen: !algebra.tensor<[M, L], i1>) -> (!algebra.tensor<[M, D], f16>) {
  %dots = algebra.matmul %q, %k transpose_rhs
  %s = algebra.add %dots, %bias
  %none = algebra.constant -inf : !algebra.tensor<[], f32>
  %visible = algebra.select %seen, %s, %none
  %e = algebra.exp %visible
  %r = algebra.reduce_sum %e dim 1
  %p = algebra.div %e, %r
  %o = algebra.matmul %p, %v
  %half = algebra.cast %o to f16
  algebra.return %half
}
"""
SOFTMAX = """
algebra.graph @attention [M, L, D] where [M = 40, L = 70, D = 16]
    (%q: !algebra.tensor<[M, D], {element}>, %k: !algebra.tensor<[L, D], {element}>,
     %v: !algebra.tensor<[L, D], {element}>{extra})
    -> (!algebra.tensor<[M, D], {element}>, !algebra.tensor<[M, 1], f32>) {{
  %root = algebra.constant 4.0 : !algebra.tensor<[], f32>
  %low = algebra.constant -inf : !algebra.tensor<[], f32>
  %qk = algebra.matmul %q, %k transpose_rhs
  %s0 = algebra.div %qk, %root
  {mask}
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  %lse = algebra.log %l
  algebra.return %o, %lse
}}
"""
BIAS = ", %bias: !algebra.tensor<[M, L], {element}>", "%s = algebra.add %s0, %bias"
MASK = (
    ", %mask: !algebra.tensor<[M, L], i1>",
    "%s = algebra.select %mask, %s0, %low",
)
CAUSAL = (
    "",
    "%mask = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>\n"
    "%s = algebra.select %mask, %s0, %low",
)
ELEMENTS = ("f16", "bf16", "f32")


@pytest.fixture
def parse(parse_ir: ParseIR) -> Parse:
    return lambda text: cast(GraphOp, parse_ir(text).body.block.first_op)


def softmax(element: str, extra: str = "", mask: str = "%s = algebra.neg %s0") -> str:
    return SOFTMAX.format(
        element=element, extra=extra.format(element=element), mask=mask
    )


def failing(report: GateReport) -> list[str]:
    return [family.family for family in report.families if family.reasons]


################################################################################
# Candidates                                                                   #
################################################################################


@pytest.mark.parametrize("element", ["f16", "f32"])
def test_a_variance_in_one_pass_is_rejected(parse: Parse, element: str):
    gate = NumericalGate(parse(NORM.format(element=element, variance=TWO_PASS)))
    candidate = parse(NORM.format(element=element, variance=ONE_PASS))
    report = gate.try_graph(candidate)
    assert failing(report) == ["large mean of %x"]
    (reason,) = report.reasons
    assert reason.startswith("large mean of %x: result 0: ")
    assert "elements are off by up to" in reason


@pytest.mark.parametrize("element", ELEMENTS)
def test_a_variance_in_two_passes_passes(parse: Parse, element: str):
    graph = parse(NORM.format(element=element, variance=TWO_PASS))
    report = NumericalGate(graph).try_graph(graph)
    assert report.passes
    assert len(report.families) == 8


def test_a_loss_is_a_result_that_is_not_finite_or_has_no_digit_right():
    reference = np.array([1.0, -2.0, np.inf])
    assert lost(np, np.array([1.1, -2.1, 0.0]), reference, f32, 1.0) is None
    assert lost(np, np.array([1.3, -2.0, 0.0]), reference, f32, 4.0) is None
    assert lost(np, np.array([1.3, -2.0, 0.0]), reference, f32, 1.0) == (
        "elements are off by up to 0.3, where the largest is 2"
    )
    assert lost(np, np.array([np.nan, -2.0, 0.0]), reference, f32, 1.0) == (
        "1 of 3 elements are not finite"
    )
    assert lost(np, np.array([3]), np.array([4]), i32, 1.0) is None


@pytest.mark.parametrize("element", ELEMENTS)
def test_an_unshifted_softmax_overflows_on_large_logits(parse: Parse, element: str):
    graph = parse(softmax(element))
    report = NumericalGate(graph).try_graph(graph)
    large = {"amplitude 30", "amplitude 300", f"logits near {LOW_LOGIT:g}"}
    assert large <= {*failing(report)}
    assert "amplitude 1" not in failing(report)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("mask", [BIAS, MASK, CAUSAL])
def test_a_stabilized_softmax_passes(parse: Parse, element: str, mask: tuple[str, str]):
    graph = parse(softmax(element, *mask))
    candidate = graph.clone()
    stabilize(candidate)
    assert NumericalGate(graph).try_graph(candidate).reasons == []


def planned(graph: GraphOp) -> PlanOp:
    graph = graph.clone()
    stabilize(graph)
    insert_casts(graph)
    return schedule_reductions(schedule_blocks(graph, {"M": 32}), {"L": 32})


@pytest.mark.parametrize("mask", [MASK, CAUSAL])
def test_a_tile_program_passes(parse: Parse, mask: tuple[str, str]):
    graph = parse(softmax("f16", *mask))
    assert NumericalGate(graph).try_plan(planned(graph)).reasons == []


def test_a_tile_program_that_counts_its_tail_is_rejected(parse: Parse):
    graph = parse(softmax("f16", *BIAS))
    plan = planned(graph)
    for op in list(plan.walk()):
        if op.name == "itgraph.tail":
            op.results[0].replace_all_uses_with(op.operands[0])
    assert failing(NumericalGate(graph).try_plan(plan))


def test_a_result_that_is_finite_is_all_that_is_asked_where_eager_overflows(
    parse: Parse,
):
    """Products of 3e10 are beyond float16, and beyond bfloat16 squared once more."""
    graph = parse(
        "algebra.graph @g [N] where [N = 8] (%x: !algebra.tensor<[N], f32>)"
        " -> (!algebra.tensor<[N], f32>) {\n"
        "  %h = algebra.cast %x to f16\n  %y = algebra.square %h\n"
        "  %z = algebra.square %y\n  %w = algebra.square %z\n"
        "  %u = algebra.square %w\n  %t = algebra.square %u\n"
        "  %r = algebra.sqrt %t\n  algebra.return %r\n}"
    )
    gate = NumericalGate(graph)
    report = gate.try_run(lambda *inputs: [np.ones_like(inputs[0])])
    by_family = {family.family: family for family in report.families}
    assert by_family["amplitude 300"].reasons == []
    assert by_family["amplitude 3"].reasons


@pytest.mark.parametrize("text", [softmax("f16", *BIAS), softmax("bf16", *MASK)])
def test_pytorch_comes_to_the_same_verdicts(parse: Parse, text: str):
    torch = pytest.importorskip("torch")
    graph = parse(text)
    safe = graph.clone()
    stabilize(safe)
    executor = TorchExecutor(torch.device("cpu"))
    gate = NumericalGate(graph, executor=executor)
    on_host = NumericalGate(graph)
    assert [trial.family for trial in gate.trials] == [
        trial.family for trial in on_host.trials
    ]
    assert gate.try_graph(safe).reasons == []
    assert {"amplitude 30", "amplitude 300"} <= {*failing(gate.try_graph(graph))}


def test_pytorch_makes_every_array_on_the_device_that_it_is_given(parse: Parse):
    torch = pytest.importorskip("torch")
    graph = parse(MASKED)
    safe = graph.clone()
    stabilize(safe)
    with torch.device("meta"):  # What names no device is made there, and holds nothing.
        gate = NumericalGate(graph, executor=TorchExecutor(torch.device("cpu")))
        names = " ".join(trial.family for trial in gate.trials)
        assert "half of it hidden" in names
        assert "infinite, one key a row" in names
        assert gate.try_graph(safe).reasons == []


EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.mlir"))
SIZES = {"H": 2, "G": 2, "M": 24, "L": 40, "B": 2, "K": 48, "N": 32, "C": 32}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_passes_in_the_form_in_which_it_is_scheduled(
    parse: Parse, example: Path
):
    text = example.read_text()
    names = parse(text).symbol_names
    sizes = ", ".join(f"{name} = {SIZES.get(name, 16)}" for name in names)
    graph = parse(re.sub(r"where \[[^]]*\]", f"where [{sizes}]", text))
    report = NumericalGate(graph).try_graph(prepare(graph).graph)
    assert report.reasons == []
    assert len(report.families) >= 8


def test_what_no_kernel_can_round_is_not_asked_for(parse: Parse):
    """The operand of the second matmul is beyond float16 on large inputs."""
    graph = parse(
        "algebra.graph @chain [M, K] where [M = 16, K = 32]"
        " (%x: !algebra.tensor<[M, K], f16>, %y: !algebra.tensor<[K, K], f16>,"
        " %z: !algebra.tensor<[K, K], f16>) -> (!algebra.tensor<[M, K], f32>) {\n"
        "  %a = algebra.matmul %x, %y\n  %b = algebra.matmul %a, %z\n"
        "  algebra.return %b\n}"
    )
    report = NumericalGate(graph).try_graph(graph)
    assert report.passes
    checked = {f.family: f.judgements[0].checked for f in report.families}
    assert checked["amplitude 30"] == 16 * 32
    assert checked["amplitude 300"] == 0


################################################################################
# Inputs                                                                       #
################################################################################


def families(graph: GraphOp) -> dict[str, list[np.ndarray]]:
    sizes = {"M": 40, "L": 70, "D": 16, "K": 48, "N": 8}
    drawn = Families(graph, sizes, NumPyExecutor())
    return {f.name: inputs for f in drawn if (inputs := f.draw()) is not None}


def test_the_families_of_a_graph_follow_from_its_inputs(parse: Parse):
    norm = families(parse(NORM.format(element="f16", variance=TWO_PASS)))
    assert list(norm) == [
        "amplitude 1",
        "amplitude 3",
        "amplitude 6",
        "amplitude 30",
        "amplitude 300",
        "tiny values",
        "large mean of %x",
        "equal elements of %x",
    ]
    biased = families(parse(softmax("f16", *BIAS)))
    assert list(biased)[-4:] == [
        "logits near -50000",
        "%bias infinite, half of it hidden",
        "%bias infinite, one key a row",
        "%bias infinite, some rows hidden",
    ]
    masked = families(parse(softmax("f16", *MASK)))
    assert list(masked)[-3:] == [
        "mask %mask, half of it hidden",
        "mask %mask, one key a row",
        "mask %mask, some rows hidden",
    ]


@pytest.mark.parametrize("element", ELEMENTS)
def test_numbers_around_a_large_mean_have_exactly_that_mean(parse: Parse, element: str):
    norm = families(parse(NORM.format(element=element, variance=TWO_PASS)))
    (x,) = norm["large mean of %x"]
    rows = x.astype(np.float64)
    assert (rows.mean(1) == rows.mean()).all()
    assert (rows.std(1) > 0).all()
    assert rows.mean() > 256
    (equal,) = norm["equal elements of %x"]
    assert (equal == rows.mean()).all()


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("mask", [BIAS, MASK, CAUSAL])
def test_low_logits_are_low(parse: Parse, element: str, mask: tuple[str, str]):
    graph = parse(softmax(element, *mask))
    q, k, *rest = families(graph)[f"logits near {LOW_LOGIT:g}"]
    logits = q.astype(float) @ k.astype(float).T / 4
    if mask is BIAS:
        logits += rest[1]
    assert logits.mean() == pytest.approx(LOW_LOGIT, rel=0.1)
    assert logits.max() < 0.8 * LOW_LOGIT
    assert len(np.unique(logits[0])) > 5


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("eps", ["1.0e-6", "0.0"])
def test_logits_that_do_not_follow_a_scale_are_not_made_low(
    parse: Parse, element: str, eps: str
):
    """Those of normalized queries are -1 at any size, but for the epsilon."""
    graph = parse(f"""
        algebra.graph @scores [M, D] where [M = 8, D = 16]
            (%q: !algebra.tensor<[M, D], {element}>)
            -> (!algebra.tensor<[M, D], f32>) {{
          %eps = algebra.constant {eps} : !algebra.tensor<[], f32>
          %q2 = algebra.square %q
          %qs = algebra.reduce_sum %q2 dim 1
          %qe = algebra.add %qs, %eps
          %r = algebra.rsqrt %qe
          %n = algebra.mul %q, %r
          %p = algebra.exp %n
          algebra.return %p
        }}""")
    names = [*families(graph)]
    assert "tiny values" in names
    assert f"logits near {LOW_LOGIT:g}" not in names


def test_rows_with_one_key_and_with_none(parse: Parse):
    drawn = families(parse(softmax("f16", *MASK)))
    assert (drawn["mask %mask, one key a row"][3].sum(1) == 1).all()
    seen = drawn["mask %mask, some rows hidden"][3].any(1)
    assert seen.any()
    assert not seen.all()
    bias = families(parse(softmax("f16", *BIAS)))["%bias infinite, one key a row"][3]
    assert (np.isfinite(bias).sum(1) == 1).all()


def test_a_graph_of_masks_alone_has_one_family(parse: Parse):
    graph = parse(
        "algebra.graph @count [M, L] (%m: !algebra.tensor<[M, L], i1>)"
        " -> (!algebra.tensor<[M, 1], f32>) {\n"
        "  %x = algebra.cast %m to f32\n  %n = algebra.reduce_sum %x dim 1\n"
        "  algebra.return %n\n}"
    )
    assert next(iter(families(graph))) == "integers and masks"
    assert NumericalGate(graph, {"M": 4, "L": 9}).try_graph(graph).passes


################################################################################
# Eager mode                                                                   #
################################################################################


def test_eager_mode_rounds_what_inputs_have_a_part_in(parse: Parse):
    eager = eager_graph(parse(softmax("f16", *CAUSAL)))
    eager.verify()
    rounded = [op.operands[0].name_hint for op in eager.operators if op.ONLY_ROUNDS]
    assert rounded == ["qk", "s0", "s", "p", "l", "a", "o", "lse"]


def test_eager_mode_computes_in_the_wider_of_two_types(parse: Parse):
    graph = parse(
        "algebra.graph @g [N] (%x: !algebra.tensor<[N], f16>,"
        " %y: !algebra.tensor<[N], f32>) -> (!algebra.tensor<[N], f32>) {\n"
        "  %a = algebra.square %x\n  %b = algebra.add %a, %y\n"
        "  %c = algebra.exp %b\n  algebra.return %c\n}"
    )
    rounded = [o.operands[0].name_hint for o in eager_graph(graph).operators]
    assert rounded == ["x", "a", "a", "b"]
    x = np.array([1.0009765625], np.float16)
    y = np.array([2.0**-20], np.float32)
    (result,) = execute_graph(eager_graph(graph), [x, y], {"N": 1}, "rounded")
    inside = np.float32(np.float16(x * x)) + y
    np.testing.assert_array_equal(result, np.exp(inside))


def test_eager_mode_of_pytorch_is_the_same(parse: Parse):
    torch = pytest.importorskip("torch")
    graph = parse(softmax("bf16"))
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal(shape) for shape in ((40, 16), (70, 16), (70, 16))]
    q, k, v = (torch.tensor(array).bfloat16() for array in inputs)
    p = (-(q @ k.T / 4.0)).exp()
    total = p.sum(1, keepdim=True)
    expected = [(p @ v) / total, total.log()]
    results = execute_graph(eager_graph(graph), inputs, None, "rounded")
    for result, reference in zip(results, expected, strict=True):
        # Sums are taken in another order, so a few are rounded to the next number.
        np.testing.assert_allclose(
            result.astype(np.float32), reference.float().numpy(), rtol=2**-6, atol=2**-9
        )
        same = result.astype(np.float32) == reference.float().numpy()
        assert same.mean() > 0.9


################################################################################
# The rule                                                                     #
################################################################################


@pytest.mark.parametrize("element", [f16, bf16, f32])
def test_last_places_are_the_distances_of_neighbours(element: object):
    dtype = numpy_dtype(element)  # pyright: ignore[reportArgumentType]
    values = np.array([0, 1, 1.5, 2, 300, 6e-8, 1e-7, 1e-5, 6e4, -3]).astype(dtype)
    exact = np.abs(values.astype(float))
    up = np.nextafter(np.abs(values), dtype.type(np.inf)).astype(float)
    places = last_place(np, values.astype(float), format_of(element))  # pyright: ignore[reportArgumentType]
    np.testing.assert_array_equal(places, up - exact)


def test_twice_the_error_of_eager_and_two_last_places():
    reference = np.array([1.0, 4.0])
    eager = np.array([1.0, 4.5])
    allowed = 2 * 0.5 + 2 * 2.0**-10
    for error, is_right in ((allowed, True), (1.01 * allowed, False)):
        result = np.array([1.0 + error, 4.0])
        judgement = judge(np, result, reference, eager, f16)
        assert judgement.is_right == is_right
        assert judgement.allowed == allowed
        assert judgement.eager_error == 0.5
    assert str(judgement) == (
        "1 of 2 elements are off by up to 1.01, allowed 1 (eager is off by 0.5)"
    )


def test_where_a_result_has_to_be_finite():
    nan, inf = float("nan"), float("inf")

    def missing(result: float, reference: float, eager: float) -> int:
        out, ref, low = (np.array([value]) for value in (result, reference, eager))
        return judge(np, out, ref, low, f16).not_finite

    assert missing(nan, 1.0, 1.0) == missing(inf, 1.0, 1.0) == 1
    assert missing(nan, 1.0, nan) == 1
    # 1e5 is too large for the type, a reference that is no number says nothing.
    assert missing(inf, 1e5, 1.0) == missing(1.0, nan, nan) == 0
    assert missing(-inf, -inf, -inf) == missing(nan, -inf, nan) == 0
    assert missing(0.0, -inf, -inf) == missing(inf, -inf, -inf) == 1
    # The largest number is 65504, and two units in the last place are allowed.
    assert missing(inf, 65472.0, 65472.0) == missing(-inf, -65472.0, -65472.0) == 0
    assert missing(inf, 65408.0, 65408.0) == missing(-inf, 65472.0, 65472.0) == 1
    assert missing(nan, 65472.0, 65472.0) == 1
    # Eager mode may be off by more.
    assert missing(inf, 65000.0, 64500.0) == 0


def test_integers_have_to_be_equal():
    a, b = np.array([1, 2, 3]), np.array([1, 2, 4])
    assert judge(np, a, a, a, i32).is_right
    assert judge(np, a, b, b, i32).exceeding == 1
