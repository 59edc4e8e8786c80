"""
How kernels are timed: cold caches, no launch overhead, contenders side by side.

Before each call the L2 is filled by *reading* 256 MB (writing would leave dirty lines,
whose write-back falls into the measured time). Then a kernel spins while the host puts
the start event, the call and the end event into the stream, so that the time between
the events is the GPU's alone. A sample counts only if the GPU was still spinning when
the host was done; otherwise the spin is made longer.

Contenders take turns in one process, each round beginning with another one, because a
GPU's clock moves by 2-3 % between runs: compare only within one call. Inputs must not
be zeros, on which tensor cores run faster than on data.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

FLUSH_BYTES = 256 * 2**20

# Rounds whose samples are dropped: clocks rise and caches of the host fill.
WARMUP_ROUNDS = 5

SHORTEST_SPIN_SECONDS = 50e-6
LONGEST_SPIN_SECONDS = 50e-3

# The spin counts clocks. At a lower clock than this it only takes longer.
SPIN_CLOCK_HZ = 2e9


class TimingError(RuntimeError):
    """A contender that cannot be timed; the message names it."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The samples of one contender, in milliseconds of GPU time, in order of time."""

    samples_ms: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        """The time that counts."""
        return statistics.median(self.samples_ms)

    @property
    def spread(self) -> float:
        """Distance of the quartiles over the median: less is noise."""
        low, _, high = statistics.quantiles(self.samples_ms, n=4)
        return (high - low) / self.median_ms


class Stopwatch(Protocol):
    """What `time_alternating` needs of a device."""

    def measure(self, call: Callable[[], object], spin_seconds: float) -> float | None:
        """
        Milliseconds that a call takes on the device with cold caches. None if the
        device stopped spinning before the host had put the call into its stream.
        """
        ...

    def wait(self) -> None:
        """Wait for all work on the device."""
        ...


class CudaStopwatch:
    """The method above on a CUDA device, on PyTorch's current stream."""

    def __init__(self, device: int | None = None) -> None:
        import torch

        self._device = torch.cuda.current_device() if device is None else device
        self._cold = torch.randn(FLUSH_BYTES // 4, device=f"cuda:{self._device}")
        self._largest = torch.empty((), device=f"cuda:{self._device}")
        self._start = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)

    def measure(self, call: Callable[[], object], spin_seconds: float) -> float | None:
        import torch

        torch.amax(self._cold, dim=0, out=self._largest)
        # PyTorch's own spin kernel; its tests use it for the same purpose.
        spin: Callable[[int], None] = getattr(torch.cuda, "_sleep")  # noqa: B009
        spin(int(spin_seconds * SPIN_CLOCK_HZ))
        self._start.record()
        call()
        self._end.record()
        host_was_ahead = not self._start.query()
        self._end.synchronize()
        return self._start.elapsed_time(self._end) if host_was_ahead else None

    def wait(self) -> None:
        import torch

        torch.cuda.synchronize(self._device)


def time_alternating(
    contenders: Mapping[str, Callable[[], object]],
    *,
    repeats: int = 40,
    stopwatch: Stopwatch | None = None,
) -> dict[str, Timing]:
    """
    Time contenders against each other, `repeats` samples each; 40 give a sound median.

    A contender is a call without arguments, whose tensors are bound and whose memory is
    allocated. Returns a Timing for each name. Raises TimingError for a contender that
    the host cannot put into the stream in 50 ms, such as one that synchronizes.
    """
    watch = CudaStopwatch() if stopwatch is None else stopwatch
    spins = {name: _spin_for(call, watch) for name, call in contenders.items()}
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(WARMUP_ROUNDS + repeats):
        first = turn % len(names) if names else 0
        for name in names[first:] + names[:first]:
            sample, spins[name] = _sample(name, contenders[name], spins[name], watch)
            if turn >= WARMUP_ROUNDS:
                samples[name].append(sample)
    return {name: Timing(tuple(found)) for name, found in samples.items()}


def _spin_for(call: Callable[[], object], watch: Stopwatch) -> float:
    """Twice what the host needs for a call, once it has been called before."""
    call()
    watch.wait()
    start = time.perf_counter()
    call()
    host_seconds = time.perf_counter() - start
    watch.wait()
    return min(SHORTEST_SPIN_SECONDS + 2 * host_seconds, LONGEST_SPIN_SECONDS)


def _sample(
    name: str, call: Callable[[], object], spin_seconds: float, watch: Stopwatch
) -> tuple[float, float]:
    """A sample, and the spin that was long enough for it."""
    while True:
        sample = watch.measure(call, spin_seconds)
        if sample is not None:
            return sample, spin_seconds
        if spin_seconds >= LONGEST_SPIN_SECONDS:
            raise TimingError(
                f"{name}: the host is not done with a call when the GPU has waited "
                f"{LONGEST_SPIN_SECONDS * 1e3:.0f} ms; it may synchronize"
            )
        spin_seconds = min(2 * spin_seconds, LONGEST_SPIN_SECONDS)
