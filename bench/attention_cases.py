"""
The attention sweep: element types, masks, head dims, lengths, heads.

One kernel serves all lengths and numbers of heads, whose dims stay symbols.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias, get_args

from cleave.lowering.compilation.configuration import Configuration

Element: TypeAlias = Literal["f16", "bf16"]
Mask: TypeAlias = Literal["none", "causal", "window", "bias", "softcap"]

ELEMENTS: tuple[Element, ...] = get_args(Element)
MASKS: tuple[Mask, ...] = get_args(Mask)
HEAD_DIMS = ((64, 64), (72, 72), (80, 80), (96, 96), (128, 128), (192, 128), (256, 256))
"""Of queries and keys, and of values."""
LENGTHS = (
    (1, 1),
    (3, 799),
    (113, 203),
    (1023, 1024),
    (1024, 1023),
    (2048, 1024),
    (4097, 4097),
)
"""Queries and keys."""
HEADS = {"MHA": (4, 1), "GQA 9:3": (3, 3), "GQA 32:8": (8, 4), "MQA": (1, 8)}
"""Heads of keys and values, and how many of queries share each of them."""
WINDOW = 128
CAP = 30.0

TENSOR_CORE_STEP = 16


@dataclass(frozen=True)
class AttentionKernel:
    """What a kernel is built for. `window` is the mask's size, `cap` the softcap's."""

    element: Element
    mask: Mask
    qk_dim: int
    v_dim: int
    window: int = WINDOW
    cap: float = CAP

    @property
    def name(self) -> str:
        mask: str = self.mask
        if mask == "window" and self.window != WINDOW:
            mask += str(self.window)
        return f"attention_{self.element}_{mask}_{self.qk_dim}_{self.v_dim}"

    def graph(self, sizes: Mapping[str, int] | None = None) -> str:
        """
        The IR of scaled attention and its log-sum-exp, with the division behind the
        product with the values (paper, Fig. 5a).

        Queries are [N, G, M, D], keys [N, 1, L, D], values [N, 1, L, E]: N heads of
        keys and values, G heads of queries for each. `sizes` binds any of N, G, M, L.
        """
        return self._text(
            sizes,
            """\
%p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 3
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  %lse = algebra.log %l""",
        )

    def written(self, sizes: Mapping[str, int] | None = None) -> str:
        """The same as people write it: shifted by the maximum, normalized first."""
        return self._text(
            sizes,
            """\
%m = algebra.reduce_max %s dim 3
  %shifted = algebra.sub %s, %m
  %p = algebra.exp %shifted
  %l = algebra.reduce_sum %p dim 3
  %n = algebra.div %p, %l
  %o = algebra.matmul %n, %v
  %log = algebra.log %l
  %lse = algebra.add %log, %m""",
        )

    def _text(self, sizes: Mapping[str, int] | None, softmax: str) -> str:
        bound = {"D": self.qk_dim, "E": self.v_dim, **(sizes or {})}
        facts = ", ".join(f"{name} = {size}" for name, size in bound.items())
        element = self.element
        bias = f",\n     %bias: !algebra.tensor<[M, L], {element}>"
        return f"""\
algebra.graph @{self.name} [N, G, M, L, D, E] where [{facts}]
    (%q: !algebra.tensor<[N, G, M, D], {element}>,
     %k: !algebra.tensor<[N, 1, L, D], {element}>,
     %v: !algebra.tensor<[N, 1, L, E], {element}>{bias if self.mask == "bias" else ""})
    -> (!algebra.tensor<[N, G, M, E], {element}>,
        !algebra.tensor<[N, G, M, 1], f32>) {{
  %width = algebra.constant D : !algebra.tensor<[], f32>
  %root = algebra.sqrt %width
  %qk = algebra.matmul %q, %k transpose_rhs
  {self._masked()}
  {softmax}
  algebra.return %o, %lse
}}
"""

    def _masked(self) -> str:
        scaled = "algebra.div %qk, %root"
        if self.mask == "none":
            return f"%s = {scaled}"
        if self.mask == "bias":
            return f"%scaled = {scaled}\n  %s = algebra.add %scaled, %bias"
        if self.mask == "softcap":
            return f"""%scaled = {scaled}
  %cap = algebra.constant {float(self.cap)} : !algebra.tensor<[], f32>
  %small = algebra.div %scaled, %cap
  %capped = algebra.tanh %small
  %s = algebra.mul %capped, %cap"""
        size = f" size {self.window}" if self.mask == "window" else ""
        return f"""%scaled = {scaled}
  %least = algebra.constant -inf : !algebra.tensor<[], f32>
  %seen = algebra.{self.mask} diagonal L - M{size} : !algebra.tensor<[M, L], i1>
  %s = algebra.select %seen, %scaled, %least"""

    def configuration(self, sizes: Mapping[str, int] | None = None) -> Configuration:
        """
        Tiles by a simple rule: 128 queries for two warpgroups, and as many keys as
        leave room for two stages and for the registers of the output. Keys that are
        known to be no more than that are one padded tile.
        """
        tile = {"N": 1, "G": 1, "M": 128}
        for name, dim in (("D", self.qk_dim), ("E", self.v_dim)):
            if dim % TENSOR_CORE_STEP:
                tile[name] = dim + -dim % TENSOR_CORE_STEP
        widest = max(self.qk_dim, self.v_dim)
        keys = 128 if widest <= 64 else 64
        if widest > 192 and self.mask == "bias":
            keys = 32
        if sizes is not None and sizes["L"] <= keys:
            return Configuration({**tile, "L": keys}, {}, threads=256)
        return Configuration(tile, {"L": keys}, threads=256)


@dataclass(frozen=True)
class AttentionCase:
    """A kernel on some sizes."""

    kernel: AttentionKernel
    heads: str
    queries: int
    keys: int

    @property
    def name(self) -> str:
        heads = self.heads.replace(" ", "").replace(":", "to")
        return f"{self.kernel.name}_{heads}_{self.queries}x{self.keys}"

    @property
    def sizes(self) -> dict[str, int]:
        key_heads, group = HEADS[self.heads]
        return {"N": key_heads, "G": group, "M": self.queries, "L": self.keys}


def kernels() -> Iterator[AttentionKernel]:
    """One for each element type, mask and pair of head dims."""
    for element, mask, (qk_dim, v_dim) in product(ELEMENTS, MASKS, HEAD_DIMS):
        yield AttentionKernel(element, mask, qk_dim, v_dim)


def cases() -> Iterator[AttentionCase]:
    """The whole sweep, those of one kernel one after the other."""
    for kernel in kernels():
        for heads, (queries, keys) in product(HEADS, LENGTHS):
            yield AttentionCase(kernel, heads, queries, keys)
