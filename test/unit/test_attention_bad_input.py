"""Attention that cannot be: one message each, that names the operator and the rule."""

from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import pytest

from cleave.lowering.plan import Plan

CleaveOpt = Callable[..., CompletedProcess[str]]

GRAPH = """
algebra.graph @attention [M, L, D] where [M = 64, L = 96, D = 16]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>,
     %v: !algebra.tensor<[L, D], f16>, %mask: !algebra.tensor<[M, L], i1>,
     %bias: !algebra.tensor<[M, L], f16>)
    -> (!algebra.tensor<[M, D], f16>) {
  %cap = algebra.constant 30.0 : !algebra.tensor<[], f32>
  %least = algebra.constant -inf : !algebra.tensor<[], f32>
  %window = algebra.window diagonal L - M size 128 : !algebra.tensor<[M, L], i1>
  %qk = algebra.matmul %q, %k transpose_rhs
  %small = algebra.div %qk, %cap
  %capped = algebra.tanh %small
  %grown = algebra.mul %capped, %cap
  %biased = algebra.add %grown, %bias
  %near = algebra.select %window, %biased, %least
  %s = algebra.select %mask, %near, %least
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o
}
"""
CAP = "%cap = algebra.constant 30.0 : !algebra.tensor<[], f32>"
PASSES = (
    "drop-shifts,stabilize-exp,insert-casts,sink-scales,"
    'schedule-blocks{tile="M=64"},schedule-reductions{tile="L=32"},schedule-masks,'
    "plan-memory"
)


