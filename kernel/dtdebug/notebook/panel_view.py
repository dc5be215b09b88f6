"""Builds the view of the ranks that front ends draw: clean, short, bounded for any number of ranks."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from dtdebug.notebook.cell_journal import LastCell
from dtdebug.notebook.ranks_seen import RanksSeen
from dtdebug.notebook.stack_tree_view import branch, cell_or_file, frame_row
from dtdebug.privacy.sanitize import one_line
from dtdebug_taxonomy.model.ranks import Alternative, CallSite, RankState, Verdict, ranges
from dtdebug_taxonomy.model.ranks_view import Cell, Device, Row, State, View
from dtdebug_taxonomy.model.snapshot import Gpu
from dtdebug_taxonomy.stacks.frames import own_frame

ROWS = 4096
"""Maximum number of ranks with a row; culprits come before the rest."""
LARGEST = 1_400_000
"""Maximum size of a view as JSON, in bytes."""
_WORD, _TEXT, _SENTENCE = 40, 120, 500
"""Maximum number of characters of a name, of a place and of a sentence."""
_RANGES = 6
_NOTES, _FRAMES, _DEVICES, _USERS, _SITES, _EVIDENCE = 16, 40, 64, 16, 64, 16
_EXACT = 1 << 53
"""Bound beyond which a front end can't represent every whole number."""
_LONG = 600
"""Seconds from which a wait is given in minutes."""
_CELL = re.compile(r"cell In\[(\d{1,9})\]\Z")


def view(
    seen: RanksSeen,
    *,
    road: Literal["kernel", "outside"] = "kernel",
    entry: LastCell | None = None,
    taken: float | None = None,
) -> View:
    """Return the view of an observation: `entry` is the kernel's journal, `taken` its time in epoch seconds."""
    taken = time.time() if taken is None else taken
    verdict = _bound_verdict(seen.verdict) if seen.verdict else None
    accused = verdict if verdict and verdict.kind != "none" and not _is_open(seen) else None
    rows = _rows(seen.ranks, accused, taken)
    left_out = len(seen.ranks) - len(rows)
    notes = (*([f"{left_out} more ranks are not shown"] if left_out else []), *seen.notes[:_NOTES])
    hangs = True if seen.resting else _hangs(rows, accused, moved=seen.moved)
    made = View(
        road=road,
        taken=taken,
        seconds=seen.seconds,
        line=(waiting_sentence(rows, accused, taken) or _rests(rows, seen.resting)) if hangs else "",
        hangs=hangs,
        cell=cell(seen, entry, taken),
        verdict=verdict,
        rows=rows,
        tree=branch(seen.ranks, accused.culprits if accused else ()),
        timeline=seen.timeline,
        devices=tuple(_device(gpu, seen.ranks) for gpu in seen.gpus[:_DEVICES]),
        notes=tuple(_short(note, _SENTENCE) for note in notes),
    )
    return made if len(msgspec.json.encode(made)) <= LARGEST else _smaller(made)


def _smaller(made: View) -> View:
    """Return the view without the texts that make it too large; only ranks with odd messages get there."""
    rows = tuple(Row(rank=r.rank, state=r.state, step=r.step, seq=r.seq, since=r.since, pid=r.pid) for r in made.rows)
    note = "the ranks' own texts are too long to be shown"
    return msgspec.structs.replace(made, rows=rows, tree=None, timeline=None, notes=(*made.notes, note))


def _rows(ranks: Sequence[RankState], verdict: Verdict | None, taken: float) -> tuple[Row, ...]:
    culprits = frozenset(verdict.culprits if verdict else ())
    waiting = frozenset(verdict.waiting if verdict else ())
    if len(ranks) > ROWS:
        ranks = sorted(sorted(ranks, key=lambda s: s.rank not in culprits)[:ROWS], key=_by_rank)
    return tuple(_row(s, culprits, waiting, taken) for s in ranks)


def _by_rank(state: RankState) -> tuple[bool, int]:
    return state.rank is None, state.rank or 0


def _row(s: RankState, culprits: Collection[int], waiting: Collection[int], taken: float) -> Row:
    own, pending = own_frame(s.stack), s.pending
    state = _state(s, culprits, waiting)
    inside = pending if state in ("culprit", "waits") else None
    return Row(
        rank=s.rank,
        state=state,
        step=_number(s.step),
        op=_short(inside.op, _WORD) if inside else "",
        seq=_number(inside.seq) if inside else None,
        group=_short(inside.group, _WORD) if inside else "",
        since=_moment(inside.since, s.clock_offset, taken) if inside else None,
        at=cell_or_file(own.file, own.line, own.function) if own else "",
        memory=_memory(s.device_memory),
        host=_short(s.host, _WORD),
        pid=s.pid,
    )


def _state(s: RankState, culprits: Collection[int], waiting: Collection[int]) -> State:
    if s.rank in culprits:
        return "culprit"
    if s.alive is False:
        return "gone"
    if s.pending is not None or s.rank in waiting:
        return "waits"
    return "silent" if s.alive is None or s.gil_held or (s.roads and "ok" not in s.roads.values()) else "runs"


def _hangs(rows: Sequence[Row], verdict: Verdict | None, *, moved: bool | None) -> bool | None:
    """True if something hangs; None if unknown, since a silently computing job looks like a hung one."""
    if verdict is not None:
        return True
    if moved is None:
        return None
    return False if moved else any(row.state == "waits" for row in rows) or None


