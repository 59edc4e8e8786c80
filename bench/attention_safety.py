"""
What safe exponentials and causal masks cost; one JSON file.

    python -m bench.attention_safety --out bench/results/attention_safety.json

Attention with 32 heads and 4096 queries and keys in bfloat16, at head dims 64 and 128,
in three variants: `unsafe`, with exponentials as the paper has them (Fig. 5a), `safe`,
with references that its loop carries, and `causal`, safe as well. Each is built in
several configurations; all of them, FlashAttention-3 and cuDNN are timed in one run.
Only the fastest of each counts, and only those that are right are timed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import bf16

from bench.attention_cases import AttentionKernel
from bench.attention_reference import eager, exact
from bench.attention_variants import (
    DIMS,
    HEADS,
    LENGTH,
    VARIANTS,
    Candidate,
    build,
    candidates,
)
from bench.machine import machine, write_json
from cleave.lowering.gate.rule import judge
from cleave.lowering.runtime import load_compiled
from cleave.lowering.timing import time_alternating

if TYPE_CHECKING:
    import torch

SAFE_COST = {64: 0.20, 128: 0.12}
"""How much longer than the unsafe kernel the safe one may take."""
CAUSAL_SHARE = 0.62
"""How much of the time without a mask causal attention may take."""


def prepared(
    candidate: Candidate, inputs: Sequence[torch.Tensor], device: torch.device
) -> Callable[[], object] | None:
    """A call of a candidate that is right; None, with the reason, where it is not."""
    import torch

    if candidate.built is None or candidate.reasons:
        return None
    compiled = load_compiled(candidate.built, device)
    out = torch.full_like(inputs[0], torch.nan)
    compiled(*inputs, out=out)
    mask = "causal" if candidate.variant == "causal" else "none"
    kernel = AttentionKernel("bf16", mask, candidate.dim, candidate.dim)
    heads = [tensor[:, None] for tensor in inputs]
    reference, _ = exact(kernel, heads)
    yardstick, _ = eager(kernel, heads, torch.bfloat16)
    judgement = judge(torch, out[:, None].double(), reference, yardstick.double(), bf16)
    if not judgement.is_right:
        candidate.reasons.append(str(judgement))
        return None
    return lambda: compiled(*inputs, out=out)


def peers(inputs: Sequence[torch.Tensor]) -> dict[str, Callable[[], object]]:
    """FlashAttention-3 and cuDNN with and without a mask, as far as they are there."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    found: dict[str, Callable[[], object]] = {}
    q, k, v = (tensor[None] for tensor in inputs)
    rows = [tensor.transpose(1, 2).contiguous() for tensor in (q, k, v)]

    def cudnn(causal: bool) -> Callable[[], object]:
        def call() -> object:
            with sdpa_kernel([SDPBackend.CUDNN_ATTENTION]):
                return torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, is_causal=causal
                )

        return call

    def fa3(causal: bool) -> Callable[[], object]:
        interface: Any = import_module("fa3_fwd_interface")
        return lambda: interface.flash_attn_func(*rows, causal=causal)

    for causal, suffix in ((False, ""), (True, ", causal")):
        for name, make in (("FA3", fa3), ("cuDNN", cudnn)):
            try:
                call = make(causal)
                call()
            except (ImportError, RuntimeError) as error:
                print(f"no {name}{suffix}: {str(error).splitlines()[0]}", flush=True)
            else:
                found[name + suffix] = call
    return found


def measure(
    going: Sequence[Candidate], dim: int, device: torch.device
) -> dict[str, float]:
    """Time the candidates of a head dim beside the peers, whose times are returned."""
    import torch

    generator = torch.Generator(device).manual_seed(dim)
    shape = (HEADS, LENGTH, dim)
    inputs = [
        torch.randn(shape, generator=generator, device=device).bfloat16()
        for _ in range(3)
    ]
    own = [candidate for candidate in going if candidate.dim == dim]
    calls = {c.name: call for c in own if (call := prepared(c, inputs, device))}
    others = peers(inputs)
    timings = time_alternating({**calls, **others})
    for candidate in own:
        if candidate.name in calls:
            timing = timings[candidate.name]
            candidate.ms, candidate.spread = timing.median_ms, timing.spread
    return {name: timings[name].median_ms for name in others}


def summary(
    going: Sequence[Candidate], dim: int, others: dict[str, float]
) -> dict[str, Any]:
    """The fastest of each variant, and whether the bars are met."""
    best: dict[str, float | None] = {}
    for variant in VARIANTS:
        times = [c.ms for c in going if (c.variant, c.dim) == (variant, dim) and c.ms]
        best[variant] = min(times, default=None)
    unsafe, safe, causal = (best[variant] for variant in VARIANTS)
    cost = safe / unsafe - 1 if safe and unsafe else None
    share = causal / safe if safe and causal else None
    return {
        "d": dim,
        "ms": best,
        "peers_ms": others,
        "safe_cost": cost,
        "safe_cost_allowed": SAFE_COST[dim],
        "safe_is_cheap": cost is not None and cost <= SAFE_COST[dim],
        "causal_share": share,
        "causal_share_allowed": CAUSAL_SHARE,
        "causal_is_short": share is not None and share <= CAUSAL_SHARE,
    }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[1])
    parser.add_argument("--out", type=Path, required=True, help="the JSON file")
    parser.add_argument("--workers", type=int, help="compilers at a time")
    options = parser.parse_args(arguments)
    import torch

    going = list(candidates())
    with tempfile.TemporaryDirectory() as folder:
        build(going, Path(folder), options.workers)
        summaries: list[dict[str, Any]] = []
        for dim in DIMS if torch.cuda.is_available() else ():
            others = measure(going, dim, torch.device("cuda"))
            summaries.append(summary(going, dim, others))
    rows = [candidate.literal() for candidate in going]
    head = machine("bench.attention_safety")
    write_json(options.out, {"machine": head, "summary": summaries, "rows": rows})
    for candidate in going:
        time = f"{candidate.ms * 1e3:8.1f} us" if candidate.ms else "not timed: "
        print(f"{candidate.name:48} {time} {'; '.join(candidate.reasons)[:100]}")
    for row in summaries:
        print(row)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
