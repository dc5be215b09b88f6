"""Presents what NCCL's Inspector recorded: the sentence on what is slow, the tables it rests on, and the JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dtdebug.privacy.sanitize import clean, one_line
from dtdebug.recorded.nccl_inspector.judge import Communicator, Member, Verdict, judge
from dtdebug.recorded.nccl_inspector.read import Recording, is_recording_file, read
from dtdebug_taxonomy.model.rank_ranges import ranges
from dtdebug_taxonomy.model.sizes import spell_bytes
from dtdebug_taxonomy.model.status import CLEAR, Status

VERSION = 1
_NAMES = (".log", ".jsonl", ".log.gz", ".jsonl.gz", ".json", ".json.gz")
_FILES, _ROWS, _NOTES = 4096, 24, 8
_ENOUGH = 0.5
"""Share of the lines that must be known for a statement on a rank."""
_TO_DO = {
    "late_rank": "find what it does before its collectives and the others don't: traces of torch.profiler of this "
    "rank and another one, or `dtdebug run --watch`",
    "slow_communicator": "compare the links of its hosts with those of the others: `dtdebug doctor`, NCCL_DEBUG=INFO "
    "for the interface and the number of channels",
    "slower_since": "look at the counters of the links and at other jobs on these hosts at that time",
}


def recordings(given: Sequence[Path]) -> list[Path]:
    """Return the files of the Inspector among those that are given; none if the first file is something else."""
    files: list[Path] = []
    for path in given:
        if path.is_dir():
            files += sorted(p for p in path.iterdir() if p.name.endswith(_NAMES) and p.is_file())[:_FILES]
        else:
            files.append(path)
    return [path for path in files if is_recording_file(path)] if any(map(is_recording_file, files[:_NOTES])) else []


def report(files: Sequence[Path], *, as_json: bool) -> tuple[str, bool]:
    """Return the text, and False if all was understood and nothing is slow."""
    recording = read(files)
    understood = bool(recording.known) and recording.known >= _ENOUGH * recording.lines
    verdict = judge(recording.records) if understood else Verdict([], [], [], [])
    status = _status(recording, verdict, understood=understood)
    notes = [*verdict.notes, *recording.notes]
    if as_json:
        told: dict[str, Any] = {
            "v": VERSION, "status": status, "slow": verdict.held, "communicators": verdict.communicators,
            "ranks": verdict.members, "notes": notes,
            "understood": {"files": len(files), "lines": recording.lines, "known": recording.known},
        }  # fmt: skip
        return msgspec.json.encode(told).decode() + "\n", status not in CLEAR
    lines = [*_sentences(recording, verdict, status), *_table(verdict)]
    lines += (f"note: {one_line(note, 200)}" for note in notes[:_NOTES])
    return "\n".join(map(clean, lines)) + "\n", status not in CLEAR


def _status(recording: Recording, verdict: Verdict, *, understood: bool) -> Status:
    if not understood:
        return "not_understood"
    if verdict.held:
        return "late"
    if not recording.whole:
        return "unread"
    return "healthy" if _count_compared(verdict) else "no_failure"


def _count_compared(verdict: Verdict) -> int:
    """Return the number of collectives that every rank of a communicator recorded."""
    whole = (row for row in verdict.communicators if len(row.recorded) == row.ranks)
    return sum(row.collectives for row in whole)


def _sentences(recording: Recording, verdict: Verdict, status: Status) -> Iterator[str]:
    measure = f"{recording.known:,} of {recording.lines:,} lines are known"
    for row in verdict.held[:_NOTES]:
        yield row.means
    if verdict.held:
        yield f"  to do: {_TO_DO[verdict.held[0].kind]}"
    elif status == "not_understood":
        yield f"Not understood: {measure}, so whether a rank is late is not known."
        yield "Expected: the files of NCCL's Inspector, one JSON object with header, metadata and coll_perf a line."
    elif compared := _count_compared(verdict):
        yield f"No rank is late in {compared:,} collectives that were compared ({measure})."
    else:
        yield f"No collective was recorded by all ranks of its communicator, so no rank is cleared ({measure})."


def _table(verdict: Verdict) -> Iterator[str]:
    if not verdict.communicators:
        return
    yield ""
    yield "communicator        ranks  nodes  compared  collective             size      GB/s  recorded ranks"
    for row in sorted(verdict.communicators, key=lambda each: -each.collectives)[:_ROWS]:
        yield _of_communicator(row)
    if len(verdict.communicators) > _ROWS:
        yield f"... {len(verdict.communicators) - _ROWS} more with --format json"
    slow = {(row.communicator, row.rank) for row in verdict.held}
    shown = {row.communicator for row in verdict.held if row.rank is not None}
    ranks = [member for member in verdict.members if member.communicator in shown]
    if ranks:
        yield ""
        yield "rank  comes last  waits for others  host"
    yield from (_of_rank(member, late=(member.communicator, member.rank) in slow) for member in ranks[:_ROWS])


def _of_communicator(row: Communicator) -> str:
    return (
        f"{one_line(row.id, 18):18}  {row.ranks:5}  {row.nodes:5}  {row.collectives:8,}"
        f"  {one_line(row.operation, 16):16}  {spell_bytes(row.size):>9}  {row.busbw:8.3g}  {ranges(row.recorded)}"
    )


def _of_rank(member: Member, *, late: bool) -> str:
    mark = "  <- late" if late else ""
    return f"{member.rank:4}  {member.last:10.0%}  {member.waits:16.0%}  {one_line(member.host, 60)}{mark}"