def test_the_graph_compiles(cleave_opt: CleaveOpt):
    done = cleave_opt(GRAPH, "-p", PASSES, "-t", "tilelang")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "number",
    [
        "%one = algebra.constant -1.0 : !algebra.tensor<[], f32>\n"
        "%inf = algebra.constant inf : !algebra.tensor<[], f32>\n"
        "%least = algebra.mul %one, %inf",
        "%one = algebra.constant 1.0 : !algebra.tensor<[], f32>\n"
        "%inf = algebra.constant -inf : !algebra.tensor<[], f32>\n"
        "%least = algebra.div %inf, %one",
    ],
)
def test_what_masks_put_in_place_of_scores_may_be_computed(
    cleave_opt: CleaveOpt, number: str
):
    least = "%least = algebra.constant -inf : !algebra.tensor<[], f32>"
    assert least in GRAPH
    done = cleave_opt(GRAPH.replace(least, number))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("good", "bad", "line", "message"),
    [
        (
            "%mask: !algebra.tensor<[M, L], i1>",
            "%mask: !algebra.tensor<[L, M], i1>",
            "%s = algebra.select",
            "'algebra.select' op: operand 1 has M where the other operands have L "
            "(dim 0 of the result)",
        ),
        (
            "%mask: !algebra.tensor<[M, L], i1>",
            "%mask: !algebra.tensor<[M, L], f16>",
            "%s = algebra.select",
            "'algebra.select' op: operand 0 is the mask and must be i1, not f16",
        ),
        (
            "%bias: !algebra.tensor<[M, L], f16>",
            "%bias: !algebra.tensor<[M, D], f16>",
            "%biased = algebra.add",
            "'algebra.add' op: operand 1 has D where the other operands have L "
            "(dim 1 of the result)",
        ),
        (
            "size 128",
            "size 0",
            "%window = algebra.window",
            "'algebra.window' op: a window of size 0 sees nothing; it is at least 1",
        ),
        (
            "size 128",
            "size D - 16",
            "%window = algebra.window",
            "'algebra.window' op: a window of size D - 16, which is at most 0, sees "
            "nothing; it is at least 1",
        ),
        (
            "constant 30.0",
            "constant 0.0",
            "algebra.div %qk, %cap",
            "'algebra.div' op: divides by the constant 0",
        ),
        (
            "constant 30.0",
            "constant D - 16",
            "algebra.div %qk, %cap",
            "'algebra.div' op: divides by the constant D - 16, which is 0",
        ),
        (
            CAP,
            "%d = algebra.constant D : !algebra.tensor<[], f32>\n"
            "%e = algebra.constant 16.0 : !algebra.tensor<[], f32>\n"
            "%cap = algebra.sub %d, %e",
            "algebra.div %qk, %cap",
            "'algebra.div' op: divides by %cap, which is 0",
        ),
        (
            CAP,
            "%one = algebra.constant L - 95 : !algebra.tensor<[1, 1], f32>\n"
            "%cap = algebra.log %one",
            "algebra.div %qk, %cap",
            "'algebra.div' op: divides by %cap, which is 0",
        ),
        (
            CAP,
            "%minus = algebra.constant -1.0 : !algebra.tensor<[], f32>\n"
            "%cap = algebra.sqrt %minus",
            "algebra.div %qk, %cap",
            "'algebra.div' op: divides by %cap, which is nan",
        ),
        (
            "algebra.div %qk, %cap",
            "algebra.div %least, %qk",
            "algebra.div %least, %qk",
            "'algebra.div' op: divides the constant -inf",
        ),
        (
            "constant 30.0",
            "constant inf",
            "algebra.mul %capped, %cap",
            "'algebra.mul' op: multiplies by the constant inf",
        ),
        (
            "algebra.mul %capped, %cap",
            "algebra.mul %least, %capped",
            "algebra.mul %least, %capped",
            "'algebra.mul' op: multiplies by the constant -inf",
        ),
        (
            "%q: !algebra.tensor<[M, D], f16>",
            "%q: !algebra.tensor<[M, D], i32>",
            "%qk = algebra.matmul",
            "'algebra.matmul' op: operand 0 has elements of type i32, but this "
            "operator computes with floats",
        ),
        (
            "%k: !algebra.tensor<[L, D], f16>",
            "%k: !algebra.tensor<[L, D], bf16>",
            "%qk = algebra.matmul",
            "'algebra.matmul' op: lhs is f16 but rhs is bf16",
        ),
        (
            "M = 64",
            "M = 0",
            "algebra.graph @attention",
            "'algebra.graph' op: @attention: M = 0, but M is a size, at least 1",
        ),
        (
            "L = 96",
            "L = 0",
            "algebra.graph @attention",
            "'algebra.graph' op: @attention: L = 0, but L is a size, at least 1",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    cleave_opt: CleaveOpt, good: str, bad: str, line: str, message: str
):
    text = GRAPH.replace(good, bad)
    assert text != GRAPH
    done = cleave_opt(text, "-p", PASSES, "-t", "tilelang")
    assert done.returncode == 1
    assert done.stdout == ""
    number = 1 + next(i for i, t in enumerate(text.splitlines()) if line in t)
    first, shown, *_ = done.stderr.splitlines()
    assert first.startswith(f"input.mlir:{number}:")
    assert first.endswith(f"error: {message}")
    assert line in shown


################################################################################
# Tensors                                                                      #
################################################################################


def tensor(name: str, *shape: int | str, dtype: str = "float16") -> dict[str, Any]:
    return {"name": name, "shape": list(shape), "dtype": dtype}


LITERAL: dict[str, Any] = {
    "name": "attention",
    "args": [
        tensor("q", "N", "M", 16),
        tensor("k", "N", "L", 16),
        tensor("v", "N", "L", 16),
        tensor("mask", "M", "L", dtype="bool"),
    ],
    "results": [tensor("o", "N", "M", 16)],
    "temporaries": [],
    "kernels": [
        {
            "function": "kernel_0",
            "args": ["q", "k", "v", "mask", "o"],
            "pass_configs": {},
            "requires": [],
        }
    ],
    "sizes": {},
}


def test_a_tensor_that_does_not_fit_is_refused_by_name():
    torch = pytest.importorskip("torch")
    from cleave.lowering.runtime import CompiledGraph

    compiled = CompiledGraph(
        Plan.parse(LITERAL), [lambda *_: None], torch.device("cpu")
    )
    half = torch.float16
    q = torch.zeros(2, 5, 16, dtype=half)
    k = v = torch.zeros(2, 7, 16, dtype=half)
    mask = torch.ones(5, 7, dtype=torch.bool)
    assert isinstance(compiled(q, k, v, mask), torch.Tensor)
    for tensors, message in (
        ((q, k, v, mask.T), r"argument mask: \[7, 5\], expected \[5, 7\]"),
        ((q, k, v, mask[None]), r"argument mask: \[1, 5, 7\], expected \[5, 7\]"),
        ((q, k, v, mask.half()), "argument mask: torch.float16, expected torch.bool"),
        ((q.int(), k, v, mask), "argument q: torch.int32, expected torch.float16"),
        ((q, k.bfloat16(), v, mask), "argument k: torch.bfloat16, expected"),
        ((q.transpose(0, 1).contiguous(), k, v, mask), "argument k: "),
        ((q, k.mT.contiguous().mT, v, mask), "argument k: not contiguous"),
        ((q[:, :0], k, v, mask[:0]), r"argument q: shape \[2, 0, 16\] is empty; dim 1"),
        ((q, k[:, :0], v[:, :0], mask[:, :0]), "argument k: shape .* is empty; dim 1"),
        (
            (q[:0], k[:0], v[:0], mask),
            "argument q: .* dim 0, which is N, is at least 1",
        ),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            compiled(*tensors)
