from dataclasses import replace

import pytest

from cleave.lowering.hardware import load_hardware
from cleave.lowering.kernel_report import (
    KernelReport,
    count_instructions,
    legality,
    parse_ptxas,
    raised_registers,
    split_cuda,
    split_sass,
)

H200 = load_hardware("h200")

# nvcc 13.0 on a kernel that spills, and one that does not.
LOG = """\
ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are \
serialized due to insufficient register resources for the function 'chain_kernel'
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'combine' for 'sm_90a'
ptxas info    : Function properties for combine
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 24 registers, used 0 barriers
ptxas info    : Compile time = 8.024 ms
ptxas info    : Compiling entry function 'chain_kernel' for 'sm_90a'
ptxas info    : (C7507) Potential Performance Loss: 'setmaxnreg' ignored to maintain \
minimum register requirements.
ptxas info    : Function properties for chain_kernel
    160 bytes stack frame, 288 bytes spill stores, 272 bytes spill loads
ptxas info    : Used 104 registers, used 4 barriers, 176 bytes cumulative stack size, \
1024 bytes smem
ptxas info    : Compile time = 47.675 ms
"""

CUDA = """\
#include <tl_templates/cuda/instruction/wgmma.h>
extern "C" __global__ void chain_kernel(__grid_constant__ const CUtensorMap K_desc);
extern "C" __global__ void __launch_bounds__(384, 1) chain_kernel(\
__grid_constant__ const CUtensorMap K_desc) {
  if (((int)threadIdx.x) < 128) {
    tl::warpgroup_reg_dealloc<24>();
    tl::tma_load(K_desc, mbarrier[0], Ks, 0, 0);
  } else {
    tl::warpgroup_reg_alloc<240>();
    tl::wgmma_ss<64, 128, 16>(desc_a, desc_b, s, 1);
    tl::wgmma_rs<64, 64, 16>(p, desc_b, o, 1);
    s[0] = exp2f(s[0]);
    tl::tma_store((&(O[0])), (&(Os[0])), 16384);
    tl::tma_store_arrive();
    tl::tma_store_wait<0, true>();
  }
}

extern "C" __global__ void combine(float* O);
extern "C" __global__ void combine(float* O) {
  tl::cp_async_gs<16>(a, b);
  tl::mma_sync<16>(a, b);
}
"""

SASS = """\
\tcode for sm_90a
\t\tFunction : combine
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDGSTS.E.BYPASS.128 [R0], desc[UR4][R2.64] ;
        /*0020*/                   HMMA.16816.F32 R4, R8, R12, R4 ;
\t\tFunction : chain_kernel
        /*0000*/                   UTMALDG.3D [UR8], [UR6], desc[UR4] ;
        /*0010*/                   HGMMA.64x128x16.F32 R24, gdesc[UR4], R24, gsb0 ;
        /*0020*/                   HGMMA.64x64x16.F32 R88, R4, gdesc[UR4], R88, gsb0 ;
        /*0030*/                   MUFU.EX2 R4, R4 ;
        /*0040*/                   UTMASTG.3D [UR8], [UR4] ;
"""

CHAIN = KernelReport(
    name="chain_kernel",
    arch="sm_90a",
    threads=384,
    registers=168,
    raised_registers=240,
    spill_store_bytes=0,
    spill_load_bytes=0,
    stack_bytes=0,
    static_smem_bytes=1024,
    dynamic_smem_bytes=98304,
    serialized=(),
    notes=(),
    divergent=(),
    instructions={"wgmma": 2, "tma": 1, "mma_sync": 0, "cp_async": 0},
    instruction_source="sass",
)


def test_ptxas_figures_of_each_kernel() -> None:
    figures = parse_ptxas(LOG)
    assert list(figures) == ["combine", "chain_kernel"]
    chain = figures["chain_kernel"]
    assert chain.registers == 104
    assert (chain.spill_store_bytes, chain.spill_load_bytes) == (288, 272)
    assert (chain.stack_bytes, chain.static_smem_bytes) == (176, 1024)
    assert len(chain.serialized) == 1
    assert chain.serialized[0].startswith("(C7512) Potential Performance Loss")
    assert len(chain.notes) == 1
    assert "setmaxnreg" in chain.notes[0]


def test_warnings_stay_with_the_kernel_that_they_name() -> None:
    combine = parse_ptxas(LOG)["combine"]
    assert (combine.registers, combine.static_smem_bytes) == (24, 0)
    assert (combine.serialized, combine.notes) == ((), ())


def test_instructions_are_counted_alike_in_cuda_and_sass() -> None:
    cuda, sass = split_cuda(CUDA), split_sass(SASS)
    assert list(cuda) == ["chain_kernel", "combine"]
    assert set(sass) == set(cuda)
    used = {"wgmma": 2, "tma": 1, "tma_store": 1, "exp2": 1}
    for family, count in count_instructions(cuda["chain_kernel"], "cuda").items():
        assert count == used.get(family, 0), family
    for name, text in sass.items():
        assert count_instructions(text, "sass") == count_instructions(
            cuda[name], "cuda"
        )


def test_registers_that_consumers_ask_for() -> None:
    cuda = split_cuda(CUDA)
    assert raised_registers(cuda["chain_kernel"]) == 240
    assert raised_registers(cuda["combine"]) is None


def test_a_report_survives_its_literal() -> None:
    report = replace(CHAIN, serialized=("(C7510)",), divergent=("a", "b"))
    assert KernelReport.parse(report.literal()) == report


def test_a_good_kernel_is_legal() -> None:
    assert legality(CHAIN, H200, ("wgmma", "tma")) == []


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"spill_store_bytes": 288, "spill_load_bytes": 272, "stack_bytes": 176},
            "registers spill: 288 bytes stored, 272 loaded, at 168 registers",
        ),
        ({"stack_bytes": 16}, "stack frame of 16 bytes"),
        ({"serialized": ("(C7510) why",)}, "wgmma is serialized: (C7510) why"),
        ({"divergent": ("if (x)",)}, "threads wait in vain in `if (x)`"),
        (
            {"dynamic_smem_bytes": 232448},
            "SMEM of 233472 bytes, a threadblock has 232448",
        ),
        (
            {"threads": 1152, "registers": 32},
            "1152 threads, a threadblock has 1024",
        ),
        (
            {"threads": 512},
            "86016 registers a threadblock, a multiprocessor has 65536",
        ),
        (
            {"instructions": {"wgmma": 0, "tma": 1, "mma_sync": 12}},
            "wgmma is required, used: tma, mma_sync",
        ),
    ],
)
def test_each_rule_gives_one_reason(fields: dict[str, object], reason: str) -> None:
    report = KernelReport.parse({**CHAIN.literal(), **fields})
    assert legality(report, H200, ("wgmma",)) == [reason]


def test_the_full_smem_is_legal() -> None:
    report = replace(CHAIN, dynamic_smem_bytes=H200.smem_bytes_per_block - 1024)
    assert legality(report, H200) == []
