from cleave.dialects.wording import counted


def test_one_thing_is_singular() -> None:
    assert counted(1, "graph") == "1 graph"


def test_others_are_plural_and_large_numbers_are_grouped() -> None:
    assert counted(0, "graph") == "0 graphs"
    assert counted(2000, "index vector") == "2,000 index vectors"
