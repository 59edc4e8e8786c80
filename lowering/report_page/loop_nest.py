"""A picture of the loop nest of a plan: a box a level, in it what it loads and does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

HEAD = re.compile(r"^(?:itgraph\.plan|algebra\.graph) .*? where \[(.*)\]$")
LEVEL = re.compile(r"itgraph\.(kernel|loop) \((.*?)\)(?: \{)?$")
CALL = re.compile(r"itgraph\.library_(.*)$")
PART = re.compile(r"^(ins|outs|state|attributes) [({](.*?)[)}](?: \{)?$")
RESULT = re.compile(r"^(%\S+(?:, %\S+)*) = [a-z]+\.(\S+) ?(.*?)(?: : (.*))?$")
LAST = re.compile(r"^itgraph\.(next|yield) (.*)$")
TENSOR = re.compile(r"!algebra\.tensor<(\[.*?\]), (\w+)>")


def loop_nest(plan: str) -> str:
    """Nested HTML boxes for the text of an `itgraph.plan`."""
    lines: list[str] = []
    depth = 0
    for raw in plan.splitlines():
        line = raw.strip()
        if (head := HEAD.search(line)) is not None:
            lines.append(f'<p class="soft">{escape(head[1])}</p>')
        elif (level := LEVEL.search(line)) is not None:
            word = "threadblocks over" if level[1] == "kernel" else "loop over"
            lines.append(f"<div><strong>{word} {escape(level[2])}</strong>")
            depth += 1
        elif depth == 0 and (call := CALL.search(line)) is not None:
            lines.append(f"<div><strong>library call</strong> {escape(call[1])}</div>")
        elif line == "}" and depth:
            lines.append("</div>")
            depth -= 1
        elif depth:
            lines += _inside(line)
    lines.append("</div>" * depth)
    return "\n".join(lines)


def _inside(line: str) -> Iterator[str]:
    """The lines of a box for one of a level."""
    if (part := PART.search(line)) is not None:
        yield from _part(part[1], part[2])
    elif (result := RESULT.search(line)) is not None:
        what = f"{result[1]} = {result[2]} {result[3]}".rstrip()
        yield _code(what, _type(result[4] or ""))
    elif (last := LAST.search(line)) is not None:
        yield _code(f"{last[1]} {last[2]}")


def _part(kind: str, text: str) -> Iterator[str]:
    """What is loaded, kept from one iteration to the next, stored, and how it runs."""
    if kind == "attributes":
        pairs = text.replace(" : i64", "").replace('"', "")
        yield f'<br><span class="soft">{escape(pairs)}</span>'
        return
    word = {"ins": "loads", "outs": "stores to", "state": "keeps"}[kind]
    for each in re.split(r", (?=%|\[)", text) if kind == "outs" else _apart(text):
        tile = _type(each)
        yield _code(f"{'takes' if tile.endswith(' in gmem') else word} {tile}")


def _apart(text: str) -> list[str]:
    """Parts such as `%a = ...` of a list of them."""
    return re.split(r", (?=%\S+ = )", text)


def _type(text: str) -> str:
    """With shapes for types: `[BM, K] f16`."""
    return TENSOR.sub(r"\1 \2", text)


def _code(text: str, beside: str = "") -> str:
    soft = f' <span class="soft">{escape(beside)}</span>' if beside else ""
    return f"<br><code>{escape(text)}{soft}</code>"
