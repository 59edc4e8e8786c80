"""The dialects `algebra` and `itgraph`, and the symbolic dims and facts they use."""

if __name__ != "cleave.dialects":
    # A second copy of every op class would make isinstance() and type equality fail
    # without a word, and patterns stop matching.
    raise ImportError(f"import cleave.dialects, not {__name__}")

# Each dialect by its name in IR text: the module and the `Dialect` in it.
DIALECTS: dict[str, tuple[str, str]] = {
    "algebra": ("cleave.dialects.algebra", "Algebra"),
    "itgraph": ("cleave.dialects.itgraph", "ItGraph"),
}
