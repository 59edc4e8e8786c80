"""Compiled graphs on the CPU, with Python functions in the place of kernels."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from cleave.lowering.binding import Bindings, contiguous_strides  # noqa: E402
from cleave.lowering.plan import Plan  # noqa: E402
from cleave.lowering.runtime import CompiledGraph  # noqa: E402

CPU = torch.device("cpu")


def tensor(name: str, *shape: int | str, dtype: str = "float32") -> dict[str, Any]:
    return {"name": name, "shape": list(shape), "dtype": dtype}


def plan(
    args: list[dict[str, Any]],
    results: list[dict[str, Any]],
    kernels: list[list[Any]],
    temporaries: list[dict[str, Any]] | None = None,
) -> Plan:
    literal: dict[str, Any] = {
        "name": "graph",
        "args": args,
        "results": results,
        "temporaries": temporaries or [],
        "kernels": [
            {"function": f"k{n}", "args": a, "pass_configs": {}, "requires": []}
            for n, a in enumerate(kernels)
        ],
        "sizes": {},
    }
    return Plan.parse(literal)


def partial_sums(x: Tensor, part: Tensor) -> None:
    part.copy_(torch.stack([x[:, :4].sum(1), x[:, 4:].sum(1)]))


def add_up(part: Tensor, y: Tensor) -> None:
    y.copy_(part.sum(0))


# Row sums of x in two kernels; the second one sees y, [M, 1], as [M].
ROW_SUMS = plan(
    [tensor("x", "M", 8)],
    [tensor("y", "M", 1)],
    [["x", "part"], ["part", {"name": "y", "shape": ["M"]}]],
    [tensor("part", 2, "M")],
)

ADD = plan(
    [tensor("a", 4, 8), tensor("b", 4, 8)], [tensor("c", 4, 8)], [["a", "b", "c"]]
)


def add(a: Tensor, b: Tensor, c: Tensor) -> None:
    torch.add(a, b, out=c)


@pytest.fixture
def row_sums() -> CompiledGraph:
    return CompiledGraph(ROW_SUMS, [partial_sums, add_up], CPU)


@pytest.fixture
def addition() -> CompiledGraph:
    return CompiledGraph(ADD, [add], CPU)


def test_kernels_run_in_order_through_the_workspace(row_sums: CompiledGraph) -> None:
    for size in (3, 7, 5):
        x = torch.randn(size, 8)
        y = row_sums(x)
        assert isinstance(y, Tensor)
        torch.testing.assert_close(y, x.sum(1, keepdim=True))


def test_out_is_written_and_returned(row_sums: CompiledGraph) -> None:
    x, y = torch.randn(3, 8), torch.full((3, 1), torch.nan)
    assert row_sums(x, out=y) is y
    torch.testing.assert_close(y, x.sum(1, keepdim=True))
    assert row_sums(x, out=(y,)) is y


def test_several_results_are_a_tuple() -> None:
    def split(x: Tensor, low: Tensor, high: Tensor) -> None:
        low.copy_(x[:4])
        high.copy_(x[4:])

    two = plan([tensor("x", 8)], [tensor("l", 4), tensor("h", 4)], [["x", "l", "h"]])
    graph = CompiledGraph(two, [split], CPU)
    x = torch.arange(8.0)
    low, high = graph(x)
    assert torch.equal(torch.cat([low, high]), x)
    out = (torch.empty(4), torch.empty(4))
    returned = graph(x, out=out)
    assert isinstance(returned, tuple)
    assert returned[0] is out[0]
    assert returned[1] is out[1]
    with pytest.raises(TypeError, match=r"takes 2 tensors as out \(l, h\), not 1"):
        graph(x, out=torch.empty(4))


def test_static_workspace_is_allocated_once() -> None:
    seen: list[int] = []

    def note(x: Tensor, t: Tensor, y: Tensor) -> None:
        seen.append(t.data_ptr())

    static = plan(
        [tensor("x", 8)], [tensor("y", 8)], [["x", "t", "y"]], [tensor("t", 100)]
    )
    graph = CompiledGraph(static, [note], CPU)
    assert graph.workspace_bytes() == 512
    for _ in range(3):
        graph(torch.zeros(8))
    assert len(set(seen)) == 1
    own = torch.empty(1024, dtype=torch.uint8)
    own = own[-own.data_ptr() % 256 :][:512]
    graph(torch.zeros(8), workspace=own)
    assert seen[-1] == own.data_ptr()


@pytest.mark.parametrize(
    "workspace",
    [torch.empty(256, dtype=torch.uint8), torch.empty(512), torch.empty(1024)[512:]],
)
def test_a_workspace_that_is_too_small_or_of_floats(workspace: Tensor) -> None:
    static = plan(
        [tensor("x", 8)], [tensor("y", 8)], [["x", "t", "y"]], [tensor("t", 100)]
    )
    graph = CompiledGraph(static, [lambda *_: None], CPU)
    message = "a contiguous uint8 tensor of 512 bytes on cpu"
    with pytest.raises(ValueError, match=message):
        graph(torch.zeros(8), workspace=workspace)


def test_temporaries_start_on_lines_of_their_own() -> None:
    two = plan(
        [tensor("x", "M")],
        [tensor("y", "M")],
        [["x", "t", "u", "y"]],
        [tensor("t", "M", dtype="float16"), tensor("u", 3)],
    )
    binding = Bindings(two).of_sizes((130,))
    assert binding.temporaries == ((0, 260), (512, 524))
    assert binding.workspace_bytes == 768


def test_a_poisoned_workspace_holds_nothing_but_nan() -> None:
    seen: list[Tensor] = []

    def note(x: Tensor, t: Tensor, u: Tensor, y: Tensor) -> None:
        seen.extend((t, u))

    static = plan(
        [tensor("x", 8)],
        [tensor("y", 8)],
        [["x", "t", "u", "y"]],
        [tensor("t", 5), tensor("u", 5, dtype="bfloat16")],
    )
    graph = CompiledGraph(static, [note], CPU)
    graph.poison_workspace(torch.zeros(8))
    graph(torch.zeros(8))
    assert all(bool(t.isnan().all()) for t in seen)


def test_strides_of_dims_of_size_one_mean_nothing(addition: CompiledGraph) -> None:
    one = plan([tensor("x", 1, 8)], [tensor("y", 1, 8)], [["x", "y"]])
    strides: list[tuple[int, ...]] = []

    def copy(x: Tensor, y: Tensor) -> None:
        strides.append(x.stride())
        y.copy_(x)

    x = torch.randn(4, 3, 8)[:1, 0]
    assert x.stride() == (24, 1)
    CompiledGraph(one, [copy], CPU)(x)
    assert strides == [(8, 1)]


def test_contiguous_strides_are_torch_s() -> None:
    for shape in ((), (5,), (2, 3, 4), (2, 0, 3)):
        assert contiguous_strides(shape) == torch.empty(shape).stride()


def test_gradients_are_refused_unless_switched_off(addition: CompiledGraph) -> None:
    a = torch.randn(4, 8, requires_grad=True)
    b = torch.randn(4, 8)
    with pytest.raises(ValueError, match=r"argument a: requires grad, .* no backward"):
        addition(a, b)
    with torch.no_grad():
        c = addition(a, b)
    assert isinstance(c, Tensor)
    assert not c.requires_grad


A = torch.zeros(4, 8)


@pytest.mark.parametrize(
    ("b", "error", "message"),
    [
        (torch.zeros(4, 7), ValueError, r"argument b: \[4, 7\], expected \[4, 8\]"),
        (torch.zeros(32), ValueError, r"argument b: \[32\], expected \[4, 8\]"),
        (
            torch.zeros(4, 8, dtype=torch.float64),
            TypeError,
            "argument b: torch.float64, expected torch.float32",
        ),
        (
            torch.zeros(4, 8, device="meta"),
            ValueError,
            "argument b: on meta, expected cpu",
        ),
        (
            torch.zeros(8, 4).T,
            ValueError,
            r"argument b: not contiguous \(strides \[1, 4\]\)",
        ),
        (
            torch.zeros(33)[1:].view(4, 8),
            ValueError,
            "argument b: its address is no multiple of 16 bytes",
        ),
        (
            [[0.0] * 8] * 4,
            TypeError,
            "argument b: a torch.Tensor is expected, not list",
        ),
    ],
)
def test_a_tensor_that_does_not_fit_is_named(
    addition: CompiledGraph, b: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        addition(A, b)


def test_the_number_of_tensors(addition: CompiledGraph) -> None:
    with pytest.raises(TypeError, match=r"2 tensors as argument \(a, b\), not 1"):
        addition(A)


def test_out_must_be_memory_of_its_own(addition: CompiledGraph) -> None:
    b = torch.zeros(4, 8)
    with pytest.raises(ValueError, match="out c: the same memory as b"):
        addition(A, b, out=b)
    with pytest.raises(ValueError, match=r"out c: \[4\], expected \[4, 8\]"):
        addition(A, b, out=torch.zeros(4))


def test_dynamic_dims_agree_between_arguments() -> None:
    graph = CompiledGraph(
        plan([tensor("a", "M", 2), tensor("b", "M")], [tensor("c", "M")], [["a", "c"]]),
        [lambda *_: None],
        CPU,
    )
    with pytest.raises(ValueError, match=r"argument b: \[4\], expected \[3\]"):
        graph(torch.zeros(3, 2), torch.zeros(4))
    with pytest.raises(ValueError, match=r"argument a: shape \[\] has no dim 0.* M"):
        graph(torch.tensor(1.0), torch.zeros(4))
    with pytest.raises(KeyError, match="M"):
        graph.workspace_bytes()


def test_kernels_know_masks_as_bytes() -> None:
    """The host code of a kernel refuses PyTorch's bool; the memory is the same."""
    masks = plan(
        [tensor("x", 8, dtype="bool")],
        [tensor("y", 8, dtype="bool")],
        [["x", "t"], ["t", "y"]],
        [tensor("t", 8, dtype="bool")],
    )

    def invert(source: Tensor, target: Tensor) -> None:
        assert source.dtype == target.dtype == torch.int8
        torch.eq(source, 0, out=target.view(torch.bool))

    graph = CompiledGraph(masks, [invert, invert], CPU)
    x = torch.arange(8) % 3 == 0
    y = graph(x)
    assert isinstance(y, Tensor)
    assert y.dtype == torch.bool
    assert torch.equal(x, y)
    out = torch.empty_like(x)
    assert graph(x, out=out) is out
    assert torch.equal(x, out)
