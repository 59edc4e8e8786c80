"""
How the tools speak of errors: one message that says what is wrong and where.

A message begins like a compiler's, so that editors can follow it to its source:

    matmul.mlir:4:3: error: 'algebra.matmul' op: contracts lhs dim 1, which is K ...
      %s = algebra.matmul %q, %k : !algebra.tensor<[M, N], f32>
      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""

import difflib
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn

from xdsl.parser import Span
from xdsl.utils.exceptions import (
    ArgSpecParseError,
    DiagnosticException,
    ParseError,
    VerifyException,
)


class UsageError(DiagnosticException):
    """A command line that asks for what does not exist."""


class InvalidOperation(VerifyException):
    """An operation that does not verify, with its place in the source."""

    def __init__(self, message: str, span: Span):
        super().__init__(message)
        self.span = span


def unknown(
    statement: str, name: str, known: Iterable[str], where: str = ""
) -> UsageError:
    """
    An error such as `there is no pass 'lop': did you mean loop?`, or, if no known name
    is close to it, `where` to see what there is, by default all of the names.
    """
    known = list(known)
    if close := difflib.get_close_matches(name, known, cutoff=0.7):
        hint = f"did you mean {' or '.join(close)}?"
    else:
        hint = where or f"there is {', '.join(known) or 'none'}"
    return UsageError(f"{statement} '{name}': {hint}")


def refuse(message: str) -> NoReturn:
    """Stand in for `ArgumentParser.error`, which exits."""
    raise UsageError(message)


def message(error: BaseException) -> str:
    """What a user reads of an error, without a final newline."""
    match error:
        case ParseError():
            # xDSL forgets to fill that in.
            text = error.msg.replace("{first_char}", f"'{error.span.text[:1]}'")
            return _located(error.span, text)
        case InvalidOperation():
            return _located(error.span, str(error))
        case ArgSpecParseError():
            # Its text begins with a title and a place in no file.
            _, _, context = str(error).split("\n", maxsplit=2)
            return f"error: malformed pipeline, target or frontend\n{context.rstrip()}"
        case OSError(filename=str(name), strerror=str(reason)):
            return f"error: {name}: {reason}"
        case DiagnosticException() | OSError() | ValueError():
            return f"error: {error}"
        case _:
            notes: list[str] = getattr(error, "__notes__", [])
            return "\n".join(
                [
                    f"error: internal error: {type(error).__name__}: {error}",
                    *notes,
                    "This is a defect of Cleave; --debug shows where it happened.",
                ]
            )


def _located(span: Span | Span[bytes], message: str) -> str:
    # The parser has gone on to the next token when it sees that a type is left out.
    end = span.start + len(span.content.rstrip())
    own = replace(span, end=max(end, span.start))
    place, _, context = own.print_with_context().partition("\n")
    return f"{place}: error: {message}\n{context.rstrip()}"


class Terminated(BaseException):
    """SIGTERM, which like Ctrl-C ends a command but not before what it cleans up."""


@contextmanager
def _interruptible() -> Generator[None]:
    """
    Raise Terminated at the first SIGTERM, and KeyboardInterrupt as usual. Only a main
    thread can do so.

    A search leaves up to a million objects of garbage, through which Python goes again
    when collection is switched on, and when it exits: that took longer than a search.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(number: int, _: object) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)  # `timeout` sends it twice
        gc.freeze()
        raise Terminated

    def interrupt(_: int, __: object) -> NoReturn:
        gc.freeze()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, terminate)
    # Ctrl-C is left alone where it is ignored, as behind nohup.
    takes_interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if takes_interrupts:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if takes_interrupts:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def guarded(command: Callable[[], int], *, debug: bool) -> int:
    """
    Run a command and return its exit code: 1, with a message on standard error, where
    it raised an exception. Only with `debug` is there a traceback.

    A reader that leaves early (`cleave-opt x.mlir | head`) ends the command in silence.
    """
    try:
        with _interruptible():
            status = command()
            sys.stdout.flush()
            return status
    except BrokenPipeError:
        # Python flushes standard output once more when it exits; let that succeed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Terminated:
        return 128 + signal.SIGTERM
    except (Exception, ArgSpecParseError) as error:
        if debug:
            traceback.print_exc()
        print(message(error), file=sys.stderr)
        return 1
