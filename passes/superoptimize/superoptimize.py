"""`superoptimize`: find every graph equal to a given one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Annotated, Literal

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.contraction import Matmul, ReduceSum
from cleave.dialects.algebra.elementwise import Mul
from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.wording import counted
from cleave.passes.equal_graphs import (
    EQUALS,
    have_candidates,
    is_original,
    symbol_names,
)
from cleave.passes.option_ranges import SEED, Range
from cleave.passes.pass_warnings import warn

if TYPE_CHECKING:
    from cleave.passes.superoptimize.importing import Imported
    from cleave.passes.superoptimize.search import Outcome

VERIFIED = "verified"
"""The attribute of a candidate that says how that was verified."""
SEARCH = "search"
"""The attribute of a graph that says how the search for its candidates ended."""

_EXTRA = {"none": 2, "inputs": 3}
"""How many more operators a candidate may have than its original, by default."""


@dataclass(frozen=True)
class SuperoptimizePass(ModulePass):
    """
    Add, for every graph, the graphs equal to it (paper section 4, appendix A).

    All graphs are found that have at most `extra` operators more than the original, the
    smallest first, without a bound on the size of the search; with `split=inputs` also
    those in which dims of inputs are split (Split-K). Each stands in the module with
    the attributes `equals`, which graph it equals, and `verified`, by what inputs this
    was tested. The original comes first among them. Candidates and pieces of graphs are
    not searched, nor is a graph that has candidates already.

    Limits: `values` distinct tensors, `graphs` candidates, `seconds` for each graph.
    Where one is hit, a warning says so and the attribute `search` of the original; what
    was found stays. `stats=true` adds counts to that attribute. With `promising`, only
    so many are kept of the graphs found, those that compute the least of every kind
    (see `cleave.passes.superoptimize.promising`), at the sizes of the facts; a warning
    says how many are left out.

    Before:
        algebra.graph @product [H, M, L, D, E]
            (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, D, L], f16>,
             %v: !algebra.tensor<[H, L, E], f16>)
            -> (!algebra.tensor<[H, M, E], f16>) {
          %s = algebra.matmul %q, %k : !algebra.tensor<[H, M, L], f32>
          %o = algebra.matmul %s, %v : !algebra.tensor<[H, M, E], f32>
          algebra.return %o
        }
    After (besides, unchanged, @product and its copy @product_1):
        algebra.graph @product_2 [H, M, L, D, E] (...) -> (...)
            attributes {equals = @product, verified = {...}} {
          %0 = algebra.matmul %k, %v : !algebra.tensor<[H, D, E], f32>
          %1 = algebra.matmul %q, %0 : !algebra.tensor<[H, M, E], f32>
          algebra.return %1
        }
    """

    name = "superoptimize"

    split: Literal["none", "inputs"] = "none"
    extra: Annotated[int | None, Range(0)] = None
    values: Annotated[int, Range(1)] = 20_000
    graphs: Annotated[int, Range(1)] = 2_000
    seconds: Annotated[float, Range(0)] = 20.0
    promising: Annotated[int, Range(0)] = 0
    seed: Annotated[int, SEED] = 1
    stats: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        taken, searched = symbol_names(op), have_candidates(op.ops)
        found: list[tuple[GraphOp, list[GraphOp], DictionaryAttr]] = []
        for graph in op.ops:
            if not isinstance(graph, GraphOp) or not is_original(graph):
                continue
            if (name := graph.graph_name) in searched:
                warn(self.name, f"graph @{name} has candidates; not searched again")
                continue
            found.append((graph, *self._candidates(graph, taken)))
        for graph, candidates, search in found:
            graph.attributes[SEARCH] = search
            for candidate in reversed(candidates):
                op.body.block.insert_op_after(candidate, graph)

    def _candidates(
        self, graph: GraphOp, taken: set[str]
    ) -> tuple[list[GraphOp], DictionaryAttr]:
        """
        The candidates for a graph, and what is to be said about the search. Their names
        are not among those that are taken, and become so.
        """
        from cleave.passes.superoptimize.exporting import Exporter
        from cleave.passes.superoptimize.importing import ImportFailed, import_graph
        from cleave.passes.superoptimize.limits import Clock, Limits
        from cleave.passes.superoptimize.promising import promising
        from cleave.passes.superoptimize.search import Options, search
        from cleave.passes.superoptimize.semantics import Undefined

        clock = Clock(self.seconds)
        where = f"graph @{graph.graph_name}"
        options = Options(
            companions=(Matmul, Mul, ReduceSum),
            extra=_EXTRA[self.split] if self.extra is None else self.extra,
            limits=Limits(self.values, self.graphs, self.seconds),
            seed=self.seed,
        )
        try:
            imported = import_graph(graph)
            dims = imported.dims(split=self.split == "inputs")
            outcome = search(imported.graph, dims, options)
        except (ImportFailed, NotImplementedError, Undefined) as error:
            raise PassFailedException(f"{where}: {error}") from error
        exporter = Exporter(graph, imported)
        itself = exporter.expressions.of_outputs(imported.graph)
        others = [
            candidate
            for candidate in outcome.graphs
            if exporter.expressions.of_outputs(candidate) != itself
        ]
        if self.promising:
            binding = graph.facts.binding
            sizes = {n: size for n, size in binding.items() if isinstance(size, int)}
            kept = promising(others, imported, sizes, self.promising)
            if left_out := len(others) - len(kept):
                text = f"keeps the {counted(len(kept), 'graph')} of least work of every"
                text += f" kind, and leaves out {counted(left_out, 'equal one')}"
                warn(self.name, f"{where}: {text} (promising={self.promising})")
            others = kept
        equals = SymbolRefAttr(graph.graph_name)
        attributes: dict[str, Attribute] = {
            EQUALS: equals,
            VERIFIED: _verification(outcome, imported),
        }
        names = (f"{graph.graph_name}_{number}" for number in count(1))
        free = (name for name in names if name not in taken)
        first = graph.clone()
        first.properties["sym_name"] = StringAttr(next(free))
        first.attributes[EQUALS] = equals
        candidates = [first]
        name = next(free)
        for candidate in others[: self.graphs - 1]:
            if clock.expired:
                outcome.stopped_by.append(f"seconds={self.seconds:.3g}")
                break
            exported = exporter.export(candidate, name, attributes)
            # A reshape that the original has at its end may be written the same.
            if not exported.body.is_structurally_equivalent(graph.body):
                candidates.append(exported)
                name = next(free)
        taken.update(candidate.graph_name for candidate in candidates)
        outcome.stopped_by = list(dict.fromkeys(outcome.stopped_by))
        for limit in outcome.stopped_by:
            found = counted(len(candidates), "graph")
            warn(self.name, f"{where}: stopped by {limit}; keeps the {found} found")
        return candidates, _summary(outcome, len(candidates), stats=self.stats)


def _verification(outcome: Outcome, imported: Imported) -> DictionaryAttr:
    """How the candidates of a search were verified."""
    sizes = {
        str(name): IntegerAttr(outcome.sizes[dim], i64)
        for dim, name in imported.names.items()
        if str(name).isidentifier() and dim in outcome.sizes
    }
    return DictionaryAttr(
        {
            "seeds": DenseArrayBase.from_list(i64, outcome.seeds),
            "trials": IntegerAttr(outcome.trials, i64),
            "sizes": DictionaryAttr(sizes),
            "float64": IntegerAttr.from_bool(outcome.checked_in_reals),
        }
    )


def _summary(outcome: Outcome, candidates: int, *, stats: bool) -> DictionaryAttr:
    """How a search ended."""
    summary: dict[str, Attribute] = {
        "candidates": IntegerAttr(candidates, i64),
        "sums": StringAttr(outcome.sums),
    }
    if outcome.stopped_by:
        summary["stopped_by"] = ArrayAttr(map(StringAttr, outcome.stopped_by))
    if stats:
        statistics = outcome.statistics
        counts = {
            "values": statistics.values,
            "useful": statistics.useful,
            "evaluated": statistics.evaluated,
            "pruned_by_class": statistics.pruned.pruned_by_class,
            "pruned_by_dims": statistics.pruned.pruned_by_dims,
            "undefined": statistics.undefined,
            "synonyms": statistics.synonyms,
            "disagreeing": statistics.disagreeing,
            "useless": statistics.useless,
            "milliseconds": round(1000 * statistics.seconds),
        }
        summary["statistics"] = DictionaryAttr(
            {name: IntegerAttr(number, i64) for name, number in counts.items()}
        )
    return DictionaryAttr(summary)
