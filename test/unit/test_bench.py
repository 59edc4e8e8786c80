"""The benchmarks without a GPU: shapes, floors, references, peers, a whole run."""

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from bench import foundations, search_time  # noqa: E402
from bench.entry import Entry  # noqa: E402
from bench.peer import Peer, Prepared  # noqa: E402
from bench.peers import peers_of, ready_peers  # noqa: E402
from bench.references import reference  # noqa: E402
from bench.shapes import (  # noqa: E402
    Row,
    UnknownRowError,
    decode_rows,
    prefill_rows,
    row_of,
)
from cleave.lowering.built_plan import BuiltPlan  # noqa: E402
from cleave.lowering.hardware import load_hardware  # noqa: E402
from cleave.lowering.plan import Plan  # noqa: E402
from cleave.lowering.runtime import CompiledGraph  # noqa: E402
from cleave.lowering.toolchain import find_nvcc  # noqa: E402

CPU = torch.device("cpu")
H200 = load_hardware("h200")
GENERATED = Path(__file__).parents[1] / "generated"

# Floors in microseconds beside which the measured times stand.
FLOORS = {
    "matmul M=4096 K=4096 N=4096": 182,
    "matmul M=512 K=4096 N=4096": 23,
    "matmul_matmul H=32 M=4096 L=4096 D=64": 182,
    "matmul_matmul H=32 M=16 L=4096 D=64": 7.8,
    "matmul_rowsum M=4096 K=64 N=4096": 2.8,
    "swiglu M=4096 K=4096 N=14336": 1271,
    "swiglu M=64 K=4096 N=14336": 55.2,
    "rmsnorm_matmul M=512 K=4096 N=6144": 34,
    "rmsnorm_matmul M=16 K=4096 N=6144": 11.8,
    "mha H=32 M=4096 L=4096 D=128": 363,
    "mha H=32 M=512 L=4096 D=64": 23,
    "mha H=32 M=16 L=4096 D=128": 15.7,
    "gqa H=8 G=4 M=64 L=4096 D=128": 5.7,
    "mqa H=32 M=16 L=4096 D=64": 0.7,
    "mla_prefill H=128 M=4096 L=4096 D=192 E=128": 1816,
    "mla_decode B=128 H=128 L=4096 C=512 R=64": 193,
}

SMALL = [
    Row("matmul", {"M": 6, "K": 8, "N": 4}, "float32"),
    Row("matmul_matmul", {"H": 2, "M": 6, "L": 8, "D": 4}, "float32"),
    Row("matmul_rowsum", {"M": 6, "K": 8, "N": 4}, "float32"),
    Row("swiglu", {"M": 6, "K": 8, "N": 4}, "float32"),
    Row("rmsnorm_matmul", {"M": 6, "K": 8, "N": 4}, "float32"),
    Row("mha", {"H": 2, "M": 6, "L": 8, "D": 4}, "float32"),
    Row("gqa", {"H": 2, "G": 3, "M": 6, "L": 8, "D": 4}, "float32"),
    Row("mqa", {"H": 3, "M": 6, "L": 8, "D": 4}, "float32"),
    Row("softmax_attention", {"H": 2, "M": 6, "L": 8, "D": 4}, "float32"),
    Row("mla_prefill", {"H": 2, "M": 6, "L": 8, "D": 6, "E": 4}, "float32"),
    Row("mla_decode", {"B": 2, "H": 3, "L": 8, "C": 6, "R": 4}, "float32"),
]


def operands(row: Row) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(shape, generator=generator) * row.scales.get(name, 1.0)
        for name, shape in row.args.items()
    ]


def exact(row: Row) -> Tensor:
    return reference(row)(*[tensor.double() for tensor in operands(row)])


def test_floors_of_the_tables() -> None:
    rows = [*prefill_rows(), *decode_rows()]
    floors = {row.title: row.floor_seconds(H200) * 1e6 for row in rows}
    assert len(floors) == len(rows) == 5 * 12 + 4 * 11 + 3
    for title, floor in FLOORS.items():
        assert floors[title] == pytest.approx(floor, abs=0.51 if floor > 20 else 0.06)


