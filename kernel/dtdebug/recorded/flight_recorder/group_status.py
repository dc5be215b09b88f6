"""Reduces a dump to a program: groups, their members and progress, and the entries."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import Any

from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.flight_recorder.entry_reader import EntryReader, as_text
from dtdebug.recorded.flight_recorder.rank_program import P2P, DumpedGroup, Program
from dtdebug_taxonomy.model.ranks import MOST_RANKS, ranges

_MOST_GROUPS = 1024
"""Maximum number of groups of a rank."""
_MOST_OPEN = 4096
"""Maximum number of unfinished operations of a rank: the first ones show what it waits in."""
_MOST_CALLS = 1 << 48
_MOST_PARSED, _LONG, _DIGITS = _MOST_GROUPS, 1 << 14, 8
"""Maximum number of lists of ranks remembered, of characters of one, and digits that no rank has."""


def reduced_program(raw: dict[str, Any], rank: int) -> Program:
    """Reduce a dump to a program; malformed entries are counted and left out."""
    made = Program(rank)
    entries = raw.get("entries")
    entries = entries if isinstance(entries, list) else []
    EntryReader(made, _by_members(raw.get("pg_config"))).read(entries)
    _groups(made, raw)
    return made


def _groups(made: Program, raw: dict[str, Any]) -> None:
    """Set the members and progress of each group, from the dump's group tables and the entries."""
    config = raw.get("pg_config") if isinstance(raw.get("pg_config"), dict) else {}
    status = raw.get("pg_status") if isinstance(raw.get("pg_status"), dict) else {}
    local = _by_members(config)
    told: dict[str, tuple[str, tuple[int, ...]]] = {local[k]: ("", _ranks((config or {})[k])) for k in local}
    told |= {
        as_text(name): (_description(as_text(about.get("desc", ""))), _ranks(about.get("ranks")))
        for name, about in islice((config or {}).items(), _MOST_GROUPS)
        if isinstance(about, dict) and name != ""  # gloo's only entry: the latest group, without a name
    }
    reached = _latest_seqs(made)
    _sizes_shown(made)
    by_id = {} if local else _by_order(config or {}, made.ids)
    by_id |= {as_text(number): name for name, number in made.ids.items()}
    by_id |= {as_text(number): name for number, name in local.items()}
    counted = {as_text(k): v for k, v in (status or {}).items() if isinstance(v, dict)}
    progress = {by_id[number]: row for number, row in counted.items() if number in by_id}
    made.begun = sum(_number(row, "enqueued") for row in counted.values())
    # Parts of a batch look open forever, and if only active entries are kept, the finished batch is missing.
    idle = {n for n, row in progress.items() if 0 < _number(row, "enqueued") == _number(row, "completed")}
    made.open = [o for o in made.open if o.peer is None or o.group not in idle][:_MOST_OPEN]
    pending: dict[str, int] = {}
    for o in made.open:
        if o.peer is None and (o.group not in pending or o.seq < pending[o.group]):
            pending[o.group] = o.seq
    sent = {number for number, s in enumerate(made.symbol_table) if s.op in P2P}
    used = {*zip(made.order, made.symbols, strict=True)} if sent else set()
    transfers = {made.names[index] for index, number in used if number in sent}
    for name in dict.fromkeys([*told, *made.names, *(n for n in progress if n in told)]):
        desc, ranks = told.get(name, ("", ()))
        passing = name in transfers and not made.active_only  # then the counters may be those of sends and receives
        enqueued, completed = _number(progress.get(name), "enqueued"), _number(progress.get(name), "completed")
        seq = reached.get(name, 0)
        # gloo's counters count point-to-point operations, which have no entry
        enqueued = seq if made.backend == "gloo" or passing else max(seq, enqueued)
        ended = pending[name] - 1 if name in pending else enqueued if seq else completed
        made.groups[name] = DumpedGroup(name, desc, ranks, enqueued, min(ended, enqueued), name in progress)


def _latest_seqs(made: Program) -> dict[str, int]:
    """Return group -> sequence number of its latest collective, from its last entry."""
    found: dict[str, int] = {}
    between = [s.op in P2P for s in made.symbol_table]
    for position in range(len(made.order) - 1, -1, -1):
        if not between[made.symbols[position]]:
            found.setdefault(made.group(position), made.seqs[position])
            if len(found) == len(made.names):
                break
    return found


def _sizes_shown(made: Program) -> None:
    """Set the size of each group from the output of an all_gather or gather, which has one part per member."""
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
    """Name groups that torch before 2.4 numbers per process, by their members."""
    names: dict[Any, str] = {}
    counts: dict[tuple[int, ...], int] = {}
    for number, about in config.items() if isinstance(config, dict) else ():
        ranks = _ranks(about)
        if ranks and not isinstance(about, dict):
            counts[ranks] = counts.get(ranks, 0) + 1
            again = f" ({counts[ranks]})" if counts[ranks] > 1 else ""
            names[number] = f"of ranks {ranges(ranks)}{again}"
    return names


@lru_cache(maxsize=_MOST_GROUPS)
def _description(text: str) -> str:
    return clean(text)[:100]


_parsed: dict[str, tuple[int, ...]] = {}
"""Text of a list of ranks -> the ranks; most dumps of a job list the same ones."""


def _ranks(value: Any) -> tuple[int, ...]:
    if isinstance(value, str):
        found = _parsed.get(value)
        if found is None:
            numbers = re.findall(r"\d{1,8}", value[: 1 << 20])
            found = tuple(map(int, numbers)) if all(len(n) < _DIGITS for n in numbers) else ()
            if len(_parsed) >= _MOST_PARSED:
                _parsed.clear()
            if len(value) <= _LONG:
                _parsed[value] = found
        return found
    return tuple(int(n) for n in value if isinstance(n, int)) if isinstance(value, list) else ()


def _number(status: Any, what: str) -> int:
    value = status.get(f"last_{what}_collective") if isinstance(status, dict) else None
    if isinstance(value, str) and len(value) < 20 and value.isdecimal():  # the type in the JSON form
        value = int(value)
    return min(max(value, 0), _MOST_CALLS) if isinstance(value, int) else 0


def _by_order(config: dict[Any, Any], ids: dict[str, int]) -> dict[str, str]:
    """Return local number -> group, for groups without entries: processes number their groups in order of creation.

    Group names are increasing numbers, so their order is that of the local numbers, unless an entry contradicts it.
    """
    names = [name for name in config if isinstance(name, str) and name.isdecimal() and len(name) < 10]
    if len(names) != len(config):
        return {}
    ordered = sorted(names, key=int)
    if any(number >= len(ordered) or ordered[number] != name for name, number in ids.items() if number >= 0):
        return {}
    return {str(number): name for number, name in enumerate(ordered)}
