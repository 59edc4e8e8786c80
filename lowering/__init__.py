"""What leaves the IR: TileLang text, NumPy execution, compilation and timing."""

if __name__ != "cleave.lowering":
    # A second copy of every op class would make isinstance() and type equality fail
    # without a word, and patterns stop matching.
    raise ImportError(f"import cleave.lowering, not {__name__}")

# Each target by its name on the command line: the module and the `Target` in it.
TARGETS: dict[str, tuple[str, str]] = {
    "tilelang": ("cleave.lowering.tilelang.target", "TileLangTarget"),
}
