"""Formats findings for programs: JSON, SARIF 2.1.0, GitHub's commands, JUnit's XML, GitLab's code quality."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, get_args
from urllib.parse import quote

import msgspec

from dtdebug.check.baseline import fingerprints
from dtdebug.check.examine_file import CheckFinding
from dtdebug.check.texts import Texts
from dtdebug.privacy.sanitize import clean, escape_hidden
from dtdebug_taxonomy import __version__
from dtdebug_taxonomy.checks import UNUSED_IGNORE, Check, Severity, load, page_address

_SARIF: dict[Severity, str] = {"error": "error", "warning": "warning", "information": "note", "hint": "note"}
_GITHUB: dict[Severity, str] = {"error": "error", "warning": "warning", "information": "notice", "hint": "notice"}
_GITLAB: dict[Severity, str] = {"error": "critical", "warning": "major", "information": "info", "hint": "info"}
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""All severities, the gravest first."""


class Report(NamedTuple):
    """Findings to format, and what formats need besides."""

    findings: Sequence[CheckFinding]
    texts: Texts
    fails: Callable[[CheckFinding], bool]
    """True for a finding that makes the check fail."""


def rule(number: str) -> Check:
    """Return the check that an id names."""
    return UNUSED_IGNORE if number == UNUSED_IGNORE.id else load()[number]


def where(finding: CheckFinding) -> str:
    """Format a place as `train.py:12:5` or `demo.ipynb:cell 3:2:1`."""
    cell = f"cell {finding.cell}:" if finding.cell else ""
    return clean(f"{finding.path}:{cell}{finding.line}:{finding.column}")


def concise(report: Report) -> str:
    """Format one line per finding."""
    return "".join(f"{where(f)}: {f.severity} {f.id} {clean(f.message)}\n" for f in report.findings)


def summary(report: Report, files: int, *, fixed: int = 0, unread: int = 0, accepted: int = 0) -> str:
    """Format the number of findings and files, of parts not understood, and the next step."""
    findings = report.findings
    parts = [f"{fixed} fixed"] if fixed else []
    if findings:
        kinds = Counter(f.severity for f in findings)
        parts.append(f"{', '.join(_number(kinds[k], k) for k in SEVERITIES if kinds[k])} in {_number(files, 'file')}")
    elif unread:
        parts.append(f"nothing found in what could be read of {_number(files, 'file')}")
    else:
        parts.append(f"nothing {'new ' if accepted else ''}found in {_number(files, 'file')}")
    if unread:
        parts.append(f"{_number(unread, 'part')} not understood")
    if accepted:
        parts.append(f"{accepted} known from the baseline")
    if safe := sum(f.fix is not None and f.fix.safe and not f.cell for f in findings):
        parts.append(f"{safe} fixable with --fix")
    if findings:
        gravest = min(findings, key=lambda f: SEVERITIES.index(f.severity))
        parts.append(f"`dtdebug explain {gravest.id}` tells more")
    return "; ".join(parts)


def statistics(report: Report) -> str:
    """Format the number of findings of each check and severity, the most frequent first."""
    counts = Counter((f.id, f.name, f.severity) for f in report.findings)
    return "".join(
        f"{count:>6}  {number}  {severity:<11}  {name}\n"
        for (number, name, severity), count in sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    )


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 or what == 'information' else 's'}"


def as_json(report: Report) -> str:
    """Format the findings as a JSON list; its schema is in the documentation."""
    rows = [msgspec.to_builtins(f) for f in report.findings]
    return escape_hidden(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode()) + "\n"


def github(report: Report) -> str:
    """Format workflow commands that become annotations of a pull request."""
    rows = []
    for f in report.findings:
        place = f"file={_property(f.path)},line={f.line},col={f.column},endLine={f.end_line},endColumn={f.end_column}"
        rows.append(f"::{_GITHUB[f.severity]} {place},title={f.id} {f.name}::{_data(f.message)}\n")
    return "".join(rows)


def _data(value: str) -> str:
    return clean(value).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")


