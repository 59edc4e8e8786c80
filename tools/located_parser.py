"""MLIR text, with the place where each operation was written."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.parser import Parser, Span
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.mlir_lexer import MLIRTokenKind

from cleave.tools.errors import InvalidOperation, UsageError, unknown

_NO_OPERATION = "Could not parse entire input!"
"""What xDSL says where an operation should begin."""


class LocatedParser(Parser):
    """
    xDSL's parser, except that it points to the operation that an error is in where xDSL
    gives no place, or that of the next word.

    Raises `InvalidOperation`, instead of `VerifyException`, for a type, an attribute or
    an operand that does not verify.
    """

    spans: dict[Operation, Span]
    """The first line of each operation that was read; xDSL itself keeps no place."""

    def __init__(self, ctx: Context, text: bytes, name: str, line_offset: int = 0):
        """
        Read `text`, which stands in the file `name` below `line_offset` lines. Raises
        UsageError for what is not UTF-8.
        """
        try:
            super().__init__(ctx, text, name)
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{name}: not UTF-8: {error.reason} at byte {error.start}"
            ) from error
        self.spans = {}
        self._line_offset = line_offset
        self._start = 0  # of the operation whose name is being read

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """The module of the text, an empty one if there is nothing but comments."""
        try:
            return super().parse_module(allow_implicit_module)
        except ParseError as error:
            if error.msg != _NO_OPERATION:
                raise
            at_end = self._current_token.kind is MLIRTokenKind.EOF
            if allow_implicit_module and at_end and not self.spans:
                return ModuleOp([])
            expected = "an operation is expected here"
            raise ParseError(error.span, expected) from error

    def _parse_block(self) -> Block:
        if self._current_token.kind is not MLIRTokenKind.CARET_IDENT:
            self.raise_error("an operation or '}' is expected here")
        return super()._parse_block()

    def parse_operation(self) -> Operation:
        start = self._start = self.pos
        try:
            op = super().parse_operation()
        except InvalidOperation:
            raise
        except VerifyException as error:
            raise InvalidOperation(str(error), self._span_from(start)) from error
        self.spans[op] = self._span_from(start)
        return op

    def _get_op_by_name(self, name: str) -> type[Operation]:
        try:
            return super()._get_op_by_name(name)
        except ParseError as error:
            dialect = name.partition(".")[0]
            if dialect in self.ctx.registered_dialect_names:  # and so loaded by now
                names = (op.name for op in self.ctx.loaded_ops)
                known = [each for each in names if each.startswith(f"{dialect}.")]
                message = str(unknown("there is no operation", name, known))
            else:
                message = f"there is no operation '{name}': nor a dialect '{dialect}'"
            raise ParseError(self._span_from(self._start), message) from error

    def _span_from(self, start: int) -> Span:
        """The first line of what was read since the position `start`."""
        source = self.lexer.input
        end = min(self.pos, source.get_end_of_line(start))
        text = source.content[start:end].rstrip()
        return Span(start, start + len(text), source, self._line_offset)
