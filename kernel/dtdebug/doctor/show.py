"""The answer as text: one line an area, only problems unfold."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from dtdebug.doctor.facts import Area, HostFinding, Report
from dtdebug.doctor.judge.findings import folded
from dtdebug_taxonomy.knowledge import load

_MARKS = {"ok": "ok", "fault": "!!", "warning": "! ", "unknown": "--"}
_WIDTH = 116


def to_text(report: Report, *, notes: tuple[str, ...] = ()) -> str:
    """All of it, with a newline at its end."""
    return "\n".join(_lines(report, notes)) + "\n"


def _lines(report: Report, notes: tuple[str, ...]) -> Iterator[str]:
    yield f"{f'dtdebug doctor: {subject(report)}':<96}{report.seconds:>8.1f} s"
    for area in report.areas:
        mine = [f for f in report.findings if f.area == area.id]
        if not mine:
            yield _area(area)
        for f in mine:
            yield from _finding(f)
    if report.hidden:
        yield f"  {report.hidden} more that follow from these, or are of less weight, are not shown"
    for note in notes:
        yield f"  --  {note}"
    yield closing_line(report)


def _area(area: Area) -> str:
    text = area.text.removeprefix("not looked at: ")
    return f"  {_MARKS[area.state]}  {area.id:<11} {'not looked at: ' if area.state == 'unknown' else ''}{text}"


def _finding(f: HostFinding) -> Iterator[str]:
    mark = {"fault": "!!", "warning": "! ", "hint": "i "}[f.severity]
    lines = textwrap.wrap(f.text, _WIDTH - 18, break_long_words=False) or [""]
    yield f"  {mark}  {f.area:<11} {lines[0]}"
    yield from (f"{'':18}{line}" for line in lines[1:])
    if f.hosts:
        yield _row("hosts", folded(f.hosts))
    if f.measured and f.measured not in f.text:
        yield _row("measured", f.measured)
    if f.expected:
        yield _row("expected", f.expected)
    if f.severity != "hint" and f.symptom:
        symptom = load().symptoms[f.symptom[0]]
        yield _row("leads to", f"{f.symptom[0]} {symptom.title}")
    settings = [f"export {name}={value}" for name, value in f.fix.export.items()]
    what = "; ".join([*settings, *f.fix.commands]) or f.fix.text
    yield _row("fix", f"{what}   {f.id}")


def _row(name: str, text: str) -> str:
    lines = textwrap.wrap(text, _WIDTH - 20, break_long_words=False) or [""]
    return "\n".join([f"      {name:<12}  {lines[0]}", *(f"{'':20}{line}" for line in lines[1:])])


def subject(report: Report) -> str:
    """What was examined: `4 hosts, 32 ranks, gloo`."""
    hosts = len(report.hosts)
    ranks = f", {report.ranks} rank{'s' * (report.ranks != 1)}" if report.ranks else ""
    return f"{hosts} host{'s' * (hosts != 1)}{ranks}{f', {report.backend}' * bool(report.backend)}"


def closing_line(report: Report) -> str:
    """How it stands, in one line."""
    faults = sum(f.severity == "fault" for f in report.findings)
    if faults:
        helps = "; the settings that were measured to help: dtdebug doctor --export" if report.export else ""
        return f"{faults} fault{'s' * (faults != 1)}{helps}."
    warnings = sum(f.severity == "warning" for f in report.findings)
    if report.hosts and not any(row.came for row in report.hosts):
        seen = f"{warnings} warning{'s' * (warnings != 1)}" if warnings else "Nothing is wrong"
        return f"{seen} in what was read; none of the {len(report.hosts)} pods was examined."
    if warnings:
        return f"Ready, with {warnings} warning{'s' * (warnings != 1)}."
    return "Ready." + (" Settings that pin what was measured: dtdebug doctor --export" if report.pinned else "")
