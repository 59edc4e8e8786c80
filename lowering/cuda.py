"""
From a generated module to CUDA text, machine code and a library, without a GPU.

`lower` stops at CUDA text. `build` goes on to a folder with, for each kernel, its text
(`.cu`), machine code (`.cubin`) and a shared library that launches it (`.so`). A kernel
takes 0.2-0.8 s to lower, 1.2-2 s in nvcc and 0.2 s to link on one core; importing
TileLang takes 1-2 s once.

Which pass configs to print, from what TileLang 0.1.15 and nvcc 13.0 make of attention,
MatMul+MatMul, SwiGLU and GEMM for sm_90a:

* None of them: legacy warp specialization. A producer warpgroup with TMA, consumers of
  240 registers (two; 160 for three), an output tile that takes over a dead input's
  SMEM, stmatrix in the epilogue. It knows one loop: of siblings only the first is
  specialized, and in a nest an accumulator's initialization may sink into it.
* `"tl.enable_auto_warp_specialization": "role_based"`: nests, siblings and persistent
  loops are right. It does not merge SMEM (attention d=128 with 128x176 tiles: 240 KB
  against 208 KB) and stores the output without stmatrix. It sizes registers for as many
  threadblocks a multiprocessor as SMEM admits: under 113 KB each, consumers get 104 or
  72, and attention d=64 or MatMul+MatMul spill and serialize. Such a kernel has to say
  `T.annotate_min_blocks_per_sm(1)`; its consumers then get 240. It skips functions with
  two `T.Kernel`, and bodies under an `if`, with no more than a line on stderr.
* `"tl.disable_warp_specialized": True`: cp.async and no TMA, but two threadblocks share
  a multiprocessor where 256 threads need 128 registers.
* `"tl.device_compile_flags": "--ftz=true"` makes exp2 a single MUFU.EX2. Fast math does
  that too, and makes divisions and square roots approximate.
"""

from __future__ import annotations

import importlib.metadata
import logging
import math
import os
import shlex
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cleave.lowering.built_plan import MANIFEST, MODULE, BuiltKernel, BuiltPlan
from cleave.lowering.divergence import divergent_barriers
from cleave.lowering.generated import GeneratedModule
from cleave.lowering.kernel_report import (
    InstructionSource,
    KernelReport,
    count_instructions,
    name_of,
    parse_ptxas,
    raised_registers,
    split_cuda,
    split_sass,
)
from cleave.lowering.plan import KernelSpec, PassConfig
from cleave.lowering.toolchain import (
    ToolchainError,
    compile_cubin,
    disassemble,
    find_disassembler,
    nvcc_version,
    require_nvcc,
    tilelang_is_installed,
)

# The hook by which TileLang hands CUDA text to a compiler and takes a cubin back.
COMPILE_HOOK = "tilelang_callback_cuda_compile"

# Where TileLang makes folders as it is imported, by default in the home folder.
CACHE_VARIABLE = "TILELANG_CACHE_DIR"

# The hook, and the environment, are global to the process.
_HOOK_LOCK = threading.Lock()
_ENVIRONMENT_LOCK = threading.Lock()


class LoweringError(RuntimeError):
    """TileLang refused a kernel; the message names the function and is one line."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What TileLang's host code passes at a launch: threads a block, dynamic SMEM."""

    threads: int
    dynamic_smem_bytes: int


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """CUDA text and, for each `__global__` function in it, how it is launched."""

    function: str
    cuda: str
    launches: Mapping[str, Launch]


def lower(module: GeneratedModule, arch: str) -> list[LoweredKernel]:
    """
    The CUDA text of each kernel of a module for `arch` ("sm_90a"); nvcc is not needed.

    Raises LoweringError if TileLang is not installed or refuses a kernel,
    GeneratedModuleError if the module does not execute.
    """
    _require_tilelang()
    with _without_home():
        functions = module.functions()
        return [
            _lowered(kernel, _tilelang_lower(kernel, functions[kernel.function], arch))
            for kernel in module.plan.kernels
        ]


def build(module: GeneratedModule, arch: str, folder: Path) -> BuiltPlan:
    """
    Compile a module into `folder`, which is made, or whose build is replaced.

    The module's text goes into the folder as well. Raises what `lower` raises, and
    ToolchainError if nvcc is missing or refuses a kernel. TileLang's own caches are
    neither read nor written.
    """
    nvcc = require_nvcc()
    _require_tilelang()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    (folder / MODULE).write_text(module.text, encoding="utf-8")
    with _without_home():
        functions = module.functions()
        kernels = tuple(
            _build_kernel(kernel, functions[kernel.function], arch, folder, nvcc)
            for kernel in module.plan.kernels
        )
    versions = {
        "tilelang": importlib.metadata.version("tilelang"),
        "nvcc": nvcc_version(nvcc),
    }
    built = BuiltPlan(folder, module.plan, arch, versions, kernels)
    built.save()
    return built


def _require_tilelang() -> None:
    if not tilelang_is_installed():
        raise LoweringError("TileLang is not installed")


def nvcc_options(pass_configs: Mapping[str, PassConfig]) -> list[str]:
    """The compiler options that TileLang derives from a kernel's pass configs."""
    options: list[str] = []
    if pass_configs.get("tl.enable_fast_math"):
        options.append("--use_fast_math")
    if (level := pass_configs.get("tl.ptxas_register_usage_level")) is not None:
        options.append(f"-Xptxas=--register-usage-level={level}")
    if flags := pass_configs.get("tl.device_compile_flags"):
        options += shlex.split(str(flags))
    return options


