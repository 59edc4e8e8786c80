"""How numbers, times and shares are worded."""


def counted(number: int, noun: str) -> str:
    """`1 graph`, `2 graphs`, `2,000 graphs`."""
    return f"{number:,} {noun if number == 1 else f'{noun}s'}"


def several(ratio: float) -> str:
    """How often, in up to three digits or more: `0.97`, `1.03`, `24`, `1,705`."""
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.3g}"


def duration(milliseconds: float) -> str:
    """A time in four digits: `468.0 us`, `1.316 ms`, `0 us`."""
    if not milliseconds:
        return "0 us"
    if milliseconds < 1e-6:
        return "less than 1 ns"
    seconds = milliseconds * 1e-3
    for unit, scale in (("ns", 1e9), ("us", 1e6), ("ms", 1e3)):
        text = f"{seconds * scale:#.4g}"
        if float(text) < 1000:
            return f"{text} {unit}"
    return f"{seconds:.4g} s"


def share(part: float) -> str:
    """A part of 1 in two digits or more: `78%`, `701%`, `0.42%`."""
    return f"{part:.0%}" if part >= 0.1 else f"{100 * part:.2g}%"
