"""
Ranking: the best schedules of a graph, by the cost model.

Every structure is scheduled once and every kernel form evaluated over all of its tile
configurations at once; what breaks a rule is counted by the rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from xdsl.utils.exceptions import PassFailedException

from cleave.dialects.algebra.graph import GraphOp
from cleave.dialects.dims import evaluate, names_of
from cleave.dialects.itgraph.plan import PlanOp
from cleave.lowering.hardware import Hardware
from cleave.passes.cost.closed_forms import KernelForms
from cleave.passes.cost.evaluation import Evaluation
from cleave.passes.cost.extraction import kernel_forms
from cleave.passes.cost.form import FormCost, Launch, Limit, Mask, Rule
from cleave.passes.cost.forms import FORM_COSTS
from cleave.passes.plan_memory import PlanMemoryPass
from cleave.passes.schedule_blocks import schedule_blocks
from cleave.passes.scheduling.configurations import (
    Configurations,
    TileRange,
    configurations,
    divides_all,
)
from cleave.passes.scheduling.dim_choices import DimUse, DimUses
from cleave.passes.scheduling.structures import (
    LoopStructure,
    Scheduled,
    Tiles,
    Warps,
    is_whole_choice,
    iterated,
    kernels_of,
    loop_structures,
    planned,
    schedule,
)

KEPT = 32
"""Schedules that are kept of one structure, form and direction of the warps."""
EVEN = 256
"""A dim that is a multiple of it has tiles of all useful sizes that divide it."""
SAME_TIME = 0.002
USUAL_STAGES = 4
"""Of launches whose times differ by less than that share, one with about so many
stages is kept: enough for what the model does not see, and little SMEM."""


@dataclass(frozen=True)
class Search:
    """What is searched, and for which GPU."""

    hardware: Hardware
    iterate: bool = True
    """Iterate reductions; without, all are whole (ablation)."""
    layouts: bool = True
    """Reason about tensor-core layouts; without, tiles go through SMEM (ablation)."""
    forms: Sequence[FormCost] = FORM_COSTS


@dataclass(frozen=True)
class KernelSchedule:
    """One way to run a graph as one kernel."""

    structure: LoopStructure
    blocks: Mapping[str, int]
    reductions: Mapping[str, int]
    form: str
    warps: Warps
    launch: Launch
    panel: int
    seconds: float
    """By the model, without the launch."""

    @property
    def chosen_structure(self) -> LoopStructure:
        """The structure with the tiles that were chosen, which may not divide dims."""
        return LoopStructure(self.blocks, self.reductions, has_tails=True)

    def plan(self, graph: GraphOp, search: Search) -> PlanOp:
        """The planned tile program of `graph` (with its casts) by this schedule."""
        return planned(
            schedule(graph, self.chosen_structure).plan,
            PlanMemoryPass(
                threads=self.launch.threads,
                stages=self.launch.stages,
                swizzle=self.panel,
                warps=self.warps,
                specialization=self.launch.specialization,
                form=self.form,
                arch=search.hardware.arch,
                layouts=search.layouts,
            ),
        )

    def __str__(self) -> str:
        tiles = [f"{name}={size}" for name, size in self.blocks.items()]
        steps = [f"{name}={size}" for name, size in self.reductions.items()]
        parts = [
            f"tile {' '.join(tiles) or 'none'}",
            f"reduce {' '.join(steps) or 'none'}",
            self.form,
            str(self.launch),
            f"warps along {self.warps}",
        ]
        return ", ".join([*parts, *([f"panel {self.panel}"] if self.panel else [])])


@dataclass
class Pruned:
    """What was left out: configurations by rule, structures by refusal."""

    evaluated: int = 0
    by_rule: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    nearest: dict[str, str] = field(default_factory=dict[str, str])
    """For each rule, what the configuration says that comes nearest to keeping it."""

    def add(self, other: Pruned) -> None:
        self.evaluated += other.evaluated
        self.by_rule.update(other.by_rule)
        self.refused.update(other.refused)
        self.nearest = {**other.nearest, **self.nearest}

    def binding(self) -> str:
        """Why there is no legal schedule: the rule that leaves out most."""
        if self.by_rule:
            rule, _ = self.by_rule.most_common(1)[0]
            return self.nearest[rule]
        if self.refused:
            return self.refused.most_common(1)[0][0]
        return "the graph has no loop structure"


@dataclass(frozen=True)
class Ranked:
    """The schedules of a graph, the best first, for each of its split counts."""

    schedules: Mapping[tuple[int, ...], Sequence[KernelSchedule]]
    pruned: Mapping[tuple[int, ...], Pruned]


def rank(graph: GraphOp, counts: Mapping[str, Sequence[int]], search: Search) -> Ranked:
    """
    Rank the schedules of a graph with its casts.

    Args:
        counts: values for symbols without one (split counts): one list a symbol, all
            equally long; results are by the values at one position.
    """
    ranking = _Ranking(graph, counts, search)
    ranking.run()
    return Ranked(
        {
            key: sorted(found, key=lambda each: each.seconds)
            for key, found in ranking.found.items()
        },
        ranking.pruned,
    )


@dataclass
class _Ranking:
    graph: GraphOp
    counts: Mapping[str, Sequence[int]]
    search: Search

    def __post_init__(self) -> None:
        keys = list(zip(*self.counts.values(), strict=True)) or [()]
        choices = [dict(zip(self.counts, key, strict=True)) for key in keys]
        self.uses = DimUses(self.graph, choices).uses
        self.found: dict[tuple[int, ...], list[KernelSchedule]] = {k: [] for k in keys}
        self.pruned = {key: Pruned() for key in keys}
        self.divided: dict[tuple[tuple[str, int | None], ...], PlanOp | str] = {}
        """By its blocks, what a structure starts from, or why there is no such."""

    def run(self) -> None:
        for structure in loop_structures(self.uses, self.search.iterate):
            self._try(structure)
            if any(
                self._is_uneven(n) for n, t in structure.reductions.items() if not t
            ):
                self._try(replace(structure, has_tails=True))

    def _is_uneven(self, name: str) -> bool:
        """Whether tiles that do not divide a reduced dim may be worth their masks."""
        extents = [self._extent(self.uses[name], counts) for counts in self._counts()]
        return any(extent % EVEN != 0 for extent in extents)

    def _counts(self) -> Iterator[dict[str, int]]:
        for key in self.found:
            yield dict(zip(self.counts, key, strict=True))

    def _extent(self, use: DimUse, counts: Mapping[str, int]) -> int:
        is_known = names_of(use.dim) <= counts.keys()
        return evaluate(use.dim, counts) if is_known else use.extent

    def _try(self, structure: LoopStructure) -> None:
        """Schedule a structure and evaluate it in every form."""
        divided = self._divided(structure.blocks)
        if isinstance(divided, str):
            self._refuse(divided)
            return
        try:
            scheduled = iterated(self.graph, divided, structure)
        except PassFailedException as error:
            self._refuse(str(error))
            return
        for warps in ("rows", "columns"):
            forms: KernelForms | None = None
            for form in self.search.forms:
                if forms and not form.may_fit(forms, self.search.hardware):
                    continue
                forms = self._try_form(structure, scheduled, form, warps) or forms
            if forms is None or not forms.products:
                return  # without a matmul, there is nothing for warps to divide

    def _divided(self, blocks: Tiles) -> PlanOp | str:
        key = tuple(blocks.items())
        if key not in self.divided:
            try:
                self.divided[key] = schedule_blocks(self.graph, dict(blocks))
            except PassFailedException as error:
                self.divided[key] = str(error)
        return self.divided[key]

    def _try_form(
        self,
        structure: LoopStructure,
        scheduled: Scheduled,
        form: FormCost,
        warps: Warps,
    ) -> KernelForms | None:
        """Evaluate a structure in one form; its closed forms, if it fits."""
        memory = PlanMemoryPass(
            warps=warps,
            form=form.name,
            arch=self.search.hardware.arch,
            layouts=self.search.layouts,
        )
        try:
            ready = planned(scheduled.plan, memory)
        except PassFailedException as error:
            self._refuse(str(error))
            return None
        (kernel,) = kernels_of(ready)
        forms = kernel_forms(kernel)
        self._evaluate(structure, scheduled, form, forms)
        return forms

    def _refuse(self, reason: str) -> None:
        for pruned in self.pruned.values():
            pruned.refused[reason] += 1

    def _evaluate(
        self,
        structure: LoopStructure,
        scheduled: Scheduled,
        form: FormCost,
        forms: KernelForms,
    ) -> None:
        launches = form.launches(forms, self.search.hardware)
        if not launches:
            return
        parts: list[Configurations] = []
        keys: list[NDArray[np.int64]] = []
        for index, counts in enumerate(self._counts()):
            columns = self._columns(structure, scheduled, forms, counts)
            parts.append(columns)
            keys.append(np.full(_length(columns), index))
        columns = {
            name: np.concatenate([part[name] for part in parts]) for name in parts[0]
        }
        if _length(columns):
            each = _Evaluated(structure, scheduled, form, forms, launches)
            self._rank(each, np.concatenate(keys), columns)

    def _columns(
        self,
        structure: LoopStructure,
        scheduled: Scheduled,
        forms: KernelForms,
        counts: Mapping[str, int],
    ) -> Configurations:
        """The configurations with these split counts that the structure is for."""
        tiles = self._ranges(scheduled, counts)
        columns = configurations(forms, tiles, self.search.hardware)
        if any(range_.is_loop for range_ in tiles.values()):
            exact = divides_all(columns, tiles)
            kept = ~exact if structure.has_tails else exact
            columns = {name: column[kept] for name, column in columns.items()}
        size = _length(columns)
        return {**columns, **{name: np.full(size, n) for name, n in counts.items()}}

    def _ranges(
        self, scheduled: Scheduled, counts: Mapping[str, int]
    ) -> dict[str, TileRange]:
        ranges: dict[str, TileRange] = {}
        for is_loop, tiles in ((False, scheduled.blocks), (True, scheduled.loops)):
            for tile, name in tiles.items():
                use: DimUse = self.uses[name]
                extent = self._extent(use, counts)
                is_partial = not is_loop and is_whole_choice(use)
                ranges[tile] = TileRange(extent, is_loop, is_partial)
        return ranges

    def _rank(
        self, each: _Evaluated, keys: NDArray[np.int64], columns: Configurations
    ) -> None:
        """Keep the best of the configurations; `keys` say of which counts each is."""
        hardware, launches = self.search.hardware, each.launches
        at = Evaluation(each.forms, columns)
        limits = each.form.limits(at, launches, hardware)
        legal = self._legal(limits, keys, len(launches))
        rows = np.any(legal, axis=1)
        if not rows.any():
            return
        kept = {name: column[rows] for name, column in columns.items()}
        at = at.where(rows)
        times = each.form.times(at, launches, hardware)
        shape = (int(rows.sum()), len(launches))
        seconds = np.where(legal[rows], np.broadcast_to(times.seconds, shape), np.inf)
        panel = np.broadcast_to(times.panel, shape)
        blocks, loops = each.scheduled.blocks, each.scheduled.loops
        for index, found in enumerate(self.found.values()):
            (own,) = np.nonzero(keys[rows] == index)
            for place, column in _best(seconds[own], launches):
                row = own[place]
                sizes = {name: int(kept[name][row]) for name in (*blocks, *loops)}
                found.append(
                    KernelSchedule(
                        each.structure,
                        _chosen(each.structure.blocks, blocks, sizes),
                        _chosen(each.structure.reductions, loops, sizes),
                        each.form.name,
                        each.forms.warps,
                        launches[column],
                        int(panel[row, column]),
                        float(seconds[row, column]),
                    )
                )

    def _legal(
        self,
        limits: Mapping[str, Limit | Rule],
        keys: NDArray[np.int64],
        launches: int,
    ) -> Mask:
        """What obeys every rule; the rest is counted by the first that it breaks."""
        shape = (len(keys), launches)
        legal = np.ones(shape, bool)
        every = list(self.pruned.values())
        for index, pruned in enumerate(every):
            pruned.evaluated += int((keys == index).sum()) * launches
        for name, limit in limits.items():
            broken = legal & np.broadcast_to(limit.exceeded, shape)
            if not broken.any():
                continue
            counts = np.bincount(keys, broken.sum(axis=1), len(every))
            text = ""
            for pruned, count in zip(every, counts, strict=True):
                if count:
                    pruned.by_rule[name] += int(count)
                    if name not in pruned.nearest:
                        text = text or _text(limit, broken)
                        pruned.nearest[name] = text
            legal = legal & ~broken
        return legal


@dataclass(frozen=True)
class _Evaluated:
    """A structure whose memory is planned, in one form."""

    structure: LoopStructure
    scheduled: Scheduled
    form: FormCost
    forms: KernelForms
    launches: Sequence[Launch]


def _chosen(
    tiles: Tiles, symbols: Mapping[str, str], sizes: Mapping[str, int]
) -> dict[str, int]:
    by_name = {name: sizes[tile] for tile, name in symbols.items()}
    return {
        name: by_name[name] if size is None else size for name, size in tiles.items()
    }


def _length(columns: Configurations) -> int:
    return len(next(iter(columns.values())))


def _text(limit: Limit | Rule, broken: Mask) -> str:
    """What the configuration says that comes nearest to keeping a limit."""
    if isinstance(limit, Rule):
        place = int(np.argmax(broken))
        text, noun = limit.text, ""
    else:
        used = np.broadcast_to(limit.used, broken.shape)
        most = np.broadcast_to(limit.limit, broken.shape)
        place = int(np.argmin(np.where(broken, used - most, np.inf)))
        numbers = {"used": int(used.flat[place]), "limit": int(most.flat[place])}
        text, noun = limit.text.format(**numbers), "most for "
    if not limit.parts:
        return text
    shares = [np.broadcast_to(own, broken.shape).flat[place] for _, own in limit.parts]
    return f"{text}: {noun}{limit.parts[int(np.argmax(shares))][0]}"


def _best(
    seconds: NDArray[np.float64], launches: Sequence[Launch]
) -> Iterator[tuple[int, int]]:
    """
    The places of the smallest times, ascending; of launches of one configuration that
    differ only in stages, one.
    """
    order = np.argsort(seconds, axis=None, kind="stable")
    alternatives = [_by_stages(launches, launch) for launch in launches]
    taken: set[tuple[object, ...]] = set()
    for flat in order[: 8 * KEPT]:
        row, column = divmod(int(flat), len(launches))
        time = float(seconds[row, column])
        if not np.isfinite(time) or len(taken) >= KEPT:
            return
        launch = launches[column]
        key = (row, launch.threads, launch.specialization)
        if key not in taken:
            taken.add(key)
            most = time * (1 + SAME_TIME)
            yield row, next(c for c in alternatives[column] if seconds[row, c] <= most)


def _by_stages(launches: Sequence[Launch], chosen: Launch) -> list[int]:
    """Launches that differ from a chosen one in stages only, the usual number first."""
    key = (chosen.threads, chosen.specialization)
    same = [
        (abs(launch.stages - USUAL_STAGES), index)
        for index, launch in enumerate(launches)
        if (launch.threads, launch.specialization) == key
    ]
    return [index for _, index in sorted(same)]