def waiting_sentence(rows: Sequence[Row], verdict: Verdict | None, taken: float) -> str:
    """Format `ranks 0-2 wait 74 s in all_reduce #41 for rank 3`; without waiting ranks, the verdict's own summary."""
    found = verdict.waiting if verdict else ()
    waiting = sorted(set(found)) or sorted({r.rank for r in rows if r.state == "waits" and r.rank is not None})
    if not waiting:
        return _short(verdict.summary, _TEXT) if verdict else ""
    among = frozenset(waiting)
    mine = [row for row in rows if row.rank in among]
    operations = Counter((row.op, row.seq) for row in mine if row.op or row.seq is not None)
    op, seq = operations.most_common(1)[0][0] if operations else ("", None)
    if verdict and verdict.collective:
        op, seq = verdict.collective.op, verdict.collective.seq
    begun = min((row.since for row in mine if row.since is not None), default=None)
    words = [_ranks(waiting), "waits" if len(waiting) == 1 else "wait"]
    words += [_duration(taken - begun)] if begun is not None else []
    words += [f"in {op or 'collective'}{'' if seq is None else f' #{seq}'}"] if op or seq is not None else []
    words += [f"for {_ranks(verdict.culprits)}"] if verdict and verdict.culprits else []
    return _short(" ".join(words), _TEXT)


def _rests(rows: Sequence[Row], seconds: float) -> str:
    """Format the idle time, all that is known of ranks without records."""
    who = _ranks([row.rank for row in rows if row.rank is not None]) if rows and rows[0].rank is not None else ""
    who = who or f"{len(rows)} rank{'s' if len(rows) > 1 else ''}"
    return f"{who} used no processor for {_duration(seconds)}" if rows and seconds else ""


def _ranks(ranks: Collection[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {ranges(ranks, _RANGES)}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < _LONG else f"{seconds / 60:.0f} min"


def cell(seen: RanksSeen, entry: LastCell | None, taken: float) -> Cell | None:
    """Return the running cell: its line from the stack, its start from the journal; None while no cell runs."""
    stack, running = seen.here.stack, entry if entry is not None and entry.running else None
    if not stack and running is None:
        return None
    named = _CELL.match(stack[0].file) if stack else None
    number = int(named[1]) if named else running.number if running else None
    begun = running.begun if running is not None and running.number == number else None
    return Cell(
        number=number,
        line=stack[0].line if named else None,
        code=_short(stack[0].code, 200) if named else "",
        seconds=round(max(0.0, taken - begun), 1) if begun is not None and math.isfinite(begun) else None,
        busy=None if seen.here.busy is None else round(seen.here.busy, 3),
        frames=tuple(frame_row(frame) for frame in stack[-_FRAMES:]),
    )


def _device(gpu: Gpu, ranks: Sequence[RankState]) -> Device:
    named = {s.pid: s.rank for s in ranks if s.pid}
    return Device(
        index=gpu.index,
        name=_short(gpu.name, _TEXT),
        total=gpu.memory_total,
        used=gpu.memory_used,
        utilization=gpu.utilization,
        users=tuple(
            (f"pid {pid}" if named.get(pid) is None else f"rank {named[pid]}", used)
            for pid, used in gpu.processes[:_USERS]
        ),
    )


def _is_open(seen: RanksSeen) -> bool:
    """True if it is unknown whether the ranks move: one look found them outside of collectives, which is not a wait."""
    verdict = seen.verdict
    if verdict is None or verdict.kind != "not_understood":
        return False
    waiting = frozenset(verdict.waiting)
    inside = any(s.pending is not None for s in seen.ranks if s.rank in waiting)
    return not inside and not any(claim.what == "unmoved" for claim in verdict.claims)


def _bound_verdict(verdict: Verdict) -> Verdict:
    """Return the verdict with clean texts and bounded lists."""
    group, collective = verdict.group, verdict.collective
    return msgspec.structs.replace(
        verdict,
        culprits=verdict.culprits[:ROWS],
        waiting=verdict.waiting[:ROWS],
        stragglers=verdict.stragglers[:ROWS],
        group=group and msgspec.structs.replace(group, name=_short(group.name, _TEXT), ranks=group.ranks[:ROWS]),
        collective=collective and msgspec.structs.replace(collective, op=_short(collective.op, _TEXT)),
        sites=tuple(
            CallSite(site.rank, _short(site.file, _SENTENCE), site.line, _short(site.function, _TEXT))
            for site in verdict.sites[:_SITES]
        ),
        summary=_short(verdict.summary, _SENTENCE),
        claims=(),  # they are in `evidence` as sentences
        evidence=tuple(_short(line, _SENTENCE) for line in verdict.evidence[:_EVIDENCE]),
        alternatives=tuple(
            Alternative(
                kind=other.kind,
                culprits=other.culprits[:_SITES],
                because=_short(other.because, _SENTENCE),
                refute=_short(other.refute, _SENTENCE),
            )
            for other in verdict.alternatives[:8]
        ),
    )


def _short(text: str, most: int) -> str:
    text = one_line(text, most + 1)
    return text if len(text) <= most else text[: most - 3] + "..."


def _number(value: int | None) -> int | None:
    return value if value is not None and 0 <= value < _EXACT else None


def _memory(value: tuple[int, int] | None) -> tuple[int, int] | None:
    return value if value is not None and all(0 <= part < _EXACT for part in value) else None


def _moment(begun: float | None, offset: float, taken: float) -> float | None:
    """Return a rank's time by this machine's clock, or None if it is invalid or in the future."""
    begun = None if begun is None else begun + offset
    return round(begun, 3) if begun is not None and 0 < begun <= taken + 1 else None
