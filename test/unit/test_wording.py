import pytest

from cleave.dialects.wording import counted, duration, several, share


def test_one_thing_is_singular() -> None:
    assert counted(1, "graph") == "1 graph"


def test_others_are_plural_and_large_numbers_are_grouped() -> None:
    assert counted(0, "graph") == "0 graphs"
    assert counted(2000, "index vector") == "2,000 index vectors"


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 us"),
        (0.0000034, "3.400 ns"),
        (1.395e-9, "less than 1 ns"),
        (0.468, "468.0 us"),
        (0.99996, "1.000 ms"),
        (1.3164, "1.316 ms"),
        (12345, "12.35 s"),
    ],
)
def test_times_have_four_digits(milliseconds: float, text: str) -> None:
    assert duration(milliseconds) == text


def test_ratios_have_up_to_three_digits() -> None:
    ratios = [several(ratio) for ratio in (0.2424, 1.0, 3.88, 15.5, 1705.2)]
    assert ratios == ["0.242", "1", "3.88", "16", "1,705"]


def test_small_shares_are_not_nothing() -> None:
    shares = [share(part) for part in (7.01, 0.784, 0.1, 0.0424, 0.00042)]
    assert shares == ["701%", "78%", "10%", "4.2%", "0.042%"]