def test_a_group_of_queries_shares_its_keys() -> None:
    """GQA is MHA with every key head repeated for its group."""
    gqa = Row("gqa", {"H": 2, "G": 3, "M": 6, "L": 8, "D": 4})
    q, k, v = (torch.randn(shape).double() for shape in gqa.args.values())
    repeated = [tensor.repeat_interleave(3, dim=0) for tensor in (k, v)]
    mha = reference(Row("mha", {"H": 6, "M": 6, "L": 8, "D": 4}))(q, *repeated)
    torch.testing.assert_close(reference(gqa)(q, k, v), mha)


def test_references_against_pytorch_s_attention() -> None:
    attention = torch.nn.functional.scaled_dot_product_attention
    for name, scale in (("mha", 1.0), ("softmax_attention", 0.5)):
        row = Row(name, {"H": 2, "M": 6, "L": 8, "D": 4})
        q, k, v = (torch.randn(shape).double() for shape in row.args.values())
        natural = k.mT if name == "mha" else k
        torch.testing.assert_close(
            reference(row)(q, k, v), attention(q, natural, v, scale=scale)
        )


@pytest.mark.parametrize("row", SMALL, ids=lambda row: row.subgraph)
def test_peers_that_run_on_a_cpu_compute_the_row(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    def uncompiled(function: Callable[..., Tensor], **_: object) -> Callable[..., Any]:
        return function

    monkeypatch.setattr(torch, "compile", uncompiled)
    ready, missing = ready_peers(row, operands(row), exact(row))
    assert {peer.name for peer in peers_of(row)} >= {peer.name for peer in ready}
    assert len(ready) >= 2
    assert all(peer.error < 1e-5 for peer in ready)
    # What is left out needs a GPU or is not installed here.
    assert all(name.startswith(("FA2", "FA3", "cuDNN")) for name in missing)


def test_a_peer_that_computes_something_else_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def prepare(row: Row, tensors: Any) -> Prepared:
        assert tensors[0].dtype == torch.bfloat16
        return Prepared(lambda: (tensors[0] @ tensors[1]) * 1.1)

    def refuses(row: Row, tensors: Any) -> Prepared:
        raise ValueError("head dim 4 is not supported\nby this build")

    peers = [Peer("wrong", prepare, "bfloat16"), Peer("picky", refuses)]

    def two_peers(row: Row) -> list[Peer]:
        return peers

    monkeypatch.setattr("bench.peers.peers_of", two_peers)
    row = SMALL[0]
    ready, missing = ready_peers(row, operands(row), exact(row))
    assert ready == []
    assert missing["picky"] == "head dim 4 is not supported"
    assert missing["wrong (bfloat16)"].startswith("relative error 0.")


def plan_of(row: Row, name: str, **changes: Any) -> Plan:
    literal: dict[str, Any] = {
        "name": name,
        "args": [
            {"name": f"{arg}_1", "shape": list(shape), "dtype": row.dtype}
            for arg, shape in row.args.items()
        ],
        "results": [{"name": "o", "shape": [6, 4], "dtype": row.dtype}],
        "temporaries": [],
        "kernels": [
            {
                "function": "kernel_0",
                "args": [*(f"{arg}_1" for arg in row.args), "o"],
                "pass_configs": {},
                "requires": [],
            }
        ],
        "sizes": {**row.sizes, "BM": 128},
    }
    return Plan.parse(literal | changes)


def test_the_row_of_a_plan() -> None:
    row = SMALL[4]
    assert row_of(plan_of(row, "rmsnorm_matmul_scaled")) == row
    with pytest.raises(UnknownRowError, match=r"lora is none of attention_fig5a, "):
        row_of(plan_of(row, "lora"))
    with pytest.raises(UnknownRowError, match="matmul: no size of K in its plan"):
        row_of(plan_of(row, "matmul", sizes={"M": 6}))
    with pytest.raises(UnknownRowError, match=r"takes \[\[6, 8\], .* its row \[\[7, 8"):
        row_of(plan_of(row, "matmul", sizes={"M": 7, "K": 8, "N": 4}))


class Steps:
    """A device on which a peer takes 3 ms and everything else 2 ms."""

    def __init__(self) -> None:
        self.calls = 0

    def measure(self, call: Callable[[], object], spin_seconds: float) -> float | None:
        result = call()
        assert isinstance(result, Tensor)
        self.calls += 1
        return 2.0 if result.data_ptr() in OURS else 3.0

    def wait(self) -> None: ...


OURS: set[int] = set()


def test_entries_of_a_row_are_checked_and_timed_side_by_side(tmp_path: Path) -> None:
    row = SMALL[0]

    def right(x: Tensor, w: Tensor, o: Tensor) -> None:
        OURS.add(o.data_ptr())
        torch.matmul(x, w, out=o)

    def wrong(x: Tensor, w: Tensor, o: Tensor) -> None:
        o.copy_(1.01 * (x @ w))

    def entry(name: str) -> Entry:
        built = BuiltPlan(tmp_path / name, plan_of(row, "matmul"), "sm_90a", {}, ())
        return Entry(tmp_path / f"{name}.py", row, built)

    entries = [entry("right"), entry("wrong")]

    def load(built: BuiltPlan) -> CompiledGraph:
        kernel = right if built.folder.name == "right" else wrong
        return CompiledGraph(built.plan, [kernel], CPU)

    foundations.measure(
        entries, load, CPU, Steps(), repeats=4, seed=1, with_peers=False
    )
    good, bad = entries
    assert good.reasons == []
    assert good.timing is not None
    assert good.timing.median_ms == 2.0
    assert bad.timing is None
    assert bad.reasons == ["o: relative error 0.01, allowed 0.001"]
    assert bad.line().endswith("o: relative error 0.01, allowed 0.001")


def test_the_ratio_is_that_to_the_fastest_peer() -> None:
    from cleave.lowering.timing import Timing

    entry = Entry(Path("m.py"), SMALL[0], timing=Timing((2.0, 2.0)))
    assert entry.ratio is None
    entry.peers = {"a": Timing((9.0,)), "fast": Timing((3.0, 3.0))}
    literal = entry.literal(H200)
    assert (literal["best_peer"], literal["ratio"]) == ("fast", 1.5)
    assert literal["peers_ms"] == {"a": 9.0, "fast": 3.0}
    assert literal["fraction_of_floor"] == literal["floor_ms"] / 2.0
    assert entry.line().split() == [
        "m",
        "2000.0",
        "us",
        "3000.0",
        "us",
        "1.500x",
        "fast",
    ]


@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")
@pytest.mark.skipif(torch.cuda.is_available(), reason="would run the modules")
def test_a_run_without_a_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tilelang")
    out = tmp_path / "results" / "run.json"
    modules = [GENERATED / "matmul.py", GENERATED / "chain_without_registers.py"]
    assert foundations.main([*map(str, modules), "--out", str(out), "--workers", "1"])
    result = json.loads(out.read_text())
    assert result["gpu"] is None
    assert result["versions"]["tilelang"] == "0.1.15"
    assert "bench.foundations" in result["command"]
    good, unknown = result["rows"]
    assert good["row"] == "matmul M=256 K=384 N=512"
    assert good["reasons"] == []
    assert good["ours_ms"] is None
    assert good["kernels"][0]["spill_store_bytes"] == 0
    assert unknown["row"] is None
    assert unknown["reasons"][0].startswith("chain is none of ")
    assert "no CUDA device: built and judged, not run" in capsys.readouterr().out


def test_phases_of_a_search_add_up():
    row = search_time.measure("matmul M=16 K=4096 N=16")
    assert row["seconds"] == pytest.approx(sum(row["phases"].values()))
    assert {"test equal graphs", "schedule"} <= row["phases"].keys()
    assert row["first"]["schedules"]
    assert gc.isenabled()


def test_rows_of_the_tables_are_held_to_the_limit():
    first, second, *_ = search_time.titles()
    seconds = {first: 1.9, second: 2.1, "lora": 3.0}
    rows = [{"row": title, "seconds": s} for title, s in seconds.items()]
    summary = search_time.summary(rows)
    assert summary["above_limit"] == [second]
    assert summary["slowest"]["tables"]["row"] == second
    assert summary["slowest"]["others"]["row"] == "lora"
