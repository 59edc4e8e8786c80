"""Which operation a verifier means, where xDSL dumps the whole module."""

from collections.abc import Mapping
from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.parser import Span
from xdsl.passes import ModulePass
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cleave.dialects.algebra.graph import OperatorError
from cleave.tools.errors import InvalidOperation


def explained(
    error: VerifyException,
    module: ModuleOp,
    spans: Mapping[Operation, Span],
    previous: ModulePass | None = None,
) -> VerifyException:
    """
    The error with the operation that caused it: its place in the text that `spans`
    knows, or what it looks like after the pass `previous` has changed it.
    """
    found = (_failing(op, str(error)) for op in module.walk())
    op = next(filter(None, found), module)
    text = str(error)
    if not text.startswith("'"):
        text = f"'{op.name}' op: {text}"
    if previous is not None:
        text = f"pass '{previous.name}' left an invalid operation: {text}"
    elif op in spans:
        return InvalidOperation(text, spans[op])
    return VerifyException(f"{text}\n  {_first_line(op)}")


def _failing(op: Operation, message: str) -> Operation | None:
    """
    An operation that by itself does not verify, with this message, or the one in it
    that is to blame.
    """
    try:
        op.verify(verify_nested_ops=False)
    except OperatorError as error:
        return error.operator if str(error) == message else None
    except VerifyException as error:
        return op if str(error) == message else None
    return None


def _first_line(op: Operation) -> str:
    """The text of an operation, which need not be valid, up to its first region."""
    stream = StringIO()
    try:
        Printer(stream).print_op(op)
    except Exception:  # its own syntax may rely on what does not hold
        stream = StringIO()
        Printer(stream, print_generic_format=True).print_op(op)
    return stream.getvalue().partition("\n")[0]
