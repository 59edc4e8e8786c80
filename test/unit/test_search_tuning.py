"""The choice among plans: what is rejected, and in which order, on a device and not."""

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any

import pytest

from cleave.dialects.algebra.graph import GraphOp
from cleave.lowering.compilation.accuracy import DRAWINGS, NumericCheck
from cleave.lowering.compilation.device import NoDeviceError
from cleave.lowering.compilation.device_check import DoesNotFitError
from cleave.lowering.compilation.device_worker import CandidateError, Measured
from cleave.lowering.compilation.wanted import CompilationError
from cleave.lowering.compile_workers import CompileJob, CompileOutcome
from cleave.lowering.hardware import load_hardware
from cleave.lowering.search import tuning
from cleave.lowering.search.candidates import PlannedCandidate
from cleave.lowering.search.gate_check import GraphGate
from cleave.lowering.search.searching import inexact_note
from cleave.lowering.search.tuning import Tuning, tune
from cleave.lowering.search.unfused import NO_UNFUSED
from cleave.passes.stabilize_exp import stabilize
from cleave.tools.graph_file import parse_graph

SCALED = """
algebra.graph @scaled [M, N] where [M = 256, N = 128]
    (%x: !algebra.tensor<[M, N], f16>) -> (!algebra.tensor<[M, N], f16>) {
  %e = algebra.exp %x
  %l = algebra.reduce_sum %e dim 1
  %o = algebra.div %e, %l
  algebra.return %o
}"""

Tune = Callable[..., Tuning]
DIED = "compilation died (SIGKILL)"


def check(*reasons: str) -> NumericCheck:
    return NumericCheck("device", {}, DRAWINGS[0], [0.0], [1.0], reasons)


def _constant(value: Any) -> Callable[..., Any]:
    def call(*_: object, **__: object) -> Any:
        return value

    return call


class Gate:
    """A numerical gate that refuses the plans of these numbers."""

    refused: Sequence[int] = ()
    lost: str | None = None

    def __init__(self, graph: GraphOp) -> None: ...

    def loss(self) -> str | None:
        return self.lost

    def reason(self, pieces: int) -> str | None:
        return "inexact for tiny values" if pieces in self.refused else None


