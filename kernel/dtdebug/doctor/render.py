"""Formats the report as text, one line per area with problems unfolded, and for programs: JUnit, Nagios, exports."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator

import msgspec

from dtdebug.doctor.judge.findings import fold_names
from dtdebug.doctor.report_types import Area, HostFinding, Report
from dtdebug_taxonomy.knowledge.loader import load

_MARKS = {"ok": "ok", "fault": "!!", "warning": "! ", "unknown": "--"}
_WIDTH = 116


def to_text(report: Report, *, notes: tuple[str, ...] = ()) -> str:
    """Return the whole report, with a newline at its end."""
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
        yield _row("hosts", fold_names(f.hosts))
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
    """Return the subject of the report: `4 hosts, 32 ranks, gloo`."""
    hosts = len(report.hosts)
    ranks = f", {report.ranks} rank{'s' * (report.ranks != 1)}" if report.ranks else ""
    return f"{hosts} host{'s' * (hosts != 1)}{ranks}{f', {report.backend}' * bool(report.backend)}"


def closing_line(report: Report) -> str:
    """Return the overall result in one line."""
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


def to_junit(report: Report, *, strict: bool = False) -> str:
    """Return one test suite per area, with a test case per finding and host, and one for each host without findings."""
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    root = Element("testsuites", name="dtdebug doctor", time=str(report.seconds))
    counted = {"fault", "warning"} if strict else {"fault"}
    for area in report.areas:
        suite = SubElement(root, "testsuite", name=area.id)
        mine = [f for f in report.findings if f.area == area.id]
        cases = [(host, f) for f in mine for host in f.hosts or ("",)]
        named = {host for host, _ in cases}
        for host, found in [*cases, *((row.host, None) for row in report.hosts if row.came and row.host not in named)]:
            name = " ".join(word for word in (found.id if found else area.id, host) if word)
            case = SubElement(suite, "testcase", classname=f"dtdebug.doctor.{area.id}", name=name)
            if found is None and (area.state == "unknown" or (area.state == "fault" and not mine)):
                SubElement(case, "skipped", message=area.text)
            elif found is not None and found.severity in counted:
                SubElement(case, "failure", type=found.id, message=found.text).text = _body(found)
            elif found is not None:
                SubElement(case, "system-out").text = f"{found.severity}: {found.text}\n{_body(found)}"
        for word, tag in (("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")):
            suite.set(word, str(len(suite.findall(f".//{tag}"))))
    for word in ("tests", "failures", "skipped"):
        root.set(word, str(sum(int(suite.get(word, 0)) for suite in root)))
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _body(f: HostFinding) -> str:
    return f"measured: {f.measured}\nexpected: {f.expected}\nfix: {f.fix.text}"


def to_nagios(report: Report, status: int) -> tuple[str, int]:
    """Return (one line, Nagios plug-in status: 0 ok, 1 warning, 2 critical, 3 unknown)."""
    faults = [f for f in report.findings if f.severity == "fault"]
    warnings = [f for f in report.findings if f.severity == "warning"]
    word, code = (
        ("UNKNOWN", 3) if status == 2 else ("CRITICAL", 2) if faults else ("WARNING", 1) if warnings else ("OK", 0)
    )
    shown = "; ".join(f"{f.id} {f.text}" for f in (faults or warnings)[:3]).replace("|", "/")
    return f"DTDEBUG {word}: {shown or 'ready'} | seconds={report.seconds}s;;;0 faults={len(faults)};;;0", code


def to_export(report: Report, form: str) -> str:
    """Return the settings that were measured to help, and those that pin what works."""
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
