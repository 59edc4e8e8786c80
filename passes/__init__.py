"""The passes of Cleave, one file a pass."""

if __name__ != "cleave.passes":
    # A second copy of every op class would make isinstance() and type equality fail
    # without a word, and patterns stop matching.
    raise ImportError(f"import cleave.passes, not {__name__}")

# Each pass by its name on the command line: the module, which is that name in snake
# case, and the `ModulePass` in it.
PASSES: dict[str, tuple[str, str]] = {}
