"""Pieces of Python text: dims as expressions, calls that fit the page, fresh names."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from cleave.dialects.dims import Call, Dim, Term, terms_of

WIDTH = 88
INDENT = "    "
VARIABLES = ("i", "j", "ii", "jj")
"""Loop variables of elementwise statements."""
COUNTERS = (
    *("tiles", "workers", "worker", "wave", "number", "rest", "rows", "part"),
    *("stages", "stage", "steps", "step", "first"),
)
"""What hand-written kernels call the variables that no operator knows of."""


class EmissionError(Exception):
    """A planned program that TileLang cannot express; the message says what and why."""


def dim_text(dim: Dim, names: Mapping[str, str] | None = None) -> str:
    """A dim as a Python expression; `names` says how its names are spelled there."""
    spelled = names or {}
    text = ""
    for term in terms_of(dim):
        sign = " - " if term.coefficient < 0 else " + "
        text += (sign if text else sign.strip(" +")) + _term_text(term, spelled)
    return text or "0"


def _term_text(term: Term, names: Mapping[str, str]) -> str:
    factors = [
        _atom_text(atom, names) for atom, power in term.factors for _ in range(power)
    ]
    scale = abs(term.coefficient)
    if scale != 1 or not factors:
        factors.append(str(scale))
    if len(factors) == 1:
        return factors[0]
    return " * ".join(grouped(factor) for factor in factors)


def _atom_text(atom: str | Call, names: Mapping[str, str]) -> str:
    if isinstance(atom, str):
        return names.get(atom, atom)
    args = [dim_text(arg, names) for arg in atom.args]
    if atom.kind in ("ceildiv", "min", "max"):
        return f"T.{atom.kind}({', '.join(args)})"
    symbol = "//" if atom.kind == "floordiv" else "%"
    return f"{grouped(args[0])} {symbol} {grouped(args[1])}"


def grouped(text: str) -> str:
    """An expression ready to be an operand: in parentheses unless it is one thing."""
    node = ast.parse(text, mode="eval").body
    one_thing = ast.Name | ast.Constant | ast.Call | ast.Subscript | ast.Attribute
    if isinstance(node, one_thing) or _is_in_parentheses(text):
        return text
    return f"({text})"


def unparenthesized(text: str) -> str:
    """A statement without the parentheses that precedence makes superfluous."""
    return ast.unparse(ast.parse(text)).replace("'", '"')


def _is_in_parentheses(text: str) -> bool:
    depth = 0
    for position, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return position == len(text) - 1 and text[0] == "("
    return False


def call_lines(start: str, args: Sequence[str], end: str = ")") -> list[str]:
    """`start` + arguments + `end`, over several lines where one is too narrow."""
    line = f"{start}{', '.join(args)}{end}"
    if len(line) + 3 * len(INDENT) <= WIDTH:
        return [line]
    lines = [start]
    current = INDENT
    for arg in args:
        if len(current) + len(arg) + 1 + 3 * len(INDENT) > WIDTH and current.strip():
            lines.append(current.rstrip())
            current = INDENT
        current += f"{arg}, "
    return [*lines, current.rstrip(), end]


def indented(lines: Sequence[str], levels: int = 1) -> list[str]:
    return [f"{INDENT * levels}{line}" if line else "" for line in lines]


@dataclass
class Names:
    """Python names that are not yet taken."""

    taken: set[str] = field(
        default_factory=lambda: {
            *("T", "tilelang", "PLAN", "EXP2", "exp2", "READS_DONE", "reads_done"),
            *VARIABLES,
            *COUNTERS,
        }
    )

    def fresh(self, wanted: str) -> str:
        """`wanted`, with a number behind it where it is taken."""
        base = wanted if wanted.isidentifier() else f"t{wanted}"
        if keyword.iskeyword(base):
            base += "_"
        name, number = base, 1
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name


def literal_lines(value: Any) -> list[str]:
    """A literal of dicts and lists: on one line where it fits, else an entry a line."""
    if len(text := repr(value).replace("'", '"')) <= WIDTH - 3 * len(INDENT):
        return [text]
    if isinstance(value, dict):
        entries = cast(dict[Any, Any], value)
        lines = ["{"]
        for key, entry in entries.items():
            first, *rest = literal_lines(entry)
            body = [f"{_quoted(key)}: {first}", *rest]
            lines += indented([*body[:-1], body[-1] + ","])
        return [*lines, "}"]
    lines = ["["]
    for entry in cast(list[Any], value):
        body = literal_lines(entry)
        lines += indented([*body[:-1], body[-1] + ","])
    return [*lines, "]"]


def _quoted(key: Any) -> str:
    return f'"{key}"'
