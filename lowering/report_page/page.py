"""The report of a compilation as one HTML page, which needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cleave.lowering.report_page.graph_picture import STYLE
from cleave.lowering.report_page.loop_nest import loop_nest

LONGEST = 60_000
"""Characters of a stage that is on the page; what is longer is in its file only."""

TEMPLATE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>@{{ page.graph }}: Cleave</title>
<style>
  :root { --text: #1c2330; --soft: #667085; --rule: #dfe3ea; --code: #f5f6f8;
    --good: #e3f3e8; --bad: #fdecea; --mark: #5b7fc7; --ground: #ffffff }
  @media (prefers-color-scheme: dark) { :root { --text: #e6eaf2; --soft: #98a2b6;
    --rule: #363d4a; --code: #20252e; --good: #1d3a28; --bad: #4a2523;
    --mark: #7fa0e6; --ground: #171b22 } }
  body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto;
    padding: 0 1rem; color: var(--text); background: var(--ground) }
  h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2.2rem }
  table { border-collapse: collapse; width: 100% }
  th, td { text-align: left; padding: .25rem .9rem .25rem 0; vertical-align: top;
    border-bottom: 1px solid var(--rule) }
  th { font-weight: 600 } table.lines th { width: 6rem }
  .n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
  tr.chosen { background: var(--good) } tr.fault { background: var(--bad) }
  tr.out { color: var(--soft) }
  pre { background: var(--code); padding: 1rem; overflow-x: auto; font-size: 13px }
  summary { cursor: pointer; padding: .25rem 0 }
  .pictures { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem }
  figure { margin: 0; overflow-x: auto } figcaption, .soft { color: var(--soft) }
  .nest div { border-left: 3px solid var(--mark); margin: .4rem 0 .4rem .6rem;
    padding: .1rem 0 .1rem .8rem }
  .nest code { font-size: 13px }
{{ style }}</style>
<h1>@{{ page.graph }}</h1>
<table class="lines">
  {% for word, text in page.lines %}
  <tr{% if word == "fault" %} class="fault"{% endif %}><th>{{ word }}<td>{{ text }}
  {% endfor %}
</table>
<h2>Graphs</h2>
<p class="soft">Blue boxes are products on tensor cores, orange ones reductions, green
ones inputs and results; dashed ones cost nothing.</p>
<div class="pictures">
  {% for title, picture in page.pictures.items() %}
  <figure><figcaption>{{ title }}</figcaption>
{{ picture }}</figure>
  {% endfor %}
</div>
<h2>Loop nest</h2>
<div class="nest">{{ nest }}</div>
{% for table in page.tables if table.rows %}
<h2>{{ table.title }}</h2>
<table>
  <tr>{% for name in table.columns %}
<th{% if name in table.numbers %} class="n"{% endif %}>{{ name }}{% endfor %}

  {% for row in table.rows %}
  <tr{% if row.mark %} class="{{ row.mark }}"{% endif %}>{% for cell in row.cells %}
<td{% if table.columns[loop.index0] in table.numbers %} class="n"{% endif %}>
{%- for line in cell.splitlines() %}{{ line }}{% if not loop.last %}<br>{% endif %}
{% endfor %}{% endfor %}

  {% endfor %}
</table>
{% endfor %}
<h2>IR at each stage</h2>
{% for name, text in stages.items() %}
<details{% if loop.last %} open{% endif %}><summary>{{ name }}</summary>
{% if text|length > longest %}
<p>{{ "{:,}".format(text|length) }} characters: in the file
  {{ "%02d"|format(loop.index0) }}_{{ name }}.mlir.</p>
{% else %}
<pre>{{ text }}</pre>
{% endif %}
</details>
{% endfor %}
<h2>Generated module</h2>
<details><summary>module.py</summary>
<pre>{{ source }}</pre>
</details>
"""


@dataclass(frozen=True)
class Row:
    """A row of a table; `mark` is "chosen", "out" or "fault", or nothing."""

    cells: Sequence[str]
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """A table, which is left out if it has no rows. `numbers` are among `columns`."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
    numbers: Sequence[str] = ()


@dataclass(frozen=True)
class Page:
    """
    What is on a page beside IR and source: lines with a word each, as on a terminal;
    SVG of graphs by their titles; and tables.
    """

    graph: str
    lines: Sequence[tuple[str, str]]
    pictures: Mapping[str, str]
    tables: Sequence[Table]


def html(page: Page, stages: Mapping[str, str], source: str) -> str:
    """The page, with all text in it escaped. The last of the stages is the plan."""
    from jinja2 import Environment
    from markupsafe import Markup

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    *_, plan = stages.values()
    pictures = {title: Markup(svg) for title, svg in page.pictures.items()}
    return environment.from_string(TEMPLATE).render(
        page=Page(page.graph, page.lines, pictures, page.tables),
        stages=stages,
        source=source,
        style=Markup(STYLE),
        nest=Markup(loop_nest(plan)),
        longest=LONGEST,
    )
