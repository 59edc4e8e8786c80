"""The pieces that kernel forms write their text from."""

from itertools import product
from math import prod
from types import SimpleNamespace
from typing import Any

import pytest

from cleave.lowering.tilelang.forms.macros import Macros, free_names
from cleave.lowering.tilelang.forms.persistent.order import tile_lines


def tile_order(counts: tuple[int, ...], swizzle: int) -> list[tuple[int, ...]]:
    """The tiles in the order in which their numbers count them."""

    def no_variable(dtype: str) -> None: ...

    tilelang = SimpleNamespace(min=min, alloc_var=no_variable)
    iterators = [f"i{axis}" for axis in range(len(counts))]
    divides = len(counts) < 2 or counts[-2] % max(1, swizzle) == 0
    lines = tile_lines(iterators, [str(count) for count in counts], swizzle, divides)
    code = compile("\n".join(lines), "tile_at", "exec")
    tiles: list[tuple[int, ...]] = []
    for number in range(prod(counts)):
        scope: dict[str, Any] = {"number": number, "T": tilelang}
        exec(code, scope)
        tiles.append(tuple(scope[name] for name in iterators))
    return tiles


@pytest.mark.parametrize("counts", [(7,), (4, 6), (9, 5), (3, 10, 4), (2, 2, 3, 5)])
@pytest.mark.parametrize("swizzle", [0, 1, 2, 4, 8])
def test_every_tile_has_one_number(counts: tuple[int, ...], swizzle: int) -> None:
    tiles = tile_order(counts, swizzle)
    assert sorted(tiles) == list(product(*map(range, counts)))


def test_tiles_without_swizzle_are_in_row_major_order() -> None:
    assert tile_order((2, 3, 4), 0) == list(product(range(2), range(3), range(4)))


def test_a_swizzle_takes_so_many_rows_of_tiles_at_a_time() -> None:
    tiles = tile_order((5, 3), 2)
    assert tiles[:6] == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    # What is left of the rows is a smaller group.
    assert tiles[12:] == [(4, 0), (4, 1), (4, 2)]


def test_free_names_are_those_that_statements_use_and_do_not_define() -> None:
    lines = ["for i in T.serial(n):", "    step = first + i", "    f(a[step], sum)"]
    assert free_names(lines) == ["T", "n", "first", "f", "a", "sum"]


def test_a_macro_is_given_what_it_does_not_see() -> None:
    macros = Macros({"T"})
    macros.constant("steps", "4")
    inner = macros.add("inner", "Inner.", ["T.copy(g, tile)"], {"g": "x[0:64]"})
    assert inner == ["inner(x[0:64], tile)"]
    outer = macros.add("outer", "Outer.", ["for k in T.serial(steps):", "    f(x)"])
    assert outer == ["outer(f, x)"]
    assert macros.lines == [
        "steps = 4",
        "",
        "# Inner.",
        "@T.macro",
        "def inner(g, tile):",
        "    T.copy(g, tile)",
        "",
        "# Outer.",
        "@T.macro",
        "def outer(f, x):",
        "    for k in T.serial(steps):",
        "        f(x)",
    ]


def test_long_calls_in_a_macro_are_broken_between_arguments() -> None:
    macros = Macros({"T"})
    macros.add("m", "M.", [f"T.copy({'x' * 50}, {'y' * 40}, barrier=full[0])"])
    assert macros.lines[-4:] == [
        "    T.copy(",
        f"        {'x' * 50},",
        f"        {'y' * 40}, barrier=full[0],",
        "    )",
    ]
