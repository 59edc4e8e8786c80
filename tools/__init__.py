"""The commands `cleave-opt` and `cleave`."""

if __name__ != "cleave.tools":
    # A second copy of every op class would make isinstance() and type equality fail
    # without a word, and patterns stop matching.
    raise ImportError(f"import cleave.tools, not {__name__}")