def _build_kernel(
    kernel: KernelSpec,
    function: Callable[[], Any],
    arch: str,
    folder: Path,
    nvcc: Path,
) -> BuiltKernel:
    source = folder / f"{kernel.function}.cu"
    options = [*_include_options(), *nvcc_options(kernel.pass_configs)]
    nvcc_seconds = 0.0
    log = ""
    refused: ToolchainError | None = None

    def compile_text(text: str, *_context: object) -> bytearray:
        nonlocal nvcc_seconds, log, refused
        source.write_text(text, encoding="utf-8")
        start = time.perf_counter()
        try:
            cubin, log = compile_cubin(source, arch, options, nvcc)
        except ToolchainError as error:
            # Kept here: TVM turns what a hook raises into an error of its own.
            refused = error
            raise
        nvcc_seconds = time.perf_counter() - start
        return bytearray(cubin)

    start = time.perf_counter()
    try:
        with _compile_hook(compile_text):
            artifact = _tilelang_lower(kernel, function, arch, compile_device=True)
    except LoweringError:
        if refused is not None:
            raise refused from None
        raise
    lower_seconds = time.perf_counter() - start - nvcc_seconds
    library = folder / f"{kernel.function}.so"
    tvm: Any = import_module("tilelang").tvm
    tvm.runtime.Executable(artifact.rt_mod).export_library(str(library))
    reports = _reports(_lowered(kernel, artifact), arch, log, source)
    return BuiltKernel(kernel.function, library, reports, lower_seconds, nvcc_seconds)


def _reports(
    lowered: LoweredKernel, arch: str, log: str, source: Path
) -> tuple[KernelReport, ...]:
    disassembler = find_disassembler()
    texts = bodies = split_cuda(lowered.cuda)
    spelling: InstructionSource = "cuda"
    if disassembler is not None:
        texts = split_sass(disassemble(source.with_suffix(".cubin"), disassembler))
        spelling = "sass"
    figures = parse_ptxas(log)
    return tuple(
        KernelReport(
            name=name_of(lowered.function, name, lowered.launches),
            arch=arch,
            threads=launch.threads,
            registers=figures[name].registers,
            raised_registers=raised_registers(bodies[name]),
            spill_store_bytes=figures[name].spill_store_bytes,
            spill_load_bytes=figures[name].spill_load_bytes,
            stack_bytes=figures[name].stack_bytes,
            static_smem_bytes=figures[name].static_smem_bytes,
            dynamic_smem_bytes=launch.dynamic_smem_bytes,
            serialized=figures[name].serialized,
            notes=figures[name].notes,
            divergent=divergent_barriers(bodies[name]),
            instructions=count_instructions(texts[name], spelling),
            instruction_source=spelling,
        )
        for name, launch in lowered.launches.items()
    )


def _tilelang_lower(
    kernel: KernelSpec,
    function: Callable[[], Any],
    arch: str,
    *,
    compile_device: bool = False,
) -> Any:
    """TileLang's artifact: CUDA text and, if compiled, a module that launches it."""
    configs = dict(kernel.pass_configs)
    try:
        tilelang: Any = import_module("tilelang")
        tvm = tilelang.tvm
        target = tvm.target.Target({"kind": "cuda", "arch": arch})
        with _quiet(), tvm.transform.PassContext(opt_level=3, config=configs), target:
            return tilelang.lower(
                function(),
                target=target,
                enable_host_codegen=compile_device,
                enable_device_compile=compile_device,
            )
    # Any kind of error comes out of TVM; which kernel it was is what matters here.
    except Exception as error:
        reason = next(iter(str(error).strip().splitlines()), "")
        raise LoweringError(
            f"TileLang refuses {kernel.function}: {type(error).__name__}: {reason}"
        ) from error


def _lowered(kernel: KernelSpec, artifact: Any) -> LoweredKernel:
    launches: dict[str, Launch] = {}
    for name, function in artifact.device_mod.functions.items():
        extents = function.attrs["thread_extent"]
        threads = (int(extents[axis]) for axis in extents if axis.startswith("thread"))
        smem = function.attrs.get("dyn_shared_memory_buf")
        launches[str(name.name_hint)] = Launch(
            math.prod(threads), 0 if smem is None else int(smem)
        )
    return LoweredKernel(kernel.function, str(artifact.kernel_source), launches)


def _include_options() -> list[str]:
    environment: Any = import_module("tilelang.env")
    folders = (environment.TILELANG_TEMPLATE_PATH, environment.CUTLASS_INCLUDE_DIR)
    return [f"-I{folder}" for folder in folders]


@contextmanager
def _without_home() -> Generator[None]:
    """Let TileLang write into a folder that goes, unless one is stated."""
    with _ENVIRONMENT_LOCK:
        if os.environ.get(CACHE_VARIABLE):
            yield
            return
        with TemporaryDirectory(prefix="cleave-") as folder:
            os.environ[CACHE_VARIABLE] = folder
            try:
                yield
            finally:
                del os.environ[CACHE_VARIABLE]


@contextmanager
def _quiet() -> Generator[None]:
    """Without TileLang's log, which shows the whole source of a refused kernel."""
    logger = logging.getLogger("tilelang")
    silence: list[logging.Handler] = [logging.NullHandler()]
    handlers, logger.handlers = logger.handlers, silence
    try:
        yield
    finally:
        logger.handlers = handlers


@contextmanager
def _compile_hook(compile_text: Callable[..., bytearray]) -> Generator[None]:
    """Let TileLang compile with this function for a while."""
    tvm_ffi: Any = import_module("tvm_ffi")
    with _HOOK_LOCK:
        before = tvm_ffi.get_global_func(COMPILE_HOOK)
        tvm_ffi.register_global_func(COMPILE_HOOK, compile_text, override=True)
        try:
            yield
        finally:
            tvm_ffi.register_global_func(COMPILE_HOOK, before, override=True)
