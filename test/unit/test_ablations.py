"""The bars of the ablation study, from times that are given."""

from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("torch")

from bench.ablations import (
    VARIANTS,
    WHOLE,
    Variant,
    admit_faults,
    literal,
    performance,
    task,
    variants_of,
)
from bench.entry import Entry
from bench.shapes import Row
from bench.subgraphs import Searched
from cleave.lowering.built_plan import BuiltPlan
from cleave.lowering.hardware import load_hardware
from cleave.lowering.timing import Timing

ROW = Row("matmul", {"M": 512, "K": 4096, "N": 512})
_, LAYOUTS, ITERATE, SUPEROPTIMIZE, BOTH = VARIANTS


def variant(times: Sequence[float | None], library: float | None = None) -> Variant:
    """Plans of ours that take so long, and one that calls a library."""
    entries = [Entry(Path(f"{n}.py"), ROW) for n in range(len(times) + 1)]
    for entry, time in zip(entries, [*times, library], strict=True):
        entry.timing = Timing((time,)) if time is not None else None
    calls = [False] * len(times) + [True]
    return Variant(Searched(ROW, [], [], [], calls, 1.5), entries)


def test_bars_are_geometric_means_over_the_rows_that_both_have() -> None:
    fast = {name: variant([2.0, 1.0], library=4.0) for name in VARIANTS}
    slow = fast | {
        LAYOUTS: variant([4.0, None], library=0.5),
        ITERATE: variant([None], library=1.0),
        BOTH: variant([]),
    }
    bars = performance([fast, slow])
    assert bars[WHOLE]["ours"] == {"performance": 1.0, "rows": 2}
    assert bars[SUPEROPTIMIZE]["returned"] == {"performance": 1.0, "rows": 2}
    assert bars[LAYOUTS]["ours"] == {"performance": pytest.approx(0.5), "rows": 2}
    assert bars[LAYOUTS]["returned"]["performance"] == pytest.approx(2**0.5)
    assert bars[ITERATE]["ours"] == {"performance": 1.0, "rows": 1}
    assert bars[ITERATE]["returned"] == {"performance": 1.0, "rows": 2}
    assert bars[BOTH]["returned"]["rows"] == 1
    without = performance([{name: variant([]) for name in VARIANTS}])
    assert without[WHOLE]["ours"] == {"performance": None, "rows": 0}


def test_kernels_with_faults_run_where_there_are_no_others() -> None:
    built = BuiltPlan(Path(), None, "sm_90a", {}, ())  # pyright: ignore[reportArgumentType]
    for reasons, kept in (
        (["spills", "spills"], ["", ""]),
        (["spills", ""], ["spills", ""]),
    ):
        found = variant([1.0])
        for plan, fault in zip(found.plans, reasons, strict=True):
            plan.built, plan.reasons = built, [fault] if fault else []
        admit_faults(found)
        assert ["".join(plan.reasons) for plan in found.plans] == kept


def test_plans_that_variants_have_in_common_are_there_once(tmp_path: Path) -> None:
    hardware = load_hardware("h200")
    names = (SUPEROPTIMIZE, BOTH)
    found = {name: task((ROW, name), tmp_path, hardware, 2) for name in names}
    row = variants_of(found)
    whole, part = row.values()
    assert [*map(bool, whole.searched.calls_library)].count(True) == 1
    assert [*part.searched.calls_library] == [True]
    assert part.plans[0] in whole.plans
    assert len({plan.module for plan in (*whole.plans, *part.plans)}) == 3
    line = literal({WHOLE: whole, BOTH: part})
    assert line["row"] == "matmul M=512 K=4096 N=512"
    assert line["variants"][BOTH]["plans"] == [part.plans[0].name]
