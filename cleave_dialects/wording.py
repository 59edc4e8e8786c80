"""How numbers of things are worded."""


def counted(number: int, noun: str) -> str:
    """`1 graph`, `2 graphs`, `2,000 graphs`."""
    return f"{number:,} {noun if number == 1 else f'{noun}s'}"
