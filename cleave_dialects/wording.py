"""How numbers of things are worded."""


def plural(noun: str, number: int) -> str:
    """`graph` for one of them, `graphs` for any other number."""
    return noun if number == 1 else f"{noun}s"
