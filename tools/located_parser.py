"""MLIR text, with the place where each operation was written."""

from xdsl.context import Context
from xdsl.ir import Operation
from xdsl.parser import Parser, Span
from xdsl.utils.exceptions import VerifyException

from cleave.tools.errors import InvalidOperation


class LocatedParser(Parser):
    """
    Raises `InvalidOperation` where xDSL's parser raises a `VerifyException` that has no
    place: for a type, an attribute or an operand that does not verify.
    """

    spans: dict[Operation, Span]
    """The text of each operation that was read; xDSL keeps none itself."""

    def __init__(self, ctx: Context, text: bytes, name: str, line_offset: int = 0):
        """Read `text`, which stands in the file `name` below `line_offset` lines."""
        super().__init__(ctx, text, name)
        self.spans = {}
        self.line_offset = line_offset

    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        try:
            op = super().parse_operation()
        except InvalidOperation:
            raise
        except VerifyException as error:
            raise InvalidOperation(str(error), self._span_from(start)) from error
        self.spans[op] = self._span_from(start)
        return op

    def _span_from(self, start: int) -> Span:
        """The first line of what was read since the position `start`."""
        source = self.lexer.input
        end = min(self.pos, source.get_end_of_line(start))
        text = source.content[start:end].rstrip()
        return Span(start, start + len(text), source, self.line_offset)
