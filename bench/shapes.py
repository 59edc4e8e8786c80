"""
The paper's nine subgraphs with the shapes of its Tables 3 (prefill) and 4 (decode).

    >>> row = Row("mha", {"H": 32, "M": 4096, "L": 4096, "D": 128})
    >>> row.title, round(row.floor_seconds(load_hardware("h200")) * 1e6)
    ('mha H=32 M=4096 L=4096 D=128', 363)

Sizes go by the symbols of the graphs in `examples/`, arguments by their order there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from cleave.lowering.hardware import Hardware
from cleave.lowering.plan import ITEMSIZES, Plan

Sizes: TypeAlias = Mapping[str, int]
Shape: TypeAlias = tuple[int, ...]

PREFILL_LENGTHS = (256, 512, 1024, 2048, 4096)
DECODE_BATCHES = (16, 32, 64, 128)
CONTEXT = 4096
MLA_CONTEXTS = (1024, 2048, 4096)


class UnknownRowError(ValueError):
    """A plan that is none of the subgraphs here."""


@dataclass(frozen=True, slots=True)
class Subgraph:
    """
    What the benchmarks know about a subgraph, as functions of its sizes.

    `graphs` are the names under which plans compute it. `flops` counts tensor-core work
    as the subgraph is written. `scales` keep every intermediate within f16: standard
    normal arguments are multiplied by them (1 where an argument is not named).
    """

    graphs: tuple[str, ...]
    symbols: tuple[str, ...]
    args: Callable[[Sizes], dict[str, Shape]]
    result: Callable[[Sizes], Shape]
    flops: Callable[[Sizes], int]
    scales: Callable[[Sizes], dict[str, float]]


def _attention(
    *graphs: str,
    symbols: str = "H M L D",
    one_kv_head: bool = False,
    transposed: bool = False,
    scales: Callable[[Sizes], dict[str, float]],
) -> Subgraph:
    """
    Two matmuls over q (H G, M, D), k (H, L, D) and v (H, L, E), with or without softmax
    between them. G is 1 and E is D where sizes do not say otherwise.
    """

    def args(s: Sizes) -> dict[str, Shape]:
        kv_heads = 1 if one_kv_head else s["H"]
        k = (s["D"], s["L"]) if transposed else (s["L"], s["D"])
        return {
            "q": (s["H"] * s.get("G", 1), s["M"], s["D"]),
            "k": (kv_heads, *k),
            "v": (kv_heads, s["L"], s.get("E", s["D"])),
        }

    def result(s: Sizes) -> Shape:
        return (s["H"] * s.get("G", 1), s["M"], s.get("E", s["D"]))

    def flops(s: Sizes) -> int:
        width = s["D"] + s.get("E", s["D"])
        return 2 * s["H"] * s.get("G", 1) * s["M"] * s["L"] * width

    return Subgraph(graphs, tuple(symbols.split()), args, result, flops, scales)


def _unit_scores(s: Sizes) -> dict[str, float]:
    """Scores of variance 1, so that exp stays within f16 without a maximum."""
    return {"q": 1 / math.sqrt(s["D"])}


def _unscaled(_: Sizes) -> dict[str, float]:
    return {}


def _projection(
    *graphs: str, weights: tuple[str, ...] = ("w",), reduced: bool = False
) -> Subgraph:
    """X (M, K) against weights (K, N), scaled so that products have variance 1."""

    def scales(s: Sizes) -> dict[str, float]:
        return {weight: 1 / math.sqrt(s["K"]) for weight in weights}

    return Subgraph(
        graphs,
        ("M", "K", "N"),
        lambda s: {"x": (s["M"], s["K"])} | {w: (s["K"], s["N"]) for w in weights},
        lambda s: (s["M"], 1 if reduced else s["N"]),
        lambda s: 2 * s["M"] * s["K"] * s["N"] * len(weights),
        scales,
    )


SUBGRAPHS: Mapping[str, Subgraph] = {
    "matmul": _projection("matmul"),
    "matmul_matmul": _attention(
        "matmul_matmul",
        scales=lambda s: {"q": 1 / math.sqrt(s["D"]), "v": 1 / math.sqrt(s["L"])},
    ),
    "matmul_rowsum": _projection("matmul_rowsum", reduced=True),
    "swiglu": _projection("swiglu", weights=("w1", "w2")),
    "rmsnorm_matmul": _projection("rmsnorm_matmul", "rmsnorm_matmul_scaled"),
    "mha": _attention("mha", "attention_fig5a", transposed=True, scales=_unit_scores),
    "gqa": _attention("gqa", symbols="H G M L D", transposed=True, scales=_unit_scores),
    "mqa": _attention("mqa", one_kv_head=True, transposed=True, scales=_unit_scores),
    "softmax_attention": _attention("attention_softmax", scales=_unscaled),
    "mla_prefill": _attention("mla_prefill", symbols="H M L D E", scales=_unit_scores),
    "mla_decode": Subgraph(
        ("mla_decode",),
        ("B", "H", "L", "C", "R"),
        lambda s: {
            "q": (s["B"], s["H"], s["C"]),
            "kv": (s["B"], s["L"], s["C"]),
            "q_pe": (s["B"], s["H"], s["R"]),
            "k_pe": (s["B"], s["L"], s["R"]),
        },
        lambda s: (s["B"], s["H"], s["C"]),
        lambda s: 2 * s["B"] * s["H"] * s["L"] * (2 * s["C"] + s["R"]),
        lambda s: {name: 1 / math.sqrt(s["C"] + s["R"]) for name in ("q", "q_pe")},
    ),
}


@dataclass(frozen=True)
class Row:
    """A subgraph at given sizes and a dtype of its arguments and result."""

    subgraph: str
    sizes: Sizes
    dtype: str = "float16"

    @property
    def title(self) -> str:
        sizes = " ".join(f"{name}={size}" for name, size in self.sizes.items())
        return f"{self.subgraph} {sizes}"

    @property
    def args(self) -> dict[str, Shape]:
        """The shape of each argument, in order."""
        return SUBGRAPHS[self.subgraph].args(self.sizes)

    @property
    def scales(self) -> dict[str, float]:
        """What standard normal arguments are multiplied by."""
        return SUBGRAPHS[self.subgraph].scales(self.sizes)

    @property
    def flops(self) -> int:
        """Tensor-core work as the subgraph is written."""
        return SUBGRAPHS[self.subgraph].flops(self.sizes)

    @property
    def bytes(self) -> int:
        """Each argument read once, the result written once."""
        shapes = [*self.args.values(), SUBGRAPHS[self.subgraph].result(self.sizes)]
        return sum(map(math.prod, shapes)) * ITEMSIZES[self.dtype]

    def floor_seconds(self, hardware: Hardware) -> float:
        """No kernel is faster, but for algebra that avoids the work; without launch."""
        return hardware.floor_seconds(self.flops, self.bytes)


def row_of(plan: Plan) -> Row:
    """
    The row that a plan computes, by its name, the sizes it was printed with and dtype.

    Raises UnknownRowError if it is none, or if its arguments have other shapes.
    """
    graphs = {graph: name for name, s in SUBGRAPHS.items() for graph in s.graphs}
    if plan.name not in graphs:
        raise UnknownRowError(f"{plan.name} is none of {', '.join(sorted(graphs))}")
    name = graphs[plan.name]
    subgraph = SUBGRAPHS[name]
    if missing := [symbol for symbol in subgraph.symbols if symbol not in plan.sizes]:
        raise UnknownRowError(f"{plan.name}: no size of {missing[0]} in its plan")
    sizes = {symbol: plan.sizes[symbol] for symbol in subgraph.symbols}
    row = Row(name, sizes, plan.args[0].dtype)
    if [spec.shape for spec in plan.args] != list(row.args.values()):
        raise UnknownRowError(
            f"{plan.name} takes {[list(spec.shape) for spec in plan.args]}, "
            f"its row {list(map(list, row.args.values()))}"
        )
    return row


def prefill_rows(lengths: tuple[int, ...] = PREFILL_LENGTHS) -> Iterator[Row]:
    """Table 3."""
    for m in lengths:
        yield Row("matmul", {"M": m, "K": 4096, "N": 4096})
        yield from _shared_rows(m)
        yield Row("mla_prefill", {"H": 128, "M": m, "L": CONTEXT, "D": 192, "E": 128})


def decode_rows(batches: tuple[int, ...] = DECODE_BATCHES) -> Iterator[Row]:
    """Table 4."""
    for m in batches:
        yield Row("matmul", {"M": m, "K": 4096, "N": m})
        yield from _shared_rows(m)
    for length in MLA_CONTEXTS:
        yield Row("mla_decode", {"B": 128, "H": 128, "L": length, "C": 512, "R": 64})


def _shared_rows(m: int) -> Iterator[Row]:
    """What both tables have, for m rows of activations or queries."""
    yield Row("matmul_matmul", {"H": 32, "M": m, "L": CONTEXT, "D": 64})
    yield Row("matmul_rowsum", {"M": m, "K": 64, "N": 4096})
    yield Row("swiglu", {"M": m, "K": 4096, "N": 14336})
    yield Row("rmsnorm_matmul", {"M": m, "K": 4096, "N": 6144})
    for d in (64, 128):
        yield Row("mha", {"H": 32, "M": m, "L": CONTEXT, "D": d})
        yield Row("gqa", {"H": 8, "G": 4, "M": m, "L": CONTEXT, "D": d})
        yield Row("mqa", {"H": 32, "M": m, "L": CONTEXT, "D": d})
