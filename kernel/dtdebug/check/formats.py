"""Formats findings as text, JSON, SARIF 2.1.0 and GitHub's workflow commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dtdebug.check.examine_file import CheckFinding
from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy import __version__
from dtdebug_taxonomy.checks import Severity, load, page_address

_SARIF: dict[Severity, str] = {"error": "error", "warning": "warning", "information": "note", "hint": "note"}
_GITHUB: dict[Severity, str] = {"error": "error", "warning": "warning", "information": "notice", "hint": "notice"}
_COLOURS: dict[Severity, str] = {"error": "31", "warning": "33", "information": "36", "hint": "2"}


def where(finding: CheckFinding) -> str:
    """Format a place as `train.py:12:5` or `demo.ipynb:cell 3:2:1`."""
    cell = f"cell {finding.cell}:" if finding.cell else ""
    return clean(f"{finding.path}:{cell}{finding.line}:{finding.column}")


def text(findings: Sequence[CheckFinding], *, colour: bool = False) -> str:
    """Format one line per finding."""
    rows = []
    for f in findings:
        kind = f"\x1b[{_COLOURS[f.severity]}m{f.severity}\x1b[0m" if colour else f.severity
        rows.append(f"{where(f)}: {kind} {f.id} {clean(f.message)} [{', '.join(f.symptom)}]")
    return "".join(f"{row}\n" for row in rows)


def summary(findings: Sequence[CheckFinding], files: int, fixed: int = 0, unread: int = 0) -> str:
    """Format the number of findings and files, of parts not understood, and the next step."""
    fixes = f"{fixed} fixed; " if fixed else ""
    unseen = f"; {_number(unread, 'part')} of them not understood" if unread else ""
    if not findings:
        return f"{fixes}nothing found in {_number(files, 'file')}{unseen}"
    kinds = Counter(f.severity for f in findings)
    counts = ", ".join(_number(kinds[k], k) for k in _SARIF if kinds[k])
    safe = sum(f.fix is not None and f.fix.safe for f in findings)
    more = [f"`dtdebug explain {findings[0].id}` tells more"]
    if safe:
        more.insert(0, f"{safe} fixable with --fix")
    return f"{fixes}{counts} in {_number(files, 'file')}{unseen}; {'; '.join(more)}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 or what == 'information' else 's'}"


def as_json(findings: Sequence[CheckFinding]) -> str:
    """Format the findings as a JSON list; its schema is in the documentation."""
    rows = [msgspec.to_builtins(f) for f in findings]
    return msgspec.json.format(msgspec.json.encode(rows), indent=2).decode() + "\n"


def github(findings: Sequence[CheckFinding]) -> str:
    """Format workflow commands that become annotations of a pull request."""
    rows = []
    for f in findings:
        place = f"file={_property(f.path)},line={f.line},col={f.column},endLine={f.end_line},endColumn={f.end_column}"
        rows.append(f"::{_GITHUB[f.severity]} {place},title={f.id} {f.name}::{_data(f.message)}\n")
    return "".join(rows)


def _data(value: str) -> str:
    return clean(value).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")


def sarif(findings: Sequence[CheckFinding]) -> str:
    """Format one run of SARIF 2.1.0 with the rules that occur."""
    ids = sorted({f.id for f in findings})
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "dtdebug", "version": __version__, "rules": [_rule(i) for i in ids]}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(f, ids) for f in findings],
            }
        ],
    }
    return msgspec.json.format(msgspec.json.encode(log), indent=2).decode() + "\n"


def _rule(number: str) -> dict[str, Any]:
    check = load()[number]
    return {
        "id": number,
        "name": check.name,
        "shortDescription": {"text": check.title},
        "helpUri": page_address(check),
        "defaultConfiguration": {"level": _SARIF[check.severity]},
        "properties": {"tags": list(check.symptom), "precision": check.precision},
    }


def _result(f: CheckFinding, ids: Sequence[str]) -> dict[str, Any]:
    region = {"startLine": f.line, "startColumn": f.column, "endLine": f.end_line, "endColumn": f.end_column}
    place: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": f.path.replace("\\", "/")}, "region": region}
    }
    if f.cell:
        place["logicalLocations"] = [{"name": f"cell {f.cell}"}]
    return {
        "ruleId": f.id,
        "ruleIndex": ids.index(f.id),
        "level": _SARIF[f.severity],
        "message": {"text": f.message},
        "locations": [place],
    }


FORMATS: dict[str, Callable[[Sequence[CheckFinding]], str]] = {
    "text": text,
    "json": as_json,
    "sarif": sarif,
    "github": github,
}
