"""A picture of the loop nest of a plan: a box a level, in it what it loads and does."""

from __future__ import annotations

import re
from html import escape

LEVEL = re.compile(
    r"itgraph\.(kernel|loop) \((.*?)\)\s*$|itgraph\.(kernel|loop) \((.*)\)"
)
CALL = re.compile(r"itgraph\.library_(.*)$")
RESULT = re.compile(r"^(%\S+(?:, %\S+)*) = (\S+) (.*?)(?: : .*)?$")


def loop_nest(plan: str) -> str:
    """Nested HTML boxes for the text of an `itgraph.plan`."""
    lines: list[str] = []
    depth = 0
    for raw in plan.splitlines():
        line = raw.strip()
        if (level := LEVEL.search(line)) is not None:
            word = "threadblocks over" if level[1] == "kernel" else "loop over"
            lines.append(f"<div><strong>{word} {escape(level[2])}</strong>")
            depth += 1
        elif depth == 0 and (call := CALL.search(line)) is not None:
            lines.append(f"<div><strong>library call</strong> {escape(call[1])}</div>")
        elif line == "}" and depth:
            lines.append("</div>")
            depth -= 1
        elif depth and line.startswith("ins "):
            lines.append(f"<br><code>loads {escape(line[5:-1])}</code>")
        elif depth and (result := RESULT.match(line)) is not None:
            text = f"{result[1]} = {result[2].split('.')[-1]} {result[3]}"
            lines.append(f"<br><code>{escape(text)}</code>")
    lines.append("</div>" * depth)
    return "\n".join(lines)
