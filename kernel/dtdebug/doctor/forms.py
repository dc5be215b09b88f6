"""The answer for programs: JUnit, Nagios, and the settings to export."""

from __future__ import annotations

import shlex
from xml.sax.saxutils import escape, quoteattr

import msgspec

from dtdebug.doctor.facts import Report


def to_junit(report: Report) -> str:
    """A test suite for all areas, a test case an area; what was not looked at is skipped."""
    bad = [f for f in report.findings if f.severity == "fault"]
    rows = []
    for area in report.areas:
        mine = [f for f in bad if f.area == area.id]
        body = "".join(
            f"<failure type={quoteattr(f.id)} message={quoteattr(f.text)}>"
            f"{escape(_body(f.measured, f.expected, f.fix.text))}</failure>"
            for f in mine
        )
        if not mine and area.state == "unknown":
            body = f"<skipped message={quoteattr(area.text)}/>"
        rows.append(f'  <testcase classname="dtdebug.doctor" name={quoteattr(area.id)}>{body}</testcase>')
    skipped = sum("<skipped" in row for row in rows)
    failed = sum("<failure" in row for row in rows)
    head = f'<testsuite name="dtdebug doctor" tests="{len(rows)}" failures="{failed}" skipped="{skipped}" '
    head += f'time="{report.seconds}">'
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', head, *rows, "</testsuite>"]) + "\n"


def _body(measured: str, expected: str, fix: str) -> str:
    return f"measured: {measured}\nexpected: {expected}\nfix: {fix}"


def to_nagios(report: Report, status: int) -> tuple[str, int]:
    """(one line, status as plug-ins of Nagios have it: 0 ok, 1 warning, 2 critical, 3 unknown)."""
    faults = [f for f in report.findings if f.severity == "fault"]
    warnings = [f for f in report.findings if f.severity == "warning"]
    word, code = (
        ("UNKNOWN", 3) if status == 2 else ("CRITICAL", 2) if faults else ("WARNING", 1) if warnings else ("OK", 0)
    )
    shown = "; ".join(f"{f.id} {f.text}" for f in (faults or warnings)[:3]).replace("|", "/")
    return f"DTDEBUG {word}: {shown or 'ready'} | seconds={report.seconds}s;;;0 faults={len(faults)};;;0", code


def to_export(report: Report, form: str) -> str:
    """The settings that were measured to help, and those that hold what works."""
    settings = report.pinned | report.export
    if form == "json":
        return msgspec.json.encode(settings).decode() + "\n"
    if form == "k8s":
        return "env:\n" + "".join(
            f"- name: {k}\n  value: {msgspec.json.encode(v).decode()}\n" for k, v in settings.items()
        )
    if form == "slurm":
        return f"#SBATCH --export=ALL{''.join(f',{k}={v}' for k, v in settings.items())}\n"
    why = {k: f.text for f in report.findings for k in f.fix.export}
    return (
        "".join(
            f"export {k}={shlex.quote(v)}  # {why.get(k, 'by it all hosts reached each other')}\n"
            for k, v in settings.items()
        )
        or "# nothing was measured to be needed\n"
    )
