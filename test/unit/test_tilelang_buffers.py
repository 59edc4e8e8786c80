"""How the emitter writes tiles in SMEM, their parts, and elements of both."""

from xdsl.dialects.builtin import f16

from cleave.dialects.dims import parse_dim_text
from cleave.dialects.facts import Facts, parse_fact_text
from cleave.dialects.itgraph import Memory, TMap
from cleave.lowering.tilelang.buffers import Buffer, GlobalTile, Spelling

SYMBOLS = ("M", "K", "H", "BM", "BK")
FACTS = Facts(
    map(parse_fact_text, ("H = 1", "BM = 64", "BK = 32")),
    SYMBOLS,
    {"i": (0, parse_dim_text("K ceildiv BK"))},
)
EVEN = FACTS.extend(parse_fact_text("BK | K"))
SPELLING = Spelling(FACTS, {name: name for name in SYMBOLS}, {"i": "i_2", "h": "h"})
SMEM = Memory("smem", "linear")


def tmap(offsets: str, tile: str) -> TMap:
    return TMap(
        tuple(map(parse_dim_text, offsets.split(", "))),
        tuple(map(parse_dim_text, tile.split(", "))),
    )


def tile(dims: str) -> Buffer:
    parsed = tuple(map(parse_dim_text, dims.split(", ")))
    return Buffer("x", parsed, SPELLING.kept(parsed), f16, SMEM)


def test_dims_of_size_1_are_not_there() -> None:
    x = tile("H, BM, 1, K")
    assert x.allocation(SPELLING) == 'x = T.alloc_shared((BM, K), "float16")'
    assert x.at(["0", "i", "0", "j"]) == "x[i, j]"
    assert tile("1, H").allocation(SPELLING) == 'x = T.alloc_shared((1,), "float16")'
    assert tile("1, H").at(["0", "0"]) == "x[0]"


def test_a_part_is_read_where_it_begins() -> None:
    part = tile("BM, K").part(tmap("0, i * BK", "BM, BK"), SPELLING, EVEN)
    assert part.region == "x[0:BM, i_2 * BK : (i_2 + 1) * BK]"
    assert part.at(["i", "j"]) == "x[i, i_2 * BK + j]"
    assert part.names == ("x", "i_2")


def test_a_part_is_not_read_beyond_its_tile() -> None:
    part = tile("BM, K").part(tmap("0, i * BK", "BM, BK"), SPELLING, FACTS)
    assert part.at(["i", "j"]) == "x[i, T.min(i_2 * BK + j, K - 1)]"


def test_a_part_of_size_1_has_no_position_of_its_own() -> None:
    part = tile("BM, K").part(tmap("0, i", "BM, 1"), SPELLING, FACTS)
    assert part.region == "x[0:BM, i_2]"
    assert part.at(["i", "0"]) == "x[i, i_2]"


def test_a_part_of_a_part() -> None:
    part = tile("BM, K").part(tmap("0, i * BK", "BM, BK"), SPELLING, EVEN)
    inner = part.part(tmap("32, 8", "32, 8"), SPELLING, EVEN)
    assert inner.region == "x[32:64, i_2 * BK + 8 : i_2 * BK + 16]"
    assert inner.at(["i", "j"]) == "x[32 + i, i_2 * BK + 8 + j]"


def test_a_reshaped_tile_is_the_same_buffer() -> None:
    dims = tmap("0, 0, 0", "1, BM, BK").tile
    whole = tile("BM, BK").reshaped(dims, SPELLING)
    assert whole.region == "x"
    assert whole.at(["0", "i", "j"]) == "x[i, j]"
    part = tile("BM, K").part(tmap("0, i * BK", "BM, BK"), SPELLING, EVEN)
    assert part.reshaped(dims, SPELLING).at(["0", "i", "j"]) == "x[i, i_2 * BK + j]"


def test_slices_of_gmem() -> None:
    dims = tuple(map(parse_dim_text, ("H", "M", "K")))
    part = GlobalTile("q", dims, (1, 2), tmap("h, 0, i * BK", "1, M, BK"), f16)
    assert part.slice(SPELLING) == "q[0:M, i_2 * BK : (i_2 + 1) * BK]"
    scalar = GlobalTile("s", (), (), TMap((), ()), f16)
    assert scalar.slice(SPELLING) == "s[0:1]"
