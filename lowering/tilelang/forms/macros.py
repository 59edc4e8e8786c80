"""Macros of a hand-written kernel, whose parameters follow from their statements."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cleave.lowering.tilelang.text import INDENT, WIDTH, call_lines, indented


@dataclass
class Macros:
    """
    The macros of one function, in order.

    A macro sees what is defined around the function, its constants and other macros; it
    is given everything else that its statements use.
    """

    known: set[str]
    lines: list[str] = field(default_factory=list[str])

    def constant(self, name: str, value: str) -> None:
        self.known.add(name)
        self.lines.append(f"{name} = {value}")

    def add(
        self,
        name: str,
        what: str,
        statements: Sequence[str],
        given: Mapping[str, str] | None = None,
        returns: str = "",
    ) -> list[str]:
        """
        Write a macro; the statement that calls it where its names mean the same, except
        for parameters that are `given` something else.
        """
        arguments = dict(given or {})
        for parameter in free_names([*statements, returns]):
            if parameter not in self.known:
                arguments.setdefault(parameter, parameter)
        self.known.add(name)
        self.lines += [
            "",
            f"# {what}",
            "@T.macro",
            *call_lines(f"def {name}(", list(arguments), "):"),
            *indented([part for line in statements for part in _fitted(line)]),
            *indented([f"return {returns}"] if returns else []),
        ]
        return call_lines(f"{name}(", list(arguments.values()))


def free_names(statements: Sequence[str]) -> list[str]:
    """The names that statements use and do not define, in order of appearance."""
    tree = ast.parse("\n".join(statements))
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    names.sort(key=lambda name: (name.lineno, name.col_offset))
    defined = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    used = dict.fromkeys(name.id for name in names if name.id not in defined)
    return list(used)


def _fitted(line: str) -> list[str]:
    """A statement over several lines where it is a call that one is too narrow for."""
    text = line.lstrip()
    space = line[: len(line) - len(text)]
    if len(line) + len(INDENT) * 2 <= WIDTH or not text.endswith(")"):
        return [line]
    (statement,) = ast.parse(text).body
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return [line]
    parts = [ast.get_source_segment(text, argument) for argument in call.args]
    parts += [
        f"{keyword.arg}={ast.get_source_segment(text, keyword.value)}"
        for keyword in call.keywords
    ]
    start = f"{ast.get_source_segment(text, call.func)}("
    return [space + part for part in call_lines(start, [p or "" for p in parts])]
