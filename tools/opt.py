"""
`cleave-opt`: xdsl-opt with the dialects, passes and targets of Cleave.

    cleave-opt FILE -p 'a,b{x=1 y=2},c' [-t tilelang]
"""

import argparse
import sys
from collections.abc import Sequence
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.parser import Span
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import (
    DiagnosticException,
    PassFailedException,
    VerifyException,
)
from xdsl.xdsl_opt_main import xDSLOptMain

import cleave
from cleave.tools.errors import UsageError, guarded, refuse, unknown
from cleave.tools.located_parser import LocatedParser
from cleave.tools.options import specs_in, with_options
from cleave.tools.verification import explained
from cleave.universe import CLEAVE


class CleaveOptMain(xDSLOptMain):
    """
    Registers Cleave by hand, so that the tool also runs from a checkout that was never
    installed; where it was, xDSL has found the same factories already.
    """

    version_format = f"cleave-opt {cleave.__version__} on xDSL {{xdsl_version}}"

    running: ModulePass | None = None
    """The pass that is being applied."""

    spans: dict[Operation, Span]
    """Where each operation of the module was read."""

    def register_all_dialects(self) -> None:
        super().register_all_dialects()
        for name, factory in CLEAVE.all_dialects.items():
            if name not in self.ctx.registered_dialect_names:
                self.ctx.register_dialect(name, factory)

    def register_all_passes(self) -> None:
        super().register_all_passes()
        self.available_passes |= CLEAVE.all_passes

    def register_all_targets(self) -> None:
        super().register_all_targets()
        self.available_targets |= CLEAVE.all_targets

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        arg_parser.prog = "cleave-opt"
        arg_parser.usage = "%(prog)s [FILE] [-p PASSES] [-t TARGET] [OPTION ...]"
        arg_parser.description = (
            f"Passes of Cleave: {', '.join(CLEAVE.all_passes)}. "
            f"Targets of Cleave: {', '.join(CLEAVE.all_targets)}."
        )
        arg_parser.add_argument(
            "--debug", action="store_true", help="Show the Python traceback of an error"
        )
        arg_parser.error = refuse  # argparse prints its message under all of the usage

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        """The input, and its kind: whatever has no frontend is read as MLIR text."""
        stream, extension = super().get_input_stream()
        known = extension in self.available_frontends
        return stream, extension if known else "mlir"

    def parse_chunk(
        self, chunk: IO[bytes], file_extension: str, start_offset: int = 0
    ) -> ModuleOp | None:
        self.spans = {}
        if (self.args.frontend or file_extension) != "mlir":
            return super().parse_chunk(chunk, file_extension, start_offset)
        parser = LocatedParser(
            self.ctx, chunk.read(), self.get_input_name(), start_offset
        )
        self.spans = parser.spans
        return parser.parse_module(not self.args.no_implicit_module)

    def setup_pipeline(self) -> None:
        passes: list[ModulePass] = []
        for spec in specs_in("pass", self.args.passes):
            if spec.name not in self.available_passes:
                known, where = self.available_passes, "see cleave-opt --help"
                raise unknown("there is no pass", spec.name, known, where)
            passes.append(
                with_options("pass", self.available_passes[spec.name](), spec)
            )
        target, *others = specs_in("target", self.args.target)
        if others:
            raise UsageError(f"one target prints the module, not '{self.args.target}'")
        if target.name in CLEAVE.all_targets:
            with_options("target", CLEAVE.all_targets[target.name](), target)
        # xDSL would read the options again, by other rules; only what it does between
        # passes is wanted.
        text, self.args.passes = self.args.passes, ""
        super().setup_pipeline()
        self.args.passes = text
        verify = self.pipeline.callback
        assert verify is not None

        def between_passes(
            previous: ModulePass | None, module: ModuleOp, following: ModulePass | None
        ) -> None:
            self.running = None
            try:
                verify(previous, module, following)
            except VerifyException as error:
                raise explained(error, module, self.spans, previous) from error
            self.running = following

        self.pipeline = PassPipeline(tuple(passes), between_passes)

    def apply_passes(self, prog: ModuleOp) -> None:
        try:
            super().apply_passes(prog)
        except (DiagnosticException, ValueError) as error:
            if self.running is None:
                raise
            raise PassFailedException(f"pass '{self.running.name}': {error}") from error
        except Exception as error:
            if self.running is not None:
                error.add_note(f"in pass '{self.running.name}'")
            raise


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool on `args`, by default those of the command line; see `guarded`."""
    args = sys.argv[1:] if args is None else args

    def run() -> int:
        CleaveOptMain(args=args).run()
        return 0

    return guarded(run, debug="--debug" in args)


if __name__ == "__main__":
    sys.exit(main())
