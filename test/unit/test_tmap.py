"""Tile maps as data, and what the attributes around them refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.dims import evaluate, symbol
from cleave.dialects.itgraph import (
    Memory,
    MemoryAttr,
    StateAttr,
    StateKind,
    TMap,
    TMapAttr,
)

M, D, BM, BL = map(symbol, ("M", "D", "BM", "BL"))
i, j = symbol("i"), symbol("j")


def cut(x: NDArray[Any], tmap: TMap, values: dict[str, int]) -> NDArray[Any]:
    begin = [evaluate(dim, values) for dim in tmap.offsets]
    tile = [evaluate(dim, values) for dim in tmap.tile]
    return x[tuple(slice(b, b + t) for b, t in zip(begin, tile, strict=True))]


@pytest.mark.parametrize("values", [{"i": 0, "j": 3}, {"i": 2, "j": 1}])
def test_a_view_of_a_view_is_one_tmap(values: dict[str, int]) -> None:
    x = np.arange(24 * 10).reshape(24, 10)
    outer = TMap((i * 8, 2), (8, 7))
    inner = TMap((j * 2, 3), (2, 4))
    both = cut(cut(x, outer, values), inner, values)
    assert np.array_equal(cut(x, outer.then(inner), values), both)


def test_gathered_rows_compose_only_as_a_whole() -> None:
    gathered = TMap((0, i), (BL, 1), gathers=(0,))
    whole = TMap((0, 0), (BL, 1))
    assert gathered.then(whole) == gathered
    assert TMap((0, i), (M, 1)).then(TMap((0, 0), (BL, 1), (0,))) == gathered
    with pytest.raises(
        ValueError, match="dim 0 is sliced after its rows were gathered"
    ):
        gathered.then(TMap((j, 0), (BL, 1)))
    with pytest.raises(ValueError, match="dim 0 is gathered in a view that is offset"):
        TMap((i, 0), (M, 1)).then(TMap((0, 0), (BL, 1), (0,)))
    with pytest.raises(ValueError, match="a tmap of rank 1 in a view of rank 2"):
        whole.then(TMap((0,), (1,)))


def test_names_of_a_tmap() -> None:
    tmap = TMap((i * BM, 0), (BM, D))
    assert tmap.names == {"i", "BM", "D"}
    assert tmap.substitute({"i": 0, "D": 4}) == TMap((0, 0), (BM, 4))
    assert TMap.whole((BM, D)).is_whole((BM, D))
    assert not TMap((0, 0), (BM, D), (1,)).is_whole((BM, D))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TMapAttr(TMap((0,), (1, 1))), "1 offset but a tile of rank 2"),
        (lambda: TMapAttr(TMap((0, 0), (1, 1), (1, 0))), r"dims \[1, 0\] are not asc"),
        (lambda: TMapAttr(TMap((0, 0), (1, 1), (2,))), r"dims \[2\] are not ascending"),
        (lambda: TMapAttr(TMap((i, 0), (1, 1), (0,))), "dim 0 is gathered and has off"),
        (lambda: StateAttr("sum", (0,)), "a 'sum' state has no offsets"),
        (
            lambda: StateAttr(cast(StateKind, "min")),
            "state kind 'min' is not one of carry, sum, max",
        ),
        (lambda: MemoryAttr(Memory("gmem", "fragment")), "in gmem is not fragment but"),
    ],
)
def test_attributes_that_make_no_sense(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(VerifyException, match=message):
        make()
