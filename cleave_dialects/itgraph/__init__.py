"""
The `itgraph` dialect: tile programs as levels (DESIGN section 5, paper section 5.2).

A plan holds kernels, a kernel holds loops, and each level sees tiles of tensors through
views; bodies hold algebra operators on tiles. `cleave.dialects.itgraph.parts` shows how
levels are built from Python.
"""

from xdsl.ir import Dialect

from cleave.dialects.itgraph.attributes import (
    LookupAttr,
    RangeAttr,
    StateAttr,
    StateKind,
    TMapAttr,
)
from cleave.dialects.itgraph.kernel import KernelOp, YieldOp
from cleave.dialects.itgraph.level import (
    Level,
    Scope,
    facts_at,
    levels_around,
    memory_of,
    plan_of,
    scope_of,
    set_memory,
)
from cleave.dialects.itgraph.library import LibraryMatmul
from cleave.dialects.itgraph.loop import LoopOp, NextOp
from cleave.dialects.itgraph.memory import Memory, MemoryAttr
from cleave.dialects.itgraph.operators import Copy, Tail
from cleave.dialects.itgraph.parts import (
    Contribution,
    Let,
    Output,
    State,
    View,
    entry_block,
)
from cleave.dialects.itgraph.plan import PlanOp, ReturnOp
from cleave.dialects.itgraph.tmap import Lookup, Range, TMap

__all__ = [
    "Contribution",
    "Copy",
    "ItGraph",
    "KernelOp",
    "Let",
    "Level",
    "LibraryMatmul",
    "Lookup",
    "LookupAttr",
    "LoopOp",
    "Memory",
    "MemoryAttr",
    "NextOp",
    "Output",
    "PlanOp",
    "Range",
    "RangeAttr",
    "ReturnOp",
    "Scope",
    "State",
    "StateAttr",
    "StateKind",
    "TMap",
    "TMapAttr",
    "Tail",
    "View",
    "YieldOp",
    "entry_block",
    "facts_at",
    "levels_around",
    "memory_of",
    "plan_of",
    "scope_of",
    "set_memory",
]

ItGraph = Dialect(
    "itgraph",
    [PlanOp, KernelOp, LoopOp, NextOp, YieldOp, ReturnOp, Tail, Copy, LibraryMatmul],
    [TMapAttr, RangeAttr, LookupAttr, StateAttr, MemoryAttr],
)
