"""Barriers in branches that only some of their threads take."""

import pytest

from cleave.lowering.divergence import divergent_barriers

KERNEL = """
  __syncthreads();
  if (((int)threadIdx.x) < 128) {{
    tl::warpgroup_reg_dealloc<24>();
    {loads}
  }} else {{
    for (int i = 0; i < 8; ++i) {{
      tl::__sync_thread_partial(3, 256);
      sum = tl::AllReduce<tl::SumOp, 256, 128, 128, tl::NamedBarrier<256>>::run(sum);
      if ((((int)threadIdx.x) >> 7) == 1) {{
        {part}
      }}
      {computation}
    }}
    if (tl::tl_shuffle_elect<256>()) {{
      tl::fence_proxy_async();
    }}
  }}
  __syncthreads();
"""
ALL, SOME = "__syncthreads();", "tl::__sync_thread_partial(3, 256);"
REDUCED = "x = tl::AllReduce<tl::MaxOp, 256, 128, 0, tl::NamedBarrier<256>>::run(x);"
SHUFFLED = "x = tl::AllReduce<tl::MaxOp, 4, 1, 0, tl::NamedBarrier<256>>::run(x);"
ROLES = "if (((int)threadIdx.x) < 128)"
PART = "if ((((int)threadIdx.x) >> 7) == 1)"


def found(**places: str) -> tuple[str, ...]:
    text = {"loads": ";", "part": ";", "computation": ";"} | places
    return divergent_barriers(KERNEL.format(**text))


def test_barriers_of_the_threads_that_are_there() -> None:
    assert found() == ()
    assert found(computation=SOME) == ()
    assert found(part=SHUFFLED) == ()


@pytest.mark.parametrize(
    ("place", "barrier", "branches"),
    [
        ("loads", ALL, (ROLES,)),
        ("computation", ALL, (ROLES,)),
        ("part", SOME, (PART,)),
        ("part", REDUCED, (PART,)),
        ("part", ALL, (ROLES, PART)),
    ],
)
def test_barriers_of_threads_that_never_come(
    place: str, barrier: str, branches: tuple[str, ...]
) -> None:
    assert found(**{place: barrier}) == branches


def test_a_branch_of_a_kernel_whose_warps_do_all_the_same() -> None:
    branch = "if ((((int)threadIdx.x) >> 7) == 0)"
    text = f"{branch} {{\n  __syncthreads();\n  x[0] = 1;\n}}\n__syncthreads();\n"
    assert divergent_barriers(text) == (branch,)
