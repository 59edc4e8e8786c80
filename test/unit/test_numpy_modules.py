"""Generated modules executed in NumPy, and what that would notice."""

from pathlib import Path

import numpy as np
import pytest

from cleave.lowering.generated import load_generated
from cleave.lowering.numpy_algebra import ExecutionError
from cleave.lowering.numpy_modules import execute_module

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "test/filecheck/targets/tilelang"

SUM = """
import tilelang
import tilelang.language as T

PLAN = {
    "name": "sum",
    "args": [{"name": "x", "shape": ["M", 100], "dtype": "float16"}],
    "results": [{"name": "o", "shape": ["M", 1], "dtype": "float32"}],
    "temporaries": [],
    "kernels": [
        {
            "function": "kernel_0",
            "args": ["x", {"name": "o", "shape": ["M"]}],
            "pass_configs": {},
            "requires": [],
        }
    ],
    "sizes": {},
}


def kernel_0():
    M = T.dynamic("M")

    @T.macro
    def step(g_x, x, e, total, j):
        T.copy(g_x, x)
        for r, c in T.Parallel(32, 64):
            e[r, c] = T.exp2(T.cast(x[r, c], "float32"))
        for r, c in T.Parallel(32, 64):
            e[r, c] = T.if_then_else(c < 100 - j * 64, e[r, c], 0.0)
        T.reduce_sum(e, total, dim=1, clear=False)

    @T.prim_func
    def kernel(x: T.Tensor((M, 100), "float16"), o: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 32), threads=128) as i:
            tile = T.alloc_shared((32, 64), "float16")
            e = T.alloc_fragment((32, 64), "float32")
            total = T.alloc_fragment((32,), "float32")
            T.fill(total, 0.0)
            for j in T.Pipelined(2, num_stages=2):
                step(x[i * 32 : (i + 1) * 32, j * 64 : (j + 1) * 64], tile, e, total, j)
            T.copy(total, o[i * 32 : (i + 1) * 32])

    return kernel
"""
X = np.random.default_rng(0).standard_normal((50, 100)).astype(np.float16)


def summed(text: str, folder: Path) -> float:
    """The largest error of a module that should sum powers of 2 in rows of 100."""
    file = folder / "sum.py"
    file.write_text(text)
    (found,) = execute_module(load_generated(file), [X], {"M": 50})
    expected = np.exp2(X.astype(np.float64)).sum(axis=1, keepdims=True)
    return float(np.max(np.abs(found / expected - 1)))


def test_loads_and_stores_are_predicated(tmp_path: Path) -> None:
    assert summed(SUM, tmp_path) < 1e-6


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("c < 100 - j * 64", "c < 128"),
        ("(j + 1) * 64]", "(j + 1) * 64 - 1]"),
        ("x[i * 32 : (i + 1) * 32, j", "x[0:32, j"),
        ("            T.fill(total, 0.0)\n", ""),
        (", clear=False", ""),
        ("T.ceildiv(M, 32)", "1"),
    ],
    ids=["tail", "slice", "offset", "poison", "clear", "grid"],
)
def test_mistakes_show(old: str, new: str, tmp_path: Path) -> None:
    assert old in SUM
    try:
        error = summed(SUM.replace(old, new), tmp_path)
    except ValueError:  # shapes that do not fit
        return
    assert not error < 1e-3


def test_bulk_copies_begin_at_multiples_of_16_bytes(tmp_path: Path) -> None:
    """
    A GPU stops at any other with an illegal instruction (TileLang issue 2527). Rows of
    200 bytes, by whose stride TileLang decides, are no multiple: rows of 208 are.
    """
    wide = SUM.replace("100]", "104]").replace("(M, 100)", "(M, 104)")
    x = np.pad(X, ((0, 0), (0, 4)))
    for begin, options in ((8, ""), (4, ", disable_tma=True"), (4, "")):
        text = wide.replace("T.copy(g_x, x)", f"T.copy(g_x, x{options})")
        text = text.replace("j * 64 :", f"j * 64 + {begin} :")
        text = text.replace("(j + 1) * 64]", f"(j + 1) * 64 + {begin}]")
        (tmp_path / "sum.py").write_text(text)
        module = load_generated(tmp_path / "sum.py")
        if begin == 4 and not options:
            with pytest.raises(ExecutionError, match="begin at element 4"):
                execute_module(module, [x], {"M": 50})
        else:
            execute_module(module, [x], {"M": 50})


def test_what_has_no_meaning_is_named(tmp_path: Path) -> None:
    text = SUM.replace("T.fill(total, 0.0)", "T.mbarrier_wait_parity(0, 1)")
    with pytest.raises(ExecutionError, match=r"T\.mbarrier_wait_parity has no meaning"):
        summed(text, tmp_path)


def test_two_kernels_with_a_temporary_and_a_dynamic_dim() -> None:
    module = load_generated(GOLDEN / "two_kernels.py")
    rng = np.random.default_rng(1)
    x = rng.standard_normal((70, 4096)).astype(np.float16)
    w = rng.standard_normal((4096, 256)).astype(np.float16)
    (found,) = execute_module(module, [x, w], {"M": 70})
    expected = x.astype(np.float64) @ w.astype(np.float64)
    assert found.dtype == np.float16
    assert np.max(np.abs(found - expected)) < 1e-3 * np.max(np.abs(expected))
