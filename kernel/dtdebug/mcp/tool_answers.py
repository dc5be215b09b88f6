"""Types of tools' answers: the part of a command's JSON that a reader acts on, with the record of each claim.

They are dataclasses, because the SDK derives the schema of a tool's output from them. Everything else (all other
symptoms, fix patterns, states of ranks) is in the commands' output with `--format json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from dtdebug_taxonomy.model.answer import Answer
from dtdebug_taxonomy.model.status import Status
from dtdebug_taxonomy.presentation.answer_text import to_short_text

_CLAIMS, _SYMPTOMS, _CAUSES = 20, 3, 3


@dataclass
class SourcedClaim:
    """One thing that was seen."""

    text: str
    record: str
    """Source of the claim: a line of the output, a record of a rank, a file of /proc."""
    ranks: list[int] = field(default_factory=list)


@dataclass
class AdvisedCause:
    """A cause to which something points, with its fix."""

    title: str
    band: str
    """likely, possible or unlikely"""
    because: list[SourcedClaim]
    fix: str
    diff: str = ""
    diff_is_of: str = ""
    """`yours`: a diff of the user's own file; `example`: a diff of another program, for reading only."""


@dataclass
class FailureAnswer:
    """One reading of a failure: what happened, what supports it, the cause if something points at one, what to do."""

    answer: str
    """The short answer, as a person reads it: cause or event, places, why, fix or next step."""
    status: Status
    """failed, program_error, healthy, no_failure, unread or not_understood"""
    understood: bool
    """False if nothing was recognised, or the ranks wait for an unknown reason."""
    happened: str
    kind: str
    """Kind of the culprits' failure: dead, skipped, extra, replaced, wrong_size, not_arrived, left, not_understood"""
    culprits: list[int]
    waiting: list[int]
    where: str
    """file:line in function, of the first culprit"""
    claims: list[SourcedClaim]
    symptoms: list[str]
    causes: list[AdvisedCause]
    guesses: list[AdvisedCause]
    """Meanings of the user's words alone if no cause is known; right about half of the time."""
    next: str
    question: str
    """Question that only the user can answer; `answers` of `diagnose` takes it as KEY=VALUE."""
    not_looked_at: list[str]


@dataclass
class JobAnswer(FailureAnswer):
    """A failure as all logs of a job tell it."""

    first: list[str] = field(default_factory=list)
    cascade: str = ""
    silent: list[str] = field(default_factory=list)
    machine: list[str] = field(default_factory=list)


@dataclass
class FindingAnswer:
    """A finding in a source file, or in a check of hosts."""

    id: str
    severity: str
    where: str
    message: str
    fix: str = ""


@dataclass
class FindingsAnswer:
    """Findings, and what was not read."""

    findings: list[FindingAnswer]
    not_looked_at: list[str]


def failure(read: Mapping[str, Any]) -> FailureAnswer:
    """Return the answer of `diagnose`, `attach` and `flight`."""
    return FailureAnswer(**_common(read))


def job(read: Mapping[str, Any]) -> JobAnswer:
    """Return the answer of `triage`; for a run or an archive without what only logs show."""
    silent = [f"rank {row['rank']} since {row['since']}" for row in read.get("silent", ())]
    machine = [
        f"{row['code']} on {row['host']}, rank {row['rank']}, {row['time']}: {row['action']}"
        for row in read.get("hardware", ())
    ]
    first = [_first(row) for row in read.get("first", ())[:_CLAIMS]]
    return JobAnswer(
        **_common(read),
        first=first,
        cascade=read.get("cascade", {"text": ""})["text"],
        silent=silent[:_CLAIMS],
        machine=machine[:_CLAIMS],
    )


def _first(row: Mapping[str, Any]) -> str:
    who = " ".join(filter(None, [f"rank {row['rank']}", f"on {row['host']}" if row["host"] else "", row["time"]]))
    return f"{who}: {row['text']} [{row['file']}:{row['line']}]"


def findings_answer(rows: list[Mapping[str, Any]], unread: list[str]) -> FindingsAnswer:
    """Return the answer of `check`."""
    findings = [
        FindingAnswer(
            id=row["id"],
            severity=row["severity"],
            where=f"{row['path']}:{row['line']}:{row['column']}",
            message=row["message"],
            fix=row["fix_pattern"] or "",
        )
        for row in rows
    ]
    return FindingsAnswer(findings, unread)


