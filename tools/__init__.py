"""The commands `cleave-opt` and `cleave`."""

if __name__ != "cleave.tools":
    # A second copy of every op class would make isinstance() and type equality fail
    # without a word, and patterns stop matching.
    raise ImportError(f"import cleave.tools, not {__name__}")

# Each sub-command of `cleave`: its module, and one line on what it does. The module has
# `add_arguments(parser: ArgumentParser) -> None` and `run(args: Namespace) -> int`, the
# exit code.
COMMANDS: dict[str, tuple[str, str]] = {
    "compile": (
        "cleave.tools.compile",
        "Compile a graph to a kernel, check and time it",
    ),
    "explain": ("cleave.tools.explain", "Show which graphs equal a given one"),
    "doctor": ("cleave.tools.doctor", "Say what is installed and what works with it"),
}