def sarif(report: Report) -> str:
    """Format one run of SARIF 2.1.0 with the rules that occur."""
    ids = sorted({f.id for f in report.findings})
    marks = fingerprints(report.findings, report.texts)
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "dtdebug", "version": __version__, "rules": [_rule(i) for i in ids]}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(f, ids, mark) for f, mark in zip(report.findings, marks, strict=True)],
            }
        ],
    }
    return escape_hidden(msgspec.json.format(msgspec.json.encode(log), indent=2).decode()) + "\n"


def _rule(number: str) -> dict[str, Any]:
    check = rule(number)
    return {
        "id": number,
        "name": check.name,
        "shortDescription": {"text": check.title},
        "helpUri": page_address(check),
        "defaultConfiguration": {"level": _SARIF[check.severity]},
        "properties": {"tags": list(check.symptom), "precision": check.precision},
    }


def _result(f: CheckFinding, ids: Sequence[str], fingerprint: str) -> dict[str, Any]:
    artifact = {"uri": quote(f.path.replace("\\", "/"))}
    place: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": artifact,
            "region": _region((f.line, f.column), (f.end_line, f.end_column)),
        }
    }
    if f.cell:
        place["logicalLocations"] = [{"name": f"cell {f.cell}"}]
    result = {
        "ruleId": f.id,
        "ruleIndex": ids.index(f.id),
        "level": _SARIF[f.severity],
        "message": {"text": f.message},
        "locations": [place],
        "partialFingerprints": {"primaryLocationLineHash": fingerprint},
    }
    if f.fix is not None and not f.cell:  # lines of a cell are not those of the file
        edits = [
            {"deletedRegion": _region(e.start, e.end), "insertedContent": {"text": e.text}}
            for e in sorted(f.fix.edits, key=lambda e: e.start)
        ]
        change = {"artifactLocation": artifact, "replacements": edits}
        result["fixes"] = [{"description": {"text": f.fix.title}, "artifactChanges": [change]}]
    return result


def _region(start: tuple[int, int], end: tuple[int, int]) -> dict[str, int]:
    return {"startLine": start[0], "startColumn": start[1], "endLine": end[0], "endColumn": end[1]}


def gitlab(report: Report) -> str:
    """Format GitLab's code quality report, a list of issues."""
    rows = [
        {
            "description": f"{f.id} {clean(f.message)}",
            "check_name": f.name,
            "fingerprint": mark,
            "severity": _GITLAB[f.severity],
            "location": {"path": f.path.replace("\\", "/"), "lines": {"begin": f.line}},
        }
        for f, mark in zip(report.findings, fingerprints(report.findings, report.texts), strict=True)
    ]
    return escape_hidden(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode()) + "\n"


def junit(report: Report) -> str:
    """Format JUnit's XML: a suite per file; what does not make the check fail is a skipped test."""
    from xml.etree import ElementTree as ET

    def count_attributes(findings: Sequence[CheckFinding]) -> dict[str, str]:
        failures = sum(map(report.fails, findings))
        return {"tests": str(len(findings) or 1), "failures": str(failures), "errors": "0"}

    top = ET.Element("testsuites", {"name": "dtdebug", **count_attributes(report.findings)})
    by_file: dict[str, list[CheckFinding]] = {}
    for f in report.findings:
        by_file.setdefault(clean(f.path), []).append(f)
    for path, findings in by_file.items():
        suite = ET.SubElement(top, "testsuite", {"name": path, **count_attributes(findings)})
        for f in findings:
            case = ET.SubElement(suite, "testcase", name=f"{f.id} {f.name}", classname=path, line=str(f.line))
            outcome = ET.SubElement(case, "failure" if report.fails(f) else "skipped", message=clean(f.message))
            outcome.text = f"{where(f)}: {f.severity} {f.id} {clean(f.message)}"
    if not report.findings:
        suite = ET.SubElement(top, "testsuite", {"name": "dtdebug", **count_attributes(())})
        ET.SubElement(suite, "testcase", name="check", classname="dtdebug")
    ET.indent(top)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(top, encoding="unicode")}\n'


FORMATS: dict[str, Callable[[Report], str]] = {
    "concise": concise,
    "json": as_json,
    "sarif": sarif,
    "github": github,
    "gitlab": gitlab,
    "junit": junit,
}
"""Format -> its text; `text`, for people, is made by `code_frames`."""
