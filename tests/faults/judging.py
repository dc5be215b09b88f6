"""Holds an answer against what is true of the job: rank, line, cause, and statements that a record contradicts."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planted_jobs import Outcome
from planting import Fault

_SURE = ("likely", "confirmed", "possible", "settled")
"""Bands in which a cause is put forward."""
_OPS = r"\b((?:all_?|reduce_?|mono?i?tored_)?(?:reduce|gather|scatter|barrier|broadcast|to_all)\w*|send|recv) #\d"
_DIED = r"(?i)\branks? {rank}\b[^.]{{0,40}}\b(died|raised|crashed|was killed|failed|exit (?:code|status) -?[1-9])"


@dataclass
class Judged:
    """What was right; None where there is nothing to be right about."""

    fault: Fault
    outcome: Outcome
    void: str
    rank: bool | None
    kind: bool | None
    line: bool | None
    cause: str
    """right, open, wrong, or empty."""
    contradicted: list[str]
    stopped: bool
    """A healthy job that was ended or accused."""
    said: str


def judge(fault: Fault, outcome: Outcome, folder: Path) -> Judged:
    """Compares."""
    report = outcome.report or {}
    verdict = report.get("verdict") if isinstance(report.get("verdict"), dict) else {}
    known: dict[str, Any] = report.get("diagnosis") or ({} if verdict else report)
    void = _void(fault, outcome)
    said = _said(verdict, known, outcome)
    if fault.family == "healthy":
        accused = verdict.get("kind", "none") != "none" or outcome.status == 124 or bool(verdict.get("culprits"))
        wrong = [f"healthy, but: {verdict.get('summary') or 'ended'}"] if accused else []
        return Judged(fault, outcome, void, not accused, not accused, None, "", wrong, accused, said)
    culprits = set(verdict.get("culprits") or ([] if verdict else known.get("culprits", [])))
    kinds = {*fault.kinds, "not_understood"} if fault.family in ("hangs", "calls") else set(fault.kinds)
    open_to_a_log = outcome.asked == "diagnose" and fault.family == "calls"
    own = _records(folder, f"own{fault.rank}.json") | _records(folder, f"seen{fault.rank}.json")
    return Judged(
        fault, outcome, void,
        rank=culprits == {fault.rank} or (open_to_a_log and not culprits),
        kind=verdict.get("kind") in kinds if verdict else None,
        line=_line(fault, verdict, known, report, own),
        cause=_cause(fault, verdict, known),
        contradicted=_contradicted(fault, verdict, own, folder, outcome),
        stopped=False,
        said=said,
    )  # fmt: skip


def _void(fault: Fault, outcome: Outcome) -> str:
    if not outcome.fired:
        return "the fault did not strike"
    if fault.family == "calls" and outcome.status == 0:
        return "the fault had no consequence"
    return ""


def texts(verdict: dict[str, Any]) -> list[str]:
    """All sentences of the verdict."""
    return [str(one) for one in (verdict.get("summary", ""), *verdict.get("evidence", []))]


def _line(
    fault: Fault, verdict: dict[str, Any], known: dict[str, Any], report: dict[str, Any], own: set[tuple[str, int]]
) -> bool | None:
    right = {(f"/{name}", at) for name, at in fault.lines}
    if fault.family == "calls":
        right |= {(name, at) for name, at in own if "/work/" in name}
    where = verdict.get("where")
    if verdict and where:
        return any(where["file"].endswith(name) and where["line"] == at for name, at in right)
    if not fault.needs_line or (fault.family == "calls" and verdict):
        return None
    if fault.fault in ("segv", "abort") and not fault.armed:
        return None
    text = json.dumps([verdict, known, report.get("claims")]).replace('\\"', '"')
    base = fault.file.rsplit("/", 1)[-1]
    return bool(verdict == {} and re.search(rf'{re.escape(base)}(?:", line |:){fault.line}\b', text))


def _cause(fault: Fault, verdict: dict[str, Any], known: dict[str, Any]) -> str:
    if not fault.words and not fault.name:
        return ""
    reasons = [row.get("words", "") for symptom in known.get("symptoms", [])[:1] for row in symptom.get("why", [])]
    top = (known.get("advice") or [{}])[0]
    reasons += [str(top.get("title", "")), *(row.get("words", "") for row in top.get("because", []))]
    text = "\n".join([*texts(verdict), *reasons])
    named = not fault.name or fault.name.rsplit(".", 1)[-1] in text
    if named and re.search(fault.words, text):
        return "right"
    put = [one for one in known.get("advice", []) if one.get("band") in _SURE]
    return "wrong" if put else "open"


def _contradicted(
    fault: Fault, verdict: dict[str, Any], own: set[tuple[str, int]], folder: Path, outcome: Outcome
) -> list[str]:
    if not verdict:
        return []
    text, found, kind = "\n".join(texts(verdict)), [], verdict.get("kind")
    if kind == "none":
        found.append(f"none, but the job {'hangs' if fault.family == 'hangs' else 'failed'}")
    if "No rank waits" in text and fault.family == "hangs":
        found.append("says that no rank waits")
    if re.search(r"exit (code|status) 0", text) and re.search("died", text):
        found.append("died with exit code 0")
    if fault.family == "dies" and outcome.asked == "run" and kind in ("not_arrived", "gil_held", "skipped", "left"):
        found.append(f"{kind}, but rank {fault.rank} failed by itself")
    if fault.family == "hangs":
        if fault.fault not in ("loop", "regex") and re.search(r"(?i)\b(still|is) comput", text):
            found.append("says that a rank computes which is blocked")
        found += [f"says of rank {r}: {hit[0]}" for r in range(fault.world)
                  if (hit := re.search(_DIED.format(rank=r), text))]  # fmt: skip
        for site in verdict.get("sites", []):
            seen = _records(folder, f"seen{site['rank']}.json") | _records(folder, f"own{site['rank']}.json")
            if seen and not any(path.endswith(site["file"][-60:]) and at == site["line"] for path, at in seen):
                found.append(f"rank {site['rank']} was never at {site['file'].rsplit('/', 1)[-1]}:{site['line']}")
    elif fault.fault == "leave" and (
        kind in ("gil_held", "not_arrived") or re.search(_DIED.format(rank=fault.rank), text)
    ):
        found.append(f"{kind}, but rank {fault.rank} ended with exit status 0")
    if fault.fault in ("kill", "segv", "abort") and set(verdict.get("culprits", [])) == {fault.rank}:
        right = {"kill": "SIGKILL", "segv": "SIGSEGV", "abort": "SIGABRT"}[fault.fault]
        found += [f"says {name}" for name in set(re.findall(r"SIG[A-Z]+", verdict.get("summary", ""))) - {right}]
    if fault.ops:
        called = {re.sub("_", "", op).lower() for op in fault.ops} | {"barrier", "monitoredbarrier"}
        if fault.program == "pipe":
            called |= {"send", "recv"}
        named = {re.sub("_", "", op).lower() for op in re.findall(_OPS, text)}
        found += [f"{op} is never called" for op in named if not any(op in one or one in op for one in called)]
    return found


def _records(folder: Path, name: str) -> set[tuple[str, int]]:
    try:
        return {(path, at) for path, at in json.loads((folder / "records" / name).read_text())}
    except (OSError, ValueError):
        return set()


def _said(verdict: dict[str, Any], known: dict[str, Any], outcome: Outcome) -> str:
    if not outcome.report:
        return f"no report ({outcome.failed})"
    where = verdict.get("where") or {}
    place = f"{str(where.get('file', '')).rsplit('/', 1)[-1]}:{where.get('line')}" if where else "-"
    top = (known.get("advice") or [{}])[0]
    symptom = (known.get("symptoms") or [{}])[0]
    culprits = verdict.get("culprits") if verdict else known.get("culprits")
    return (
        f"{verdict.get('kind', '-')} {culprits} {place} | {verdict.get('summary', '')} | "
        f"{symptom.get('id', '-')} ({symptom.get('band', '')}) <- {top.get('cause', '-')} ({top.get('band', '')})"
    )
