"""The report of a search as one HTML page, which needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from cleave.lowering.search.loop_nest import loop_nest
from cleave.lowering.search.report import SearchReport

TEMPLATE = """\
<!doctype html>
<meta charset="utf-8">
<title>@{{ report.graph }}: Cleave</title>
<style>
  body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto;
         padding: 0 1rem; color: #1c2330; }
  h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
  table { border-collapse: collapse; width: 100% }
  th, td { text-align: left; padding: .25rem .75rem .25rem 0; vertical-align: top;
           border-bottom: 1px solid #dfe3ea }
  td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
  tr.chosen { background: #e9f5ec } tr.out { color: #7a8394 }
  pre { background: #f5f6f8; padding: 1rem; overflow-x: auto; font-size: 13px }
  .nest div { border-left: 3px solid #5b7fc7; margin: .3rem 0 .3rem .6rem;
              padding: .1rem 0 .1rem .8rem }
  .nest code { font-size: 13px }
  .bar { background: #5b7fc7; height: .7rem; display: inline-block }
</style>
<h1>@{{ report.graph }}</h1>
<p>{% for name, size in report.sizes.items() %}{{ name }} = {{ size }}
{%- if not loop.last %}, {% endif %}{% endfor %};
{{ report.device or ("compiled for " ~ report.hardware.name ~ ", not run") }}.</p>
<h2>Result</h2>
<table>
  <tr><th>chosen<td>{% for schedule in report.chosen %}{{ schedule }}<br>{% endfor %}
  <tr><th>predicted<td>{{ "%.4f"|format(report.predicted_ms) }} ms
  <tr><th>measured<td>{% if report.measured_ms %}{{ "%.4f"|format(report.measured_ms) }}
    ms{% else %}no: {{ report.not_measured }}{% endif %}
  {% if report.floor_ms %}<tr><th>floor<td>{{ "%.4f"|format(report.floor_ms) }} ms
    {%- if report.measured_ms %}, {{ "%.0f"|format(100 * report.floor_ms /
    report.measured_ms) }} % of it reached{% endif %}{% endif %}
  {% if report.unfused_ms %}<tr><th>unfused<td>{{ "%.4f"|format(report.unfused_ms) }} ms
  {% endif %}
  <tr><th>checked<td>{{ report.checked }}: relative error
    {{ "%.2g"|format(report.max_error) }}, allowed
    {{ "%.2g"|format(report.allowed_error) }}
  <tr><th>searched<td>{{ report.candidates }} graphs and sequences of kernels,
    {{ "{:,}".format(report.evaluated) }} schedules
</table>
{% for note in report.notes %}<p>{{ note }}</p>{% endfor %}
<h2>Loop nest</h2>
<div class="nest">{{ nest }}</div>
<h2>Plans that were tried</h2>
<table>
  <tr><th class="n">#<th>schedule<th class="n">predicted ms<th class="n">measured ms<th>
  {% for trial in report.trials %}
  <tr class="{{ 'chosen' if trial.number == report.chosen_number else
    'out' if trial.reason else '' }}"><td class="n">{{ trial.number }}
    <td>{% for schedule in trial.schedules %}{{ schedule }}<br>{% endfor %}
    {%- if trial.is_unfused %}<em>unfused</em>{% endif %}
    <td class="n">{{ "%.4f"|format(trial.predicted_ms) }}
    <td class="n">{% if trial.measured_ms %}{{ "%.4f"|format(trial.measured_ms) }}
    {% endif %}<td>{{ trial.reason or "" }}
  {% endfor %}
</table>
<h2>Schedules left out, by rule</h2>
<table>
  {% for rule, number in report.pruned.items() %}
  <tr><td>{{ rule }}<td class="n">{{ "{:,}".format(number) }}
  {% endfor %}
</table>
<h2>Kernels</h2>
<table>
  <tr><th>kernel<th class="n">threads<th class="n">registers<th class="n">SMEM<th>uses
  {% for kernel in report.kernels %}
  <tr><td>{{ kernel.name }}<td class="n">{{ kernel.threads }}
    <td class="n">{{ kernel.raised_registers or kernel.registers }}
    <td class="n">
    {{ (kernel.static_smem_bytes + kernel.dynamic_smem_bytes) // 1024 }} KiB
    <td>{% for name, count in kernel.instructions.items() if count %}{{ name }}
    {% endfor %}
  {% endfor %}
</table>
{% for name, text in stages.items() %}
<h2>{{ name }}</h2>
<pre>{{ text }}</pre>
{% endfor %}
<h2>Generated module</h2>
<pre>{{ source }}</pre>
"""


def html(report: SearchReport, stages: Mapping[str, str], source: str) -> str:
    """The page; all text in it is escaped."""
    from jinja2 import Environment
    from markupsafe import Markup

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(TEMPLATE).render(
        report=report,
        stages=stages,
        source=source,
        nest=Markup(loop_nest(stages["select-schedules"])),
    )
