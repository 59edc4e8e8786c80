"""
Hardware descriptions: what scheduling, legality and reports know about a GPU.

A description is a TOML file beside this one; a new GPU is a new file. Every figure in
it states its source.

    >>> h200 = load_hardware("h200")
    >>> h200.multiprocessors, h200.source("launch_seconds")
    (132, 'measured: an empty kernel')
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, cast

FOLDER = Path(__file__).parent


class HardwareError(ValueError):
    """A description that is missing, incomplete or malformed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """
    One GPU. Rates are per GPU and second; those per clock are per multiprocessor.

    `instructions` holds the instruction families that kernels may rely on: mma_sync,
    cp_async, wgmma, tma. `launch_seconds` is what an empty kernel takes by the method
    of `cleave.lowering.timing`, `next_launch_seconds` what another behind it adds.

    The figures behind them are what kernels are ranked by. `lanes_per_clock` counts f32
    instructions of single threads, and `tensor_instruction_clocks` pass between two
    instructions of the tensor cores. A warpgroup waits `product_wait_clocks` for a
    matmul it has issued, `row_exchange_clocks` for a sum over the threads of a row, and
    `barrier_clocks` for all threads of its block. `block_start_seconds` pass between
    the end of one threadblock and the first data of the next.
    """

    name: str
    arch: str
    capability: tuple[int, int]
    instructions: frozenset[str]
    sources: Mapping[str, str]

    multiprocessors: int
    clock_hz: float
    tensor_flops_f16: float
    tensor_flops_tf32: float
    tensor_flops_per_clock_f16: int
    vector_flops_f32: float
    special_per_clock: int
    memory_bytes: int
    memory_bytes_per_second: float
    memory_alignment_bytes: int
    memory_line_bytes: int
    l2_bytes: int
    smem_bytes_per_block: int
    smem_bytes_per_multiprocessor: int
    smem_bytes_reserved_per_block: int
    smem_bytes_per_clock: int
    registers_per_multiprocessor: int
    registers_per_thread: int
    threads_per_block: int
    threads_per_multiprocessor: int
    blocks_per_multiprocessor: int
    launch_seconds: float
    next_launch_seconds: float
    loaded_clock_hz: float
    lanes_per_clock: int
    tensor_instruction_clocks: int
    product_wait_clocks: int
    row_exchange_clocks: int
    barrier_clocks: int
    l2_bytes_per_clock: int
    l2_latency_seconds: float
    memory_latency_seconds: float
    block_start_seconds: float

    def source(self, figure: str) -> str:
        """Where a figure comes from. Raises KeyError for what is no figure."""
        return self.sources[figure]

    def floor_seconds(self, flops: float, bytes: float) -> float:
        """
        The least time for this much f16 tensor-core work and memory traffic.

        The larger of the two times, as if they overlapped perfectly; the cost of a
        launch is not in it.
        """
        return max(flops / self.tensor_flops_f16, bytes / self.memory_bytes_per_second)


def available_hardware() -> tuple[str, ...]:
    """The names that `load_hardware` takes."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@cache
def load_hardware(name: str) -> Hardware:
    """The description called `name` ("h200"). Raises HardwareError if there is none."""
    if name not in available_hardware():
        raise HardwareError(
            f"no hardware description '{name}'; there are "
            + ", ".join(available_hardware())
        )
    return parse_hardware((FOLDER / f"{name}.toml").read_text(encoding="utf-8"), name)


def hardware_for_arch(arch: str) -> Hardware:
    """The first description of an architecture ("sm_90a"). Raises HardwareError."""
    for name in available_hardware():
        if load_hardware(name).arch == arch:
            return load_hardware(name)
    raise HardwareError(f"no hardware description for {arch}")


def current_hardware(device: int | None = None) -> Hardware:
    """
    The description of the CUDA device that PyTorch uses, by compute capability.

    Raises HardwareError if there is no device or no description of its architecture.
    """
    import torch

    if not torch.cuda.is_available():
        raise HardwareError("no CUDA device")
    return hardware_of_capability(torch.cuda.get_device_capability(device))


def hardware_of_capability(capability: tuple[int, int]) -> Hardware:
    """The first description of a compute capability. Raises HardwareError."""
    for name in available_hardware():
        if load_hardware(name).capability == capability:
            return load_hardware(name)
    major, minor = capability
    raise HardwareError(
        f"no hardware description for compute capability {major}.{minor}"
    )


def parse_hardware(text: str, name: str) -> Hardware:
    """The description that a TOML text gives; HardwareError names a wrong figure."""
    try:
        data: dict[str, Any] = tomllib.loads(text)
        stated = cast("dict[str, list[Any]]", data.pop("figures"))
        values: dict[str, Any] = {
            "name": data.pop("name"),
            "arch": data.pop("arch"),
            "capability": tuple(data.pop("capability")),
            "instructions": frozenset(data.pop("instructions")),
        }
    except tomllib.TOMLDecodeError as error:
        raise HardwareError(f"{name}: {error}") from None
    except KeyError as error:
        raise HardwareError(f"{name}: {error.args[0]} is missing") from None
    sources: dict[str, str] = {}
    for field in fields(Hardware):
        if field.name in values or field.name == "sources":
            continue
        try:
            value, source = stated.pop(field.name)
        except KeyError:
            raise HardwareError(f"{name}: {field.name} is missing") from None
        except (TypeError, ValueError):
            raise HardwareError(
                f"{name}: {field.name} is not [value, source]"
            ) from None
        if not isinstance(source, str) or not source:
            raise HardwareError(f"{name}: {field.name} states no source")
        numbers = int if field.type == "int" else (int, float)
        if not isinstance(value, numbers) or isinstance(value, bool) or value <= 0:
            raise HardwareError(f"{name}: {field.name} is {value!r}")
        values[field.name] = value
        sources[field.name] = source
    if unknown := sorted({*stated, *data}):
        raise HardwareError(f"{name}: unknown figure {unknown[0]}")
    return Hardware(sources=sources, **values)
