"""What a dump tells of the rank's groups: members, and how far each has come; with the entries it makes a program."""

from __future__ import annotations

import re
from typing import Any

from dtdebug.clean import clean
from dtdebug.flight.entries import Reader, text
from dtdebug.flight.program import P2P, Program, Told
from dtdebug_taxonomy.ranks import MOST_RANKS, ranges


def program(raw: dict[str, Any], rank: int) -> Program:
    """Reduces a dump; entries that make no sense are counted and left out."""
    made = Program(rank)
    entries = raw.get("entries")
    entries = entries if isinstance(entries, list) else []
    Reader(made, _by_members(raw.get("pg_config"))).read(entries)
    _groups(made, raw)
    return made


def _groups(made: Program, raw: dict[str, Any]) -> None:
    """Members and progress of each group, from what the dump tells of it and from the entries."""
    config = raw.get("pg_config") if isinstance(raw.get("pg_config"), dict) else {}
    status = raw.get("pg_status") if isinstance(raw.get("pg_status"), dict) else {}
    local = _by_members(config)
    told: dict[str, tuple[str, tuple[int, ...]]] = {local[k]: ("", _ranks((config or {})[k])) for k in local}
    told |= {
        text(name): (clean(text(about.get("desc", "")))[:100], _ranks(about.get("ranks")))
        for name, about in (config or {}).items()
        if isinstance(about, dict) and name != ""  # gloo's only entry: the latest group, without a name
    }
    reached = _reached(made)
    _sizes_shown(made)
    by_id = {text(number): name for name, number in made.ids.items()}
    by_id |= {text(number): name for number, name in local.items()}
    progress = {by_id.get(text(k), text(k)): v for k, v in (status or {}).items() if isinstance(v, dict)}
    # Parts of a batch look open for ever, and where only active entries are kept, the batch that has ended is missing.
    idle = {n for n, row in progress.items() if 0 < _number(row, "enqueued") == _number(row, "completed")}
    made.open = [o for o in made.open if o.peer is None or o.group not in idle]
    pending: dict[str, int] = {}
    for o in made.open:
        if o.peer is None and (o.group not in pending or o.seq < pending[o.group]):
            pending[o.group] = o.seq
    for name in dict.fromkeys([*told, *made.names, *(n for n in progress if n in told)]):
        desc, ranks = told.get(name, ("", ()))
        enqueued, completed = _number(progress.get(name), "enqueued"), _number(progress.get(name), "completed")
        seq = reached.get(name, 0)
        # gloo's counters count point-to-point operations, of which there is no entry
        enqueued = seq if made.backend == "gloo" else max(seq, enqueued)
        ended = pending[name] - 1 if name in pending else enqueued if seq else completed
        made.groups[name] = Told(name, desc, ranks, enqueued, min(ended, enqueued))


def _reached(made: Program) -> dict[str, int]:
    """Group -> sequence number of its latest collective: that of its last entry."""
    found: dict[str, int] = {}
    between = [s.op in P2P for s in made.symbol_table]
    for position in range(len(made.order) - 1, -1, -1):
        if not between[made.symbols[position]]:
            found.setdefault(made.group(position), made.seqs[position])
            if len(found) == len(made.names):
                break
    return found


def _sizes_shown(made: Program) -> None:
    """Notes how many members a group has where the output of an all_gather or gather has one part for each."""
    parts = {}
    for number, s in enumerate(made.symbol_table):
        if s.op in ("all_gather", "gather") and s.inputs and s.outputs and s.outputs[0][1:] == s.inputs[0]:
            shown = s.outputs[0][0] if s.outputs[0] else 0
            parts[number] = shown if 0 < shown <= MOST_RANKS else 0
    if parts:
        for index, number in {*zip(made.order, made.symbols, strict=True)}:
            if number in parts:
                made.sizes[made.names[index]] = parts[number]


def _by_members(config: Any) -> dict[Any, str]:
    """Names for groups that torch before 2.4 numbers in each process by itself: their members tell which is which."""
    names: dict[Any, str] = {}
    counts: dict[tuple[int, ...], int] = {}
    for number, about in config.items() if isinstance(config, dict) else ():
        ranks = _ranks(about)
        if ranks and not isinstance(about, dict):
            counts[ranks] = counts.get(ranks, 0) + 1
            again = f" ({counts[ranks]})" if counts[ranks] > 1 else ""
            names[number] = f"of ranks {ranges(ranks)}{again}"
    return names


def _ranks(value: Any) -> tuple[int, ...]:
    if isinstance(value, str):
        return tuple(int(n) for n in re.findall(r"\d{1,7}", value[: 1 << 20]))
    return tuple(int(n) for n in value if isinstance(n, int)) if isinstance(value, list) else ()


def _number(status: Any, what: str) -> int:
    value = status.get(f"last_{what}_collective") if isinstance(status, dict) else None
    return max(value, 0) if isinstance(value, int) else 0