@pytest.fixture
def tune_plans(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Tune:
    """
    `tune_plans(builds, checks, times)` for plans that build so (a list of faults, or a
    reason as text), compute so and take so many milliseconds, 0 if they hang. A plan
    that is timed although it is wrong fails the test. Only the `first` are tried at
    once, and the `last` of them last.
    """

    def run(
        builds: Sequence[list[str] | str],
        checks: Sequence[NumericCheck | Exception],
        times: Sequence[float],
        refused: Sequence[int] = (),
        on_device: bool | Exception = True,
        library: int | None = None,
        first: int | None = None,
        unfused: int | None = None,
        last: int = 0,
        deadline: float | None = None,
    ) -> Tuning:
        def compile_all(jobs: Sequence[CompileJob], **_: Any) -> list[CompileOutcome]:
            outcomes: list[CompileOutcome] = []
            for job in jobs:
                faults = builds[int(job.name)]
                built: Any = SimpleNamespace(
                    folder=job.folder, legality=_constant(faults)
                )
                refused = isinstance(faults, str)
                why = faults if refused else None
                is_lost = why == DIED
                outcomes.append(
                    CompileOutcome(job, None if refused else built, why, 0, is_lost)
                )
            return outcomes

        class Device:
            def prepare(self) -> None:
                if isinstance(on_device, Exception):
                    raise on_device

            def check(self, folder: Path) -> NumericCheck:
                found: Any = checks[int(folder.name)]
                if isinstance(found, Exception):
                    raise found
                return found

            def measure(self, folders: dict[str, Path], repeats: int) -> Measured:
                assert all(not checks[int(n)].reasons for n in folders)  # pyright: ignore
                assert all(folder.name == n for n, folder in folders.items())
                hangs = CandidateError("it hangs", is_lost=True)
                faults = {n: hangs for n in folders if not times[int(n)]}
                left = folders.keys() - faults.keys()
                return Measured({n: times[int(n)] for n in left}, faults)

        def check_on_small_sizes(graph: GraphOp, plan: Any) -> Any:
            return checks[int(plan)]

        monkeypatch.setattr(tuning, "compile_all", compile_all)
        monkeypatch.setattr(tuning, "GraphGate", Gate)
        monkeypatch.setattr(Gate, "refused", refused)
        monkeypatch.setattr(tuning, "check_on_small_sizes", check_on_small_sizes)
        device: Any = Device() if on_device else None
        plans: list[Any] = [
            PlannedCandidate(
                *(n, f"# {n}", [str(n)], [], n, float(n)),  # pyright: ignore
                is_unfused=n == 2,
                calls_library=n == library,
            )
            for n in range(len(builds))
        ]
        count, rest = first or len(builds), len(builds) - last
        return tune(
            parse_graph(SCALED.encode(), "text"),
            plans[:count],
            load_hardware("h200"),
            Path(mkdtemp(dir=tmp_path)),
            later=[each for each in plans[count:rest] if each.plan != unfused],
            unfused=[] if unfused is None else [plans[unfused]],
            last=plans[rest:],
            device=device,
            repeats=3,
            deadline=deadline,
            progress=lambda step: None,
        )

    return run


def test_the_fastest_of_those_that_are_right_is_chosen(tune_plans: Tune) -> None:
    checks = [check(), check("result 0: off"), check(), check()]
    found = tune_plans([[], [], [], []], checks, [3.0, 1.0, 2.0, 4.0])
    assert found.chosen.number == 2
    reasons = [trial.reason for trial in found.trials]
    assert reasons == [None, "wrong numbers: result 0: off", None, None]
    assert found.trials[1].measured_ms is None
    assert {"build", "check", "measure"} == set(found.seconds)


def test_what_does_not_build_or_run_is_rejected_and_others_go_on(
    tune_plans: Tune,
) -> None:
    checks = [check(), CandidateError("does not run: no launch"), check()]
    found = tune_plans(["took more than 120 s", [], []], checks, [0.0, 0.0, 5.0])
    assert [trial.reason for trial in found.trials] == [
        "took more than 120 s",
        "does not run: no launch",
        None,
    ]
    assert found.chosen.number == 2


@pytest.mark.parametrize("on_device", [True, False])
def test_a_plan_of_an_exact_graph_is_looked_for(
    tune_plans: Tune, on_device: bool
) -> None:
    """One that is not exact is not even built; the last is of the graph as written."""
    builds: list[list[str] | str] = [[]] * 4
    times = [1.0, 2.0, 3.0, 0.0]
    for last in (0, 1):
        found = tune_plans(
            builds,
            [check()] * 4,
            times,
            refused=(0, 1, 2),
            on_device=on_device,
            first=2,
            last=last,
        )
        assert found.chosen.candidate.schedules == ["3"]
        assert [trial.candidate.schedules for trial in found.trials[2:]] == [["3"]]
        assert [trial.reason for trial in found.trials[:2]] == [
            "inexact for tiny values"
        ] * 2
    found = tune_plans(
        builds, [check()] * 4, times, refused=(0, 1, 2, 3), on_device=on_device, first=2
    )
    assert found.chosen.number == 0
    assert found.inexact == ["inexact for tiny values"] * 2
    assert [trial.reason for trial in found.trials] == [None, "inexact for tiny values"]


def test_an_unfused_plan_of_an_exact_graph_is_looked_for(tune_plans: Tune) -> None:
    found = tune_plans(
        [[]] * 4, [check()] * 4, [1.0] * 4, refused=(0, 1, 2), first=3, unfused=3
    )
    assert found.chosen.number == 3


def test_a_plan_without_faults_is_looked_for(tune_plans: Tune) -> None:
    """What the library does says nothing of kernels where it cannot be measured."""
    spills = ["it spills"]
    for last, chosen in (([], 3), (spills, 1)):
        found = tune_plans(
            [[], spills, spills, last],
            [check()] * 4,
            [0.0] * 4,
            library=0,
            first=2,
            on_device=False,
        )
        assert found.chosen.number == chosen
        if not last:
            reasons = [trial.reason for trial in found.trials[1:3]]
            assert reasons == ["it spills"] * 2


def test_an_unfused_plan_that_does_not_work_has_another_in_its_place(
    tune_plans: Tune,
) -> None:
    """Or else nothing ensures that the result is not slower than one."""
    builds: list[list[str] | str] = [[], [], "TileLang refuses it", []]
    times = [2.0, 3.0, 0.0, 1.0]
    found = tune_plans(builds, [check()] * 4, times, first=3, unfused=3)
    assert (found.chosen.number, found.notes) == (3, [])
    builds[3] = "TileLang refuses it, too"
    found = tune_plans(builds, [check()] * 4, times, first=3, unfused=3)
    assert (found.chosen.number, len(found.trials)) == (0, 4)
    assert found.notes == [f"{NO_UNFUSED}: none of them works"]
    found = tune_plans(
        builds, [check()] * 4, times, first=3, unfused=3, on_device=False
    )
    assert (len(found.trials), found.notes) == (3, [])


def test_what_is_lost_and_may_work_the_next_time_is_told_apart(
    tune_plans: Tune,
) -> None:
    lost = CandidateError("does not run: a run died (SIGKILL)", is_lost=True)
    checks = [check(), lost, CandidateError("no launch"), check(), check()]
    found = tune_plans([DIED, [], [], [], []], checks, [0.0, 0.0, 0.0, 0.0, 1.0])
    assert [trial.is_lost for trial in found.trials] == [True, True, False, True, False]


def test_what_faults_when_it_is_timed_is_out(tune_plans: Tune) -> None:
    found = tune_plans([[], [], []], [check()] * 3, [0.0, 5.0, 4.0])
    assert (found.chosen.number, found.trials[0].reason) == (2, "it hangs")
    with pytest.raises(CompilationError, match=r"none of 1 plan works; .*: it hangs$"):
        tune_plans([[]], [check()], [0.0])


def test_a_gpu_that_pytorch_does_not_have_is_none(tune_plans: Tune) -> None:
    found = tune_plans([[]], [check()], [], on_device=NoDeviceError("no CUDA"))
    assert (found.chosen.measured_ms, found.not_measured) == (None, "no CUDA")


def test_a_full_disk_is_no_fault_of_the_plans(
    tune_plans: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is what happens to be built in spite of it the best of all."""
    monkeypatch.setattr(tuning.shutil, "disk_usage", _constant(SimpleNamespace(free=9)))
    with pytest.raises(OSError, match="No space left on device"):
        tune_plans(["nvcc cannot compile", []], [check()] * 2, [1.0, 1.0])
    assert tune_plans([[], []], [check()] * 2, [2.0, 1.0]).chosen.number == 1


def test_faults_count_where_there_is_a_plan_without(tune_plans: Tune) -> None:
    found = tune_plans([["it spills"], []], [check()] * 2, [1.0, 2.0])
    assert (found.chosen.number, found.trials[0].reason) == (1, "it spills")


def test_faults_do_not_count_where_all_plans_have_them(tune_plans: Tune) -> None:
    found = tune_plans([["it spills"], ["it spills"]], [check()] * 2, [1.0, 2.0])
    assert (found.chosen.number, found.trials[0].reason) == (0, None)


def test_the_fastest_may_not_win_if_it_is_inexact(tune_plans: Tune) -> None:
    found = tune_plans([[], []], [check()] * 2, [1.0, 2.0], refused=[0])
    assert found.chosen.number == 1
    assert found.trials[0].reason == "inexact for tiny values"
    assert found.trials[0].measured_ms == 1.0


def test_where_all_are_inexact_the_fastest_is_taken_all_the_same(
    tune_plans: Tune,
) -> None:
    found = tune_plans([[], []], [check()] * 2, [2.0, 1.0], refused=[0, 1])
    assert (found.chosen.number, found.chosen.reason) == (1, None)
    assert found.inexact == ["inexact for tiny values"] * 2
    assert inexact_note(found.inexact, 27) == (
        "the numerical gate passes none of 2 plans that it judged, of 27 candidates; "
        "the chosen is inexact for tiny values"
    )
    assert not tune_plans([[]], [check()], [1.0]).inexact


def test_without_a_device_the_first_that_is_right_is_chosen(tune_plans: Tune) -> None:
    checks = [check(), check("off"), check(), check()]
    found = tune_plans([[]] * 4, checks, [], refused=[0], on_device=False)
    assert found.chosen.number == 2
    assert found.chosen.measured_ms is None
    assert found.trials[3].check is None


def test_without_a_device_a_library_is_called_if_there_is_no_other(
    tune_plans: Tune,
) -> None:
    found = tune_plans([[], []], [check()] * 2, [], on_device=False, library=0)
    assert found.chosen.number == 1
    reason = "calls a library, which only a measurement can judge"
    assert found.trials[0].reason == reason
    checks = [check(), check("off")]
    found = tune_plans([[], []], checks, [], on_device=False, library=0)
    assert (found.chosen.number, found.chosen.reason) == (0, None)


def test_where_none_is_right_the_last_reason_is_given(tune_plans: Tune) -> None:
    message = "^@scaled: none of 2 plans works; the last: wrong numbers: far off$"
    with pytest.raises(CompilationError, match=message):
        tune_plans([[], []], [check("off"), check("far off")], [])


# Further plans

NO_LAYOUT = "TileLang refuses kernel_0: no available layout found"


@pytest.mark.parametrize("on_device", [True, False])
def test_where_all_are_refused_the_next_are_tried(
    on_device: bool, tune_plans: Tune
) -> None:
    builds: list[list[str] | str] = [*[NO_LAYOUT] * 5, [], []]
    checks = [check()] * 7
    found = tune_plans(builds, checks, [1.0] * 7, first=2, on_device=on_device)
    assert found.chosen.number == 5
    assert [trial.reason for trial in found.trials] == [NO_LAYOUT] * 5 + [None]


def test_where_one_is_right_no_more_are_tried(tune_plans: Tune) -> None:
    found = tune_plans([NO_LAYOUT, [], []], [check()] * 3, [1.0] * 3, first=2)
    assert (found.chosen.number, len(found.trials)) == (1, 2)


def test_a_library_alone_is_compared_with_the_next(tune_plans: Tune) -> None:
    checks = [check()] * 2
    found = tune_plans([[], []], checks, [2.0, 1.0], first=1, library=0)
    assert found.chosen.number == 1
    found = tune_plans([[], []], checks, [1.0, 2.0], first=1, library=0)
    assert found.chosen.number == 0
    found = tune_plans([[], []], checks, [], first=1, library=0, on_device=False)
    assert found.chosen.number == 1


def test_at_last_come_those_of_the_rule(tune_plans: Tune) -> None:
    """Whatever else there is, rounds end; and a plan that hangs is none."""
    builds: list[list[str] | str] = [*[NO_LAYOUT] * 5, *[[]] * 8]
    found = tune_plans(builds, [check()] * 13, [1.0] * 13, first=1, last=1)
    assert [t.candidate.predicted_ms for t in found.trials] == [0, 1, 2, 3, 4, 12]
    assert found.chosen.candidate.predicted_ms == 12
    found = tune_plans([[], []], [check()] * 2, [0.0, 1.0], first=1, last=1)
    assert found.chosen.number == 1


def test_behind_the_deadline_only_the_rule_is_left(tune_plans: Tune) -> None:
    builds: list[list[str] | str] = [NO_LAYOUT, [], []]
    found = tune_plans(builds, [check()] * 3, [1.0] * 3, first=1, last=1, deadline=0.0)
    assert [t.candidate.predicted_ms for t in found.trials] == [0, 2]


def test_tensors_that_do_not_fit_are_one_message() -> None:
    assert issubclass(DoesNotFitError, ValueError)


# The gate


def test_a_graph_that_overflows_is_refused_with_its_inputs() -> None:
    graph = parse_graph(SCALED.encode(), "text")
    gate = GraphGate(graph)
    reason = gate.reason([graph])
    assert reason is not None
    assert reason.startswith("inexact for amplitude ")
    stable = graph.clone()
    stabilize(stable)
    assert gate.reason([stable]) is None


def test_a_graph_that_loses_its_results_itself_is_noted(
    tune_plans: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Gate, "lost", "tiny values: result 0: 3 of 4 are")
    found = tune_plans([[]], [check()], [1.0])
    assert found.notes == [
        "as it is written, the graph is inexact for tiny values: result 0: 3 of 4 are"
    ]


def test_a_variance_in_one_pass_loses_results() -> None:
    """Also in float32, and although the graph and its eager mode agree on that."""
    text = """
        algebra.graph @norm [M, K] where [M = 16, K = 4096]
            (%x: !algebra.tensor<[M, K], f32>) -> (!algebra.tensor<[M, K], f32>) {
          %n = algebra.constant K : !algebra.tensor<[], f32>
          %zero = algebra.constant 0.0 : !algebra.tensor<[], f32>
          %sum = algebra.reduce_sum %x dim 1
          %mean = algebra.div %sum, %n
          %c = algebra.sub %x, %mean
          %xx = algebra.square SQUARED
          %sum2 = algebra.reduce_sum %xx dim 1
          %mean2 = algebra.div %sum2, %n
          %square = algebra.square %mean
          %var = algebra.sub %mean2, LESS
          %eps = algebra.constant 1.0e-5 : !algebra.tensor<[], f32>
          %above = algebra.add %var, %eps
          %root = algebra.sqrt %above
          %y = algebra.div %c, %root
          algebra.return %y
        }"""
    one_pass = text.replace("SQUARED", "%x").replace("LESS", "%square")
    two_passes = text.replace("SQUARED", "%c").replace("LESS", "%zero")
    gate = GraphGate(parse_graph(one_pass.encode(), "text"))
    loss = gate.loss()
    assert loss is not None
    assert loss.startswith("large mean of %x: result 0: ")
    assert loss.endswith(", and in 1 more case")
    assert gate.reason([parse_graph(one_pass.encode(), "text")]) is None
    assert GraphGate(parse_graph(two_passes.encode(), "text")).loss() is None


def test_more_rounds_end_if_a_library_works(
    tune_plans: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But not where nothing works at all."""
    monkeypatch.setattr(tuning, "LATER_SECONDS", 0.0)
    spills = ["it spills"]
    found = tune_plans(
        [[], spills, [], []], [check()] * 4, [1.0] * 4, library=0, first=2
    )
    assert [trial.reason for trial in found.trials] == [None, "it spills"]
    builds: list[list[str] | str] = [NO_LAYOUT, NO_LAYOUT, [], []]
    found = tune_plans(builds, [check()] * 4, [1.0] * 4, library=0, first=2)
    assert found.chosen.number == 2
