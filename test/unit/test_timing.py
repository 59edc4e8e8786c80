from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from cleave.lowering.timing import (
    LONGEST_SPIN_SECONDS,
    WARMUP_ROUNDS,
    Timing,
    TimingError,
    time_alternating,
)


@dataclass
class FakeStopwatch:
    """A device on which a call takes what it returns; the host needs `host_seconds`."""

    host_seconds: float = 0.0
    spins: list[float] = field(default_factory=list[float])

    def measure(self, call: Callable[[], object], spin_seconds: float) -> float | None:
        self.spins.append(spin_seconds)
        taken = call()
        assert isinstance(taken, float)
        return taken if spin_seconds >= self.host_seconds else None

    def wait(self) -> None: ...


def test_each_contender_gets_its_own_median() -> None:
    drift = iter(range(1000))
    contenders = {"slow": lambda: 9.0 + next(drift) % 3, "fast": lambda: 2.0}
    times = time_alternating(contenders, repeats=9, stopwatch=FakeStopwatch())
    assert times["fast"] == Timing((2.0,) * 9)
    assert times["slow"].median_ms == 10.0
    assert times["slow"].spread == pytest.approx(0.2)


def test_contenders_take_turns_and_none_is_always_first() -> None:
    calls: list[str] = []

    def contender(name: str) -> Callable[[], float]:
        def call() -> float:
            calls.append(name)
            return 1.0

        return call

    names = ("a", "b", "c")
    time_alternating(
        {name: contender(name) for name in names}, repeats=4, stopwatch=FakeStopwatch()
    )
    # Two calls each come before, to load code and to see what the host needs.
    turns = calls[2 * len(names) :]
    rounds = ["".join(turns[i : i + 3]) for i in range(0, len(turns), 3)]
    assert len(rounds) == WARMUP_ROUNDS + 4
    assert rounds[:4] == ["abc", "bca", "cab", "abc"]


def test_samples_of_the_warmup_are_dropped() -> None:
    early = iter([50.0] * (2 + WARMUP_ROUNDS))
    times = time_alternating(
        {"x": lambda: next(early, 1.0)}, repeats=3, stopwatch=FakeStopwatch()
    )
    assert times["x"].samples_ms == (1.0, 1.0, 1.0)


def test_a_spin_that_was_too_short_is_doubled_and_kept() -> None:
    watch = FakeStopwatch(host_seconds=1e-3)
    times = time_alternating({"x": lambda: 1.0}, repeats=4, stopwatch=watch)
    assert len(times["x"].samples_ms) == 4
    rejected = [spin for spin in watch.spins if spin < 1e-3]
    assert watch.spins == rejected + [watch.spins[-1]] * (WARMUP_ROUNDS + 4)
    assert watch.spins[1] == 2 * watch.spins[0]


def test_a_contender_that_synchronizes_cannot_be_timed() -> None:
    watch = FakeStopwatch(host_seconds=float("inf"))
    with pytest.raises(TimingError, match=r"peer: the host is not done .* 50 ms"):
        time_alternating({"peer": lambda: 1.0}, stopwatch=watch)
    assert watch.spins[-1] == LONGEST_SPIN_SECONDS


def test_no_contenders_no_times() -> None:
    assert time_alternating({}, stopwatch=FakeStopwatch()) == {}
