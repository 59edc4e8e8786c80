"""Whatever a pass leaves names only what there is, also when it runs again."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from cleave.dialects.algebra.graph import GraphOp
from cleave.passes.equal_graphs import symbol_names
from cleave.passes.infer_reduced_dims import REDUCED_DIMS, InferReducedDimsPass
from cleave.passes.partition_reductions import PartitionReductionsPass
from cleave.passes.partition_split import PartitionSplitPass
from cleave.passes.specialize import SpecializePass
from cleave.passes.superoptimize.superoptimize import SEARCH, SuperoptimizePass
from cleave.passes.symbolize import SymbolizePass

EXAMPLES = Path(__file__).parents[2] / "examples"

PIPELINE = (
    InferReducedDimsPass(),
    SymbolizePass(),
    SuperoptimizePass(split="inputs"),
    SpecializePass(counts=(2,)),
    PartitionSplitPass(),
    PartitionReductionsPass(limit=1),
)

SPLIT = """
    algebra.graph @matmul [M, K, s] where [M = 64, K = 512, s | K]
        (%x: !algebra.tensor<[M, K], f16>, %w: !algebra.tensor<[K, M], f16>)
        -> (!algebra.tensor<[M, M], f16>) {
      %xs = algebra.split %x dim 1 count s
      %ws = algebra.split %w dim 0 count s
      %parts = algebra.matmul %xs, %ws
      %sum = algebra.reduce_sum %parts dim 0
      %o = algebra.reshape %sum to [M, M]
      algebra.return %o
    }"""


def named(attribute: Attribute) -> Iterator[str]:
    """The symbols that an attribute refers to, however deep inside."""
    match attribute:
        case SymbolRefAttr():
            yield attribute.string_value()
        case ArrayAttr(data=items):
            for item in items:
                yield from named(item)
        case DictionaryAttr(data=entries):
            for entry in entries.values():
                yield from named(entry)
        case _:
            pass


def run(passes: tuple[ModulePass, ...], module: ModuleOp) -> None:
    for each in passes:
        each.apply(Context(), module)
        module.verify()
        found = {
            name
            for op in module.ops
            for attribute in op.attributes.values()
            for name in named(attribute)
        }
        assert found <= symbol_names(module), each.name


@pytest.mark.parametrize("text", ["matmul", "mha", SPLIT])
def test_the_pipeline_runs_over_its_own_output(
    parse_ir: Callable[[str], ModuleOp], text: str
) -> None:
    if text.isidentifier():
        text = (EXAMPLES / f"{text}.mlir").read_text(encoding="utf-8")
    module = parse_ir(text)
    run(PIPELINE, module)
    names = [graph.graph_name for graph in module.ops if isinstance(graph, GraphOp)]
    original = module.ops.first
    assert isinstance(original, GraphOp)
    assert original.graph_name in ("matmul", "mha")
    assert {SEARCH, REDUCED_DIMS} <= original.attributes.keys()
    run(PIPELINE, module)
    again = [graph.graph_name for graph in module.ops if isinstance(graph, GraphOp)]
    assert again == names
    assert any(name.endswith("_split") for name in names)
