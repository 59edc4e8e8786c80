"""The default rule for tile sizes: what it takes dims for, what it tries, what fits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.itgraph.kernel import KernelOp
from cleave.lowering.compilation.choices import choices_for
from cleave.lowering.compilation.configuration import Configuration
from cleave.lowering.compilation.default_configurations import (
    Choice,
    default_configurations,
)
from cleave.lowering.compilation.dim_roles import DimRoles, dim_roles
from cleave.lowering.compilation.footprint import Footprint, footprint, require_fit
from cleave.lowering.compilation.pipeline import (
    NoProgramError,
    TileProgram,
    prepare,
    schedule,
)
from cleave.lowering.compilation.wanted import (
    CompilationError,
    Wanted,
    stated_tiles,
)
from cleave.lowering.hardware import load_hardware

EXAMPLES = Path(__file__).parents[2] / "examples"
H200 = load_hardware("h200")

SOFTMAX = """
algebra.graph @softmax [M, N] where [{facts}]
    (%x: !algebra.tensor<[M, N], f16>) -> (!algebra.tensor<[M, N], f16>) {{
  %m = algebra.reduce_max %x dim 1
  %s = algebra.sub %x, %m
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 1
  %o = algebra.div %p, %l
  algebra.return %o
}}"""

COLUMN_SUM = """
algebra.graph @column_sum [M, N] where [M = 4096, N = 4096]
    (%x: !algebra.tensor<[M, N], f16>) -> (!algebra.tensor<[1, N], f32>) {
  %s = algebra.reduce_sum %x dim 0
  algebra.return %s
}"""

SUM_OF_HEADS = """
algebra.graph @sum_of_heads [H, M, K, N] where [H = 8, M = 1024, K = 64, N = 512]
    (%x: !algebra.tensor<[H, M, K], f16>, %w: !algebra.tensor<[H, K, N], f16>)
    -> (!algebra.tensor<[1, M, N], f32>) {
  %y = algebra.matmul %x, %w
  %o = algebra.reduce_sum %y dim 0
  algebra.return %o
}"""

ATTENTION = """
algebra.graph @attention [H, M, L, D] where [H = 32, M = 1023, L = 4099, D = 72]
    (%q: !algebra.tensor<[H, M, D], bf16>, %k: !algebra.tensor<[H, L, D], bf16>,
     %v: !algebra.tensor<[H, L, D], bf16>) -> (!algebra.tensor<[H, M, D], bf16>) {
  %s = algebra.matmul %q, %k transpose_rhs
  %p = algebra.exp %s
  %l = algebra.reduce_sum %p dim 2
  %a = algebra.matmul %p, %v
  %o = algebra.div %a, %l
  algebra.return %o
}"""

Parse = Callable[[str], ModuleOp]


def graph_in(module: ModuleOp) -> GraphOp:
    module.verify()
    (graph,) = module.ops
    assert isinstance(graph, GraphOp)
    graph.detach()
    return graph


def prepared(text: str, parse: Parse) -> GraphOp:
    return prepare(graph_in(parse(text))).graph


def example(name: str, parse: Parse) -> GraphOp:
    return graph_in(parse((EXAMPLES / f"{name}.mlir").read_text()))


def roles_of(text: str, parse: Parse) -> DimRoles:
    return dim_roles(prepared(text, parse))


def first_that_fits(graph: GraphOp) -> tuple[Choice, TileProgram]:
    ready = prepare(graph)
    for choice in default_configurations(ready.graph, H200):
        try:
            program = schedule(ready, choice.configuration)
            require_fit(program.plan, H200)
            program.source(fast_math=False)
        except NoProgramError:
            continue
        return choice, program
    raise AssertionError(f"nothing fits for @{graph.graph_name}")


# Roles


def test_roles_of_attention(parse_ir: Parse) -> None:
    roles = roles_of(ATTENTION, parse_ir)
    assert roles.sizes == {"H": 32, "M": 1023, "L": 4099, "D": 72}
    assert roles.outputs == ["H", "M", "D"]
    assert (roles.batch, roles.rows, roles.columns) == ({"H"}, {"M"}, {"D"})
    # The scores do not depend on the columns of the output.
    assert roles.whole == {"D": "the matmul %s would be repeated for each tile"}
    assert set(roles.reduced) == {"D", "L"}
    assert roles.last_reduced == {"L"}
    assert "L" in roles.made_by_matmul
    assert roles.batch_of_matmul == {"H"}


def test_roles_of_a_matmul_leave_both_dims_free(parse_ir: Parse) -> None:
    roles = dim_roles(prepare(example("matmul", parse_ir)).graph)
    assert roles.whole == {}
    assert roles.last_reduced == {"K"}
    assert roles.has_matmul


def test_rows_that_are_normalized_stay_whole(parse_ir: Parse) -> None:
    roles = roles_of(SOFTMAX.format(facts="M = 4096, N = 1024"), parse_ir)
    assert roles.whole == {"N": "rows are reduced over it and still needed"}
    assert not roles.has_matmul


def test_views_of_the_output_are_seen_through(parse_ir: Parse) -> None:
    roles = dim_roles(prepare(example("gqa", parse_ir)).graph)
    assert roles.outputs == ["H", "G", "M", "D"]
    assert roles.batch == {"H", "G"}


# What is tried first


def configuration(text: str, parse: Parse) -> Configuration:
    choice, _ = first_that_fits(graph_in(parse(text)))
    return choice.configuration


def test_matmul_has_large_tiles_and_panels(parse_ir: Parse) -> None:
    choice, _ = first_that_fits(example("matmul", parse_ir))
    assert choice.configuration == Configuration(
        {"M": 128, "N": 256}, {"K": 64}, None, stages=3, swizzle=10
    )
    assert choice.why == ("K: reduced 64 at a time",)


def test_attention_keeps_heads_whole_and_says_so(parse_ir: Parse) -> None:
    choice, _ = first_that_fits(example("attention_fig5a", parse_ir))
    assert choice.configuration == Configuration({"H": 1, "M": 128}, {"L": 128})
    assert choice.why == (
        "H: one element a threadblock",
        "D: whole, since the matmul %s would be repeated for each tile",
        "D: reduced at once",
        "L: reduced 128 at a time",
    )


def test_heads_of_72_are_padded_to_what_tensor_cores_take(parse_ir: Parse) -> None:
    choice, _ = first_that_fits(graph_in(parse_ir(ATTENTION)))
    assert choice.configuration.tile["D"] == 80
    assert "D: padded to 80" in choice.why


def test_few_rows_make_small_tiles_so_that_the_gpu_is_busy(parse_ir: Parse) -> None:
    text = (EXAMPLES / "matmul.mlir").read_text().replace("M = 4096", "M = 16")
    assert configuration(text, parse_ir).tile == {"M": 64, "N": 64}


def test_a_reduced_batch_dim_is_taken_one_by_one(parse_ir: Parse) -> None:
    assert configuration(SUM_OF_HEADS, parse_ir).reduce["H"] == 1


def test_tiles_without_matmuls_are_wide_but_not_only_wide(parse_ir: Parse) -> None:
    found = configuration(COLUMN_SUM, parse_ir)
    assert (found.tile, found.reduce) == ({"N": 256}, {"M": 16})


@pytest.mark.parametrize(
    ("facts", "tile"),
    [
        ("M = 4096, N = 1024", {"M": 4}),
        ("M = 4096, N = 4096", {"M": 1}),
        ("M = 341, N = 1023", {"M": 4, "N": 1024}),
        ("M = 3, N = 5", {"M": 4, "N": 8}),
    ],
)
def test_softmax_has_whole_rows(
    facts: str, tile: dict[str, int], parse_ir: Parse
) -> None:
    found = configuration(SOFTMAX.format(facts=facts), parse_ir)
    assert (found.tile, found.reduce) == (tile, {})


def test_a_dim_without_a_value_is_taken_for_a_large_one(parse_ir: Parse) -> None:
    text = (EXAMPLES / "matmul.mlir").read_text().replace("M = 4096, ", "")
    assert configuration(text, parse_ir).tile == {"M": 128, "N": 256}


@pytest.mark.parametrize("name", [path.stem for path in sorted(EXAMPLES.iterdir())])
def test_every_example_has_a_program_that_fits(name: str, parse_ir: Parse) -> None:
    choice, program = first_that_fits(example(name, parse_ir))
    assert choice.why
    (kernel,) = (op for op in program.plan.body.block.ops if isinstance(op, KernelOp))
    assert footprint(kernel, program.plan.facts).smem <= H200.smem_bytes_per_block


def test_choices_are_tried_once_each(parse_ir: Parse) -> None:
    choices = default_configurations(prepare(example("gqa", parse_ir)).graph, H200)
    configurations = [choice.configuration for choice in choices]
    assert all(c not in configurations[:i] for i, c in enumerate(configurations))


# Footprints, against what TileLang and nvcc report for these programs


@pytest.mark.parametrize(
    ("name", "chosen", "smem"),
    [
        ("matmul", Configuration({"M": 128, "N": 256}, {"K": 64}, 256, 3), 147456),
        ("swiglu", Configuration({"M": 128, "N": 128}, {"K": 64}, 256, 3), 147456),
        ("attention_fig5a", Configuration({"H": 1, "M": 128}, {"L": 128}), 163840),
        # Two loops, which share no SMEM.
        ("mha", Configuration({"H": 1, "M": 128}, {"L": 64}), 163840),
    ],
)
def test_smem_is_that_of_the_compiled_kernel(
    name: str, chosen: Configuration, smem: int, parse_ir: Parse
) -> None:
    program = schedule(prepare(example(name, parse_ir)), chosen)
    (kernel,) = (op for op in program.plan.body.block.ops if isinstance(op, KernelOp))
    assert footprint(kernel, program.plan.facts).smem == smem


def test_registers_are_those_of_accumulators(parse_ir: Parse) -> None:
    chosen = Configuration({"M": 128, "N": 128}, {"K": 64}, 256, 3)
    program = schedule(prepare(example("swiglu", parse_ir)), chosen)
    (kernel,) = (op for op in program.plan.body.block.ops if isinstance(op, KernelOp))
    assert footprint(kernel, program.plan.facts).registers == 2 * 128 * 128 * 4


def test_footprints_are_compared_part_by_part() -> None:
    assert Footprint(1, 20) | Footprint(10, 2) == Footprint(10, 20)


@pytest.mark.parametrize(
    ("tile", "reduce", "reason"),
    [
        ({"M": 128, "N": 128}, {"K": 1024}, "1048576 bytes of SMEM, a threadblock has"),
        ({"M": 256, "N": 256}, {"K": 64}, "256 registers of each of 256 threads"),
        ({"M": 128}, {"K": 64}, "tiles take "),
    ],
)
def test_what_does_not_fit_is_refused(
    tile: dict[str, int], reduce: dict[str, int], reason: str, parse_ir: Parse
) -> None:
    chosen = Configuration(tile, reduce, 256, 2)
    program = schedule(prepare(example("matmul", parse_ir)), chosen)
    with pytest.raises(NoProgramError, match=reason):
        require_fit(program.plan, H200)


def test_a_tile_without_a_size_is_refused(parse_ir: Parse) -> None:
    text = (EXAMPLES / "matmul.mlir").read_text().replace("M = 4096, ", "")
    program = schedule(
        prepare(graph_in(parse_ir(text))), Configuration({"N": 128}, {"K": 64})
    )
    with pytest.raises(NoProgramError, match="M is neither bound nor tiled"):
        require_fit(program.plan, H200)


# What is stated


def test_what_is_stated_takes_the_place_of_the_choice(parse_ir: Parse) -> None:
    graph = prepare(example("matmul", parse_ir)).graph
    wanted = Wanted(tile={"M": 64, "N": 64}, stages=4)
    choices = choices_for(graph, wanted, H200)
    assert {tuple(c.configuration.tile.items()) for c in choices} == {
        (("M", 64), ("N", 64))
    }
    assert {c.configuration.stages for c in choices} == {4}
    assert {c.configuration.reduce["K"] for c in choices} == {64, 32}
    assert choices[0].why == ("tile, stages: as stated",)


def test_one_configuration_is_left_where_all_tiles_are_stated(parse_ir: Parse) -> None:
    graph = prepare(example("matmul", parse_ir)).graph
    wanted = Wanted(tile={"M": 64}, reduce={"K": 32})
    (choice,) = choices_for(graph, wanted, H200)
    assert choice.configuration == Configuration({"M": 64}, {"K": 32})


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Wanted(tile={"Z": 64}), r"tile for 'Z', which is no symbol of @matmul"),
        (Wanted(reduce={"M": 64}), r"tile for 'M', but @matmul reduces no dim of M"),
    ],
)
def test_tiles_of_what_there_is_not(
    wanted: Wanted, message: str, parse_ir: Parse
) -> None:
    graph = prepare(example("matmul", parse_ir)).graph
    with pytest.raises(PassFailedException, match=message):
        choices_for(graph, wanted, H200)


def test_stated_tiles_are_text_or_a_mapping() -> None:
    assert stated_tiles("H=1 M=128") == {"H": 1, "M": 128}
    assert stated_tiles({"M": 64}) == {"M": 64}
    assert stated_tiles(None) is None
    assert stated_tiles("") == {}


@pytest.mark.parametrize(
    ("tiles", "message"),
    [
        ("M", "the tile of 'M' has no size; write M=SIZE"),
        ({"M": 0}, "the tile of 'M' is 0; it is a whole number of at least 1"),
        ({"M": "x"}, "the tile of 'M' is 'x'; it is a whole number of at least 1"),
        ({"M": True}, "the tile of 'M' is True; it is a whole number of at least 1"),
        (5, "tiles are 5; they are text, as in 'M=128', or sizes by symbol"),
    ],
)
def test_stated_tiles_have_sizes(tiles: Any, message: str) -> None:
    with pytest.raises(CompilationError, match=f"^{message}$"):
        stated_tiles(tiles)


def test_a_launch_that_is_none_is_refused() -> None:
    numbers: list[Any] = [0, "x", True]
    for threads in numbers:
        message = f"threads is {threads!r}; it is a whole number"
        with pytest.raises(CompilationError, match=message):
            Wanted(threads=threads)
