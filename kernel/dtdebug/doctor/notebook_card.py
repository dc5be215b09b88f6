"""Renders the report for notebooks: areas as rows, host pairs as a heat map, all text escaped; a line for the panel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from statistics import median
from typing import Any

from dtdebug.doctor.judge.findings import fold_names
from dtdebug.doctor.render import closing_line, subject
from dtdebug.doctor.report_types import Area, HostFinding, Matrix, Report
from dtdebug.privacy.sanitize import clean

_STYLE = (
    "border-left:4px solid #c77700;padding:4px 12px;margin:4px 0;max-width:72em;line-height:1.5;overflow-wrap:anywhere"
)
_CELL = "text-align:left;padding:2px 10px 2px 0;vertical-align:top"
_HEAT = "text-align:center;padding:2px 6px;min-width:3.2em;border:1px solid rgba(128,128,128,.35)"
_MARKS = {
    "ok": ("ok", "rgba(46,160,67,.25)"),
    "fault": ("fault", "rgba(248,81,73,.35)"),
    "warning": ("warning", "rgba(210,153,34,.30)"),
    "unknown": ("not looked at", "rgba(128,128,128,.20)"),
}
MIME = "application/vnd.dtdebug.doctor+json"
"""MIME type that the JupyterLab panel reads."""
_FINDINGS, _LENGTH = 3, 300
_LITTLE = 1.0
"""Milliseconds above the median that are not coloured: a busy processor adds as much."""
_FAILED = "rgba(248,81,73,.55)"


def small(report: Report) -> dict[str, Any]:
    """Return the summary for the panel: time, subject, state and the first findings."""
    worst = next((s for s in ("fault", "warning") if any(f.severity == s for f in report.findings)), "ok")
    told = [f for f in report.findings if f.severity == worst]
    stands = re.split("[;.]", closing_line(report))[0]
    return {
        "v": 1,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "state": worst,
        "line": f"{subject(report)}: {stands[:1].lower()}{stands[1:]}",
        "findings": [f"{clean(f.text)[:_LENGTH]} {f.id}" for f in told[:_FINDINGS]],
    }


def html(report: Report) -> str:
    """Return the whole report as HTML."""
    head = f"{subject(report)}, {report.seconds:.1f} s"
    rows = "".join(row for area in report.areas for row in _area(area, report))
    parts = [
        f'<div class="dtdebug dtdebug-doctor" style="{_STYLE}"><b>dtdebug doctor</b>: {_safe(head)}',
        f"<table>{rows}</table>",
        *_matrix(report.matrix),
        f"<div><b>{_safe(closing_line(report))}</b></div>",
    ]
    return "".join(parts) + "</div>"


def _area(area: Area, report: Report) -> Iterator[str]:
    mine = [f for f in report.findings if f.area == area.id]
    word, color = _MARKS[area.state]
    state = (
        f'<td style="{_CELL};white-space:nowrap"><span style="background:{color};padding:1px 6px">{word}</span></td>'
    )
    body = "".join(_finding(f) for f in mine) or _safe(area.text.removeprefix("not looked at: "))
    yield f'<tr>{state}<td style="{_CELL};white-space:nowrap">{_safe(area.id)}</td><td style="{_CELL}">{body}</td></tr>'


def _finding(f: HostFinding) -> str:
    settings = [f"export {name}={value}" for name, value in f.fix.export.items()]
    code = [*settings, *f.fix.commands]
    fix = "".join(f"<br><code>{_safe(line)}</code>" for line in code[:8]) or f" {_safe(f.fix.text)}"
    where = f" ({_safe(fold_names(f.hosts))})" if f.hosts else ""
    return f"<div>{_safe(f.text)}{where}<br><b>fix</b>:{fix} <small>{_safe(f.id)}</small></div>"


def _matrix(matrix: Matrix) -> Iterator[str]:
    """Yield the heat map; rows call columns, and cells show the round trip in ms and the rate if measured."""
    if len(matrix.hosts) < 2:
        return
    values = [v for row in matrix.milliseconds for v in row if v is not None and v >= 0]
    usual = (median(values) if values else 0.0, median(r for _, r in matrix.rates) if matrix.rates else 0.0)
    names = "".join(f'<th style="{_HEAT}">{_safe(name)}</th>' for name in matrix.hosts)
    unit = "ms, MB/s" if matrix.rates else "ms"
    yield f'<table style="margin-top:6px"><tr><th style="{_HEAT}">{unit}</th>{names}</tr>'
    for i, row in enumerate(matrix.milliseconds):
        cells = "".join(_pair(matrix, i, j, v, usual) for j, v in enumerate(row))
        yield f'<tr><th style="{_HEAT}">{_safe(matrix.hosts[i])}</th>{cells}</tr>'
    yield "</table>"


def _pair(matrix: Matrix, i: int, j: int, value: float | None, usual: tuple[float, float]) -> str:
    names = f"{matrix.hosts[i]} to {matrix.hosts[j]}"
    if i == j or value is None:
        title = "" if i == j else f' title="{_safe(names)}: not tried"'
        return f'<td style="{_HEAT}"{title}>{"" if i == j else "&middot;"}</td>'
    if value < 0:
        return f'<td style="{_HEAT};background:{_FAILED}" title="{_safe(names)}: fails">&#10005;</td>'
    rate = dict(matrix.rates).get((i, j))
    late = value / usual[0] if value > usual[0] + _LITTLE and usual[0] else 1.0
    slow = usual[1] / rate if rate else 1.0
    share = max(0.0, min(1.0, (max(late, slow) - 1.5) / 6))  # from green via yellow to red
    color = f"hsla({round(120 * (1 - share))},70%,45%,.30)"
    more = f", {rate:.0f} MB/s" if rate is not None else ""
    below = f"<br><small>{rate:.0f}</small>" if rate is not None else ""
    title = f"{_safe(names)}: {value:.2f} ms{more}"
    return f'<td style="{_HEAT};background:{color}" title="{title}">{value:.2f}{below}</td>'


def _safe(text: str) -> str:
    return escape(clean(text))