def doctor_answer(read: Mapping[str, Any]) -> FindingsAnswer:
    """Return the answer of `doctor`."""
    findings = [
        FindingAnswer(
            id=row["id"],
            severity=row["severity"],
            where=", ".join(row["hosts"]),
            message=f"measured: {row['measured']}; expected: {row['expected']}",
            fix="; ".join([row["fix"]["text"], *row["fix"]["commands"]]),
        )
        for row in read["findings"]
    ]
    return FindingsAnswer(findings, [f"{row['id']}: {row['why']}" for row in read["not_examined"]])


def _common(read: Mapping[str, Any]) -> dict[str, Any]:
    verdict, found = read["verdict"] or {}, read.get("diagnosis") or {}
    advice = found.get("advice") or []
    return {
        "answer": to_short_text(msgspec.convert(read["answer"], Answer)) if read.get("answer") else "",
        "status": read.get("status") or _status(verdict, found),
        "understood": bool(found.get("recognised")) and verdict.get("kind") != "not_understood",
        "happened": found.get("ordinary") or found.get("happened") or verdict.get("summary", ""),
        "kind": verdict.get("kind", "none"),
        "culprits": list(verdict.get("culprits", ())),
        "waiting": list(verdict.get("waiting", ())),
        "where": _where(verdict.get("where")),
        "claims": [_claim(row) for row in read.get("claims", [])[:_CLAIMS]],
        "symptoms": _symptoms(found) if found.get("recognised") else [],
        "causes": [_cause(row) for row in advice[:_CAUSES]],
        "guesses": [_cause(row) for row in (found.get("guesses") or [])[:_CAUSES]],
        "next": read.get("next") or _next(found.get("next")),
        "question": _question(found.get("question")),
        "not_looked_at": [str(row) for row in (read.get("coverage") or {}).get("unread", [])],
    }


def _status(verdict: Mapping[str, Any], found: Mapping[str, Any]) -> Status:
    """Return the result of a reading of something else than logs."""
    if verdict.get("kind") == "not_understood":
        return "not_understood"
    if verdict.get("kind", "none") != "none" or found.get("recognised"):
        return "failed"
    return "program_error" if found.get("ordinary") or found.get("happened") else "no_failure"


def _symptoms(found: Mapping[str, Any]) -> list[str]:
    """Return the first symptom, and others that are not unlikely."""
    rows = [row for i, row in enumerate(found["symptoms"][:_SYMPTOMS]) if i == 0 or row["band"] != "unlikely"]
    return [f"{row['code']} {row['title']} ({row['band']})" for row in rows]


def _where(site: Mapping[str, Any] | None) -> str:
    return f"{site['file']}:{site['line']} in {site['function']}" if site else ""


def _claim(row: Mapping[str, Any]) -> SourcedClaim:
    record = row["record"]
    place = record.get("path") or (f"line {record['line']}" if record.get("line") else "")
    return SourcedClaim(
        text=row["text"], ranks=list(row["ranks"]), record=" ".join(filter(None, [record["source"], place]))
    )


def _cause(row: Mapping[str, Any]) -> AdvisedCause:
    because = [
        SourcedClaim(
            text=reason["means"],
            record=_reason(reason),
            ranks=[reason["rank"]] if reason.get("rank") is not None else [],
        )
        for reason in row["because"]
    ]
    return AdvisedCause(
        title=row["title"],
        band=row["band"],
        because=because,
        fix=row["fix"],
        diff=row.get("diff", ""),
        diff_is_of=row.get("diff_of", "") if row.get("diff") else "",
    )


def _reason(reason: Mapping[str, Any]) -> str:
    place = f"{reason['file'] or 'line'}:{reason['line']}" if reason.get("line") else ""
    return " ".join(filter(None, [reason["source"], place, repr(reason["words"]) if reason["words"] else ""]))


def _next(step: Mapping[str, Any] | None) -> str:
    if not step:
        return ""
    return " ".join(filter(None, [step["text"], f"`{step['command']}`" if step["command"] else ""]))


def _question(question: Mapping[str, Any] | None) -> str:
    if not question:
        return ""
    return f"{question['ask']} {question['key']}={'|'.join(value for value, _ in question['values'])}"
