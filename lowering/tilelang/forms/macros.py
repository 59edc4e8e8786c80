"""Macros of a hand-written kernel, whose parameters follow from their statements."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cleave.lowering.tilelang.text import call_lines, indented


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
        ends = [f"return {returns}"] if returns else []
        for parameter in free_names([*statements, *ends]):
            if parameter not in self.known:
                arguments.setdefault(parameter, parameter)
        self.known.add(name)
        self.lines += [
            "",
            f"# {what}",
            "@T.macro",
            *call_lines(f"def {name}(", list(arguments), "):"),
            *indented([*statements, *ends]),
        ]
        return call_lines(f"{name}(", list(arguments.values()))


def free_names(statements: Sequence[str]) -> list[str]:
    """The names that statements use and do not define, in order of appearance."""
    source = "\n".join(statements).replace("return ", "")
    names = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name)]
    names.sort(key=lambda name: (name.lineno, name.col_offset))
    defined = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    used = dict.fromkeys(name.id for name in names if name.id not in defined)
    return list(used)
