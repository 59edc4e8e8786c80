"""Which tiles TMA can move: by what is known of strides and rows."""

import pytest
from xdsl.dialects.builtin import f16, f32
from xdsl.ir import Attribute

from cleave.dialects.dims import Dim, parse_dim_text
from cleave.dialects.facts import Fact, Facts
from cleave.dialects.itgraph.tmap import TMap
from cleave.passes.memory import bulk


def moves_in_bulk(
    dims: str,
    tile: str,
    where: tuple[Fact, ...] = (),
    element: Attribute = f16,
    offsets: str | None = None,
) -> bool:
    symbols = ("M", "L", "D", "BM", "BL")
    facts = Facts(where, symbols)
    shape = parsed(tile)
    tmap = TMap(parsed(offsets) if offsets else (0,) * len(shape), shape)
    return bulk.moves_in_bulk(parsed(dims), tmap, element, facts)


def parsed(dims: str) -> tuple[Dim, ...]:
    return tuple(map(parse_dim_text, dims.split()))


def test_rows_of_a_known_multiple_of_16_bytes_do():
    assert moves_in_bulk("M 64", "128 64")
    assert moves_in_bulk("M 72", "128 80")
    assert moves_in_bulk("M L", "128 64", (Fact(8, "|", parse_dim_text("L")),))
    assert moves_in_bulk("M 4", "128 4", element=f32)


@pytest.mark.parametrize("dims", ["M L", "M 1023", "M 4"])
def test_rows_of_another_or_an_unknown_size_do_not(dims: str):
    assert not moves_in_bulk(dims, "128 64")


def test_a_vector_has_no_strides():
    assert moves_in_bulk("1 L", "1 64")
    assert moves_in_bulk("L", "64")
    assert not moves_in_bulk("L", "4")


def test_rows_count_that_lie_behind_dims_of_size_1():
    assert moves_in_bulk("M 1 64 1", "1 1 64 1")
    assert not moves_in_bulk("M 1 L 1", "1 1 64 1")


def test_rows_of_one_element_are_not_padded_in_bulk():
    assert not moves_in_bulk("M 1", "128 16")


@pytest.mark.parametrize("begin", ["i*64", "i*64+j*24", "8", "M*8"])
def test_rows_that_begin_at_multiples_of_16_bytes_do(begin: str):
    assert moves_in_bulk("M 4096", "1 64", offsets=f"i {begin}")
    assert moves_in_bulk("4096", "64", offsets=begin)


@pytest.mark.parametrize("begin", ["i*64+j*12", "4", "M", "i", "j*L"])
def test_rows_that_begin_elsewhere_do_not(begin: str):
    assert not moves_in_bulk("M 4096", "1 64", offsets=f"i {begin}")
    assert not moves_in_bulk("4096", "64", offsets=begin)
