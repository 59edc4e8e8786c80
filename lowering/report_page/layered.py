"""
Layered drawings of directed acyclic graphs (Sugiyama, Tagawa and Toda, 1981).

Nodes stand in layers so that edges point downwards; an edge over several layers passes
through a place of its own in each. Places of a layer are ordered by where their
neighbours are, and then moved towards them as far as their order allows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

LAYER_GAP = 34.0
NODE_GAP = 22.0
MARGIN = 4.0
ORDER_SWEEPS = 12
POSITION_SWEEPS = 200
STIFFNESS = 3.0
"""How much harder a place on an edge pulls than a node: long edges are straight."""


class Point(NamedTuple):
    """In pixels, from the top left."""

    x: float
    y: float


@dataclass(frozen=True)
class Layout:
    """Where nodes stand (their centers), and through what points edges go."""

    centers: Sequence[Point]
    paths: Sequence[Sequence[Point]]
    """Straight within layers: from point 1 to 2, 3 to 4 and so on; free in between."""
    width: float
    height: float


def layered(
    sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]]
) -> Layout:
    """
    Lay out nodes of these widths and heights. Edges are pairs of their numbers, from a
    lower to a higher one. Edges from one node share their way as long as they can.
    """
    return _Layering(sizes, edges).layout()


class _Place(NamedTuple):
    """A node in its layer, or where edges from it cross a layer below."""

    node: int
    layer: int


class _Layering:
    def __init__(
        self, sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]]
    ) -> None:
        self.sizes = sizes
        self.edges = edges
        self.layer_of = _layers(len(sizes), edges)
        self.above: defaultdict[_Place, list[_Place]] = defaultdict(list)
        self.below: defaultdict[_Place, list[_Place]] = defaultdict(list)
        places = {_Place(n, layer): None for n, layer in enumerate(self.layer_of)}
        links: dict[tuple[_Place, _Place], None] = {}
        for edge in edges:
            way = self._way(*edge)
            places.update(dict.fromkeys(way))
            links.update(dict.fromkeys(pairwise(way)))
        for upper, lower in links:
            self.below[upper].append(lower)
            self.above[lower].append(upper)
        self.layers: list[list[_Place]] = [[] for _ in range(1 + max(self.layer_of))]
        for place in sorted(places):
            self.layers[place.layer].append(place)

    def _way(self, source: int, target: int) -> list[_Place]:
        """The places that an edge goes through."""
        first, last = self.layer_of[source], self.layer_of[target]
        middle = [_Place(source, layer) for layer in range(first, last)]
        return [*middle, _Place(target, last)]

    def _width(self, place: _Place) -> float:
        is_node = self.layer_of[place.node] == place.layer
        return self.sizes[place.node][0] if is_node else 0.0

    def layout(self) -> Layout:
        self._order()
        x = self._positions()
        left = min(x[place] - self._width(place) / 2 for place in x) - MARGIN
        right = max(x[place] + self._width(place) / 2 for place in x) + MARGIN
        heights = [0.0] * len(self.layers)
        for node, layer in enumerate(self.layer_of):
            heights[layer] = max(heights[layer], self.sizes[node][1])
        tops = [MARGIN]
        for height in heights:
            tops.append(tops[-1] + height + LAYER_GAP)

        def ends(place: _Place) -> tuple[Point, Point]:
            """Where edges enter a place, and where they leave it."""
            top, height = tops[place.layer], heights[place.layer]
            own = height
            if self.layer_of[place.node] == place.layer:
                own = self.sizes[place.node][1]
            middle, across = top + height / 2, x[place] - left
            return Point(across, middle - own / 2), Point(across, middle + own / 2)

        centers = [
            Point(
                x[_Place(node, layer)] - left,
                tops[layer] + heights[layer] / 2,
            )
            for node, layer in enumerate(self.layer_of)
        ]
        paths = [
            [point for place in self._way(*edge) for point in ends(place)][1:-1]
            for edge in self.edges
        ]
        height = tops[-1] - LAYER_GAP + MARGIN
        return Layout(centers, paths, right - left, height)

    def _order(self) -> None:
        """Order places by the mean of their neighbours; keep what crosses least."""
        best, fewest = self.layers, self._crossings()
        for sweep in range(ORDER_SWEEPS):
            down = sweep % 2 == 0
            near = self.above if down else self.below
            layers = list(self.layers)
            numbers = range(len(layers))
            at: dict[_Place, float] = {}
            for number in numbers if down else reversed(numbers):
                means = {
                    place: _mean([at[other] for other in near[place]], position)
                    for position, place in enumerate(layers[number])
                }
                layers[number] = sorted(layers[number], key=means.__getitem__)
                at.update((p, float(n)) for n, p in enumerate(layers[number]))
            self.layers = layers
            if (crossings := self._crossings()) < fewest:
                best, fewest = layers, crossings
        self.layers = best

    def _crossings(self) -> int:
        count = 0
        for upper, lower in pairwise(self.layers):
            at = {place: position for position, place in enumerate(lower)}
            links = [
                (position, at[other])
                for position, place in enumerate(upper)
                for other in self.below[place]
            ]
            count += sum(
                (a - c) * (b - d) < 0
                for n, (a, b) in enumerate(links)
                for c, d in links[:n]
            )
        return count

    def _positions(self) -> dict[_Place, float]:
        """
        The x of each place, without overlaps: the squares of how far links go aside are
        made least for one layer after the other, which nears the least of all.
        """
        x: dict[_Place, float] = {}
        for layer in self.layers:
            x.update(self._apart(layer, [(0.0, 1.0)] * len(layer)))
        for sweep in range(POSITION_SWEEPS):
            order = self.layers if sweep % 2 == 0 else self.layers[::-1]
            for layer in order:
                x.update(self._apart(layer, [self._wish(p, x) for p in layer]))
        return x

    def _wish(self, place: _Place, x: Mapping[_Place, float]) -> tuple[float, float]:
        """Where a place would stand if it were alone, and how much that counts."""
        near = [*self.above[place], *self.below[place]]
        weights = [self._stiffness(place) * self._stiffness(other) for other in near]
        if not near:
            return x[place], 1.0
        pulls = [x[other] * weight for other, weight in zip(near, weights, strict=True)]
        return sum(pulls) / sum(weights), sum(weights)

    def _stiffness(self, place: _Place) -> float:
        return 1.0 if self._width(place) else STIFFNESS

    def _apart(
        self, layer: Sequence[_Place], wishes: Sequence[tuple[float, float]]
    ) -> dict[_Place, float]:
        """
        The positions nearest to the wishes, by weighted squares, that keep order and
        gaps: pools of neighbours that would overlap move as one.
        """
        offsets = [0.0]
        for one, other in pairwise(layer):
            width = self._width(one) + self._width(other)
            offsets.append(offsets[-1] + width / 2 + NODE_GAP)
        pools: list[tuple[float, float, int]] = []
        for (target, weight), offset in zip(wishes, offsets, strict=True):
            mean, count = target - offset, 1
            while pools and pools[-1][0] > mean:
                other, others, members = pools.pop()
                mean = (mean * weight + other * others) / (weight + others)
                weight += others
                count += members
            pools.append((mean, weight, count))
        means = [mean for mean, _, count in pools for _ in range(count)]
        found = [mean + offset for mean, offset in zip(means, offsets, strict=True)]
        return dict(zip(layer, found, strict=True))


def _layers(nodes: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Below all that a node needs; what needs nothing, right above its first use."""
    layers = [0] * nodes
    users: defaultdict[int, list[int]] = defaultdict(list)
    for source, target in sorted(edges, key=lambda edge: edge[1]):
        layers[target] = max(layers[target], layers[source] + 1)
        users[source].append(target)
    fed = {target for _, target in edges}
    for node in range(nodes):
        if node not in fed and users[node]:
            layers[node] = min(layers[user] for user in users[node]) - 1
    return layers


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
