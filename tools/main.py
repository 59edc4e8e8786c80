"""`cleave`: from a file with a tensor subgraph to a kernel, in sub-commands."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

import cleave
from cleave.tools import COMMANDS
from cleave.tools.errors import guarded, refuse, unknown


def parser_for(command: str | None) -> argparse.ArgumentParser:
    """
    The parser of the whole command line. Only the one `command` is imported and knows
    its arguments; the others are just listed, so that each starts fast.
    """
    parser = argparse.ArgumentParser(prog="cleave", description=cleave.__doc__)
    parser.add_argument(
        "-v", "--version", action="version", version=f"cleave {cleave.__version__}"
    )
    parser.error = refuse
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module, summary) in COMMANDS.items():
        subparser = commands.add_parser(name, help=summary, description=summary)
        subparser.error = refuse  # argparse prints its message under all of the usage
        if name == command:
            import_module(module).add_arguments(subparser)
            subparser.add_argument(
                "--debug",
                action="store_true",
                help="show the Python traceback of an error",
            )
    return parser


def main(args: Sequence[str] | None = None) -> int:
    """Run `cleave` on `args`, by default those of the command line; see `guarded`."""
    args = sys.argv[1:] if args is None else args
    command = args[0] if args and not args[0].startswith("-") else None

    def run() -> int:
        if command is not None and command not in COMMANDS:
            raise unknown("there is no command", command, COMMANDS)
        namespace = parser_for(command).parse_args(args)
        module, _ = COMMANDS[namespace.command]
        return import_module(module).run(namespace)

    return guarded(run, debug="--debug" in args)


if __name__ == "__main__":
    sys.exit(main())
