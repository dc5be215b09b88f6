"""One dump reduced to what matching needs: which operations, on which groups, in which order, how far.

A dump of 2000 entries becomes a few arrays of small numbers, so that thousands of ranks fit into memory and equal
programs compare as bytes.
"""

from __future__ import annotations

import marshal
import re
from array import array
from collections.abc import Iterable
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from dtdebug.clean import clean
from dtdebug.ranks.userland import is_library
from dtdebug_taxonomy.ranks import Frame, ranges

Sizes = tuple[tuple[int, ...], ...]
_TIMES = 512
"""Latest entries whose times are kept."""
_P2P = re.compile(r"(?P<op>send|recv)\s*(?P<here>\d+)\s*(?:->|<-)\s*(?P<there>\d+)")
_BATCH = "coalesced"
P2P = ("send", "recv", "isend", "irecv", _BATCH)
_UNEVEN = ("alltoall", "all_to_all", "send", "recv", "coalesced", "allgatherv", "all_gather_v", "reduce_scatter_v")
"""Operations whose sizes may differ between the ranks that call them."""
_ROOTED = ("gather", "scatter")
"""Operations where one side's sizes are there on the root alone."""
_PLACE = itemgetter("line", "filename")
_FRAMES = 256
"""Frames of a stack that are looked at."""
_NONE = ((), ((),), ((0,),))
"""Sizes of no tensor: NCCL hands in an undefined one, which has the sizes [0]."""


class Symbol(NamedTuple):
    """What identifies a call: the ranks of a group must agree on it."""

    op: str
    inputs: Sizes
    outputs: Sizes
    dtypes: tuple[str, ...]

    def compared(self) -> Symbol:
        """The part on which the ranks of a group must agree."""
        if any(word in self.op for word in _UNEVEN):
            return Symbol(self.op, (), (), ())
        if self.op == "gather":
            return self._replace(outputs=(), dtypes=self.dtypes[:1])
        if self.op == "scatter":
            return self._replace(inputs=(), dtypes=self.dtypes[1:])
        return self

    def is_root(self) -> bool:
        """The call has the sizes that only the root of a gather or scatter has."""
        return self.op in _ROOTED and (self.outputs if self.op == "gather" else self.inputs) not in _NONE


class Told(NamedTuple):
    """A group as one dump tells of it."""

    name: str
    desc: str
    ranks: tuple[int, ...]
    """Global ranks; empty where the dump does not tell, as on gloo."""
    enqueued: int
    """Sequence number of the latest collective that was begun, 0 for none."""
    completed: int


class Open(NamedTuple):
    """An operation that has not ended."""

    position: int
    group: str
    symbol: int
    seq: int
    p2p_seq: int
    started: bool
    peer: int | None
    """The other side of a point-to-point operation, as a rank of the group."""
    created: float
    """Seconds since the epoch."""


class Program:
    """The operations of one rank in the order in which it called them."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.groups: dict[str, Told] = {}
        self.names: list[str] = []
        """Group names in order of first use; `order` counts in it."""
        self.order = array("H")
        self.symbols = array("I")
        self.seqs = array("I")
        self.sites = array("I")
        self.symbol_table: list[Symbol] = []
        self.site_table: list[tuple[Frame, ...]] = []
        """The user's frames of a call, innermost last; empty where the dump has no stacks."""
        self.times: dict[tuple[str, int], float] = {}
        """(group, seq) -> seconds since the epoch, of the latest entries."""
        self.open: list[Open] = []
        self.whole = True
        """Nothing has dropped out of the ring buffer."""
        self.backend = ""
        self.taken: float | None = None
        """When the dump was written, in seconds since the epoch."""
        self.bad = 0
        """Entries that could not be read."""
        self.active_only = False
        """Entries of ended operations were left out of the dump, as Megatron-LM has it by default."""
        self.hidden: dict[str, int] = {}
        """Group -> operations begun and not ended that the recorder keeps no entry of (gloo's send and recv)."""
        self.sizes: dict[str, int] = {}
        """Group -> number of its members, where an all_gather or gather shows it."""
        self.ids: dict[str, int] = {}
        """Group -> the number under which this process knows it."""

    def site(self, position: int) -> tuple[Frame, ...]:
        """The user's frames of a call."""
        return self.site_table[self.sites[position]] if 0 <= position < len(self.sites) else ()

    def symbol(self, position: int) -> Symbol:
        """The call at a position."""
        return self.symbol_table[self.symbols[position]]

    def group(self, position: int) -> str:
        """The name of the group of the call at a position."""
        return self.names[self.order[position]]

    def reached(self, group: str) -> int:
        """Sequence number of the latest collective on a group, 0 for none."""
        found = self.groups.get(group)
        return found.enqueued if found else 0


def program(raw: dict[str, Any], rank: int) -> Program:
    """Reduces a dump; entries that make no sense are counted and left out."""
    made = Program(rank)
    entries = raw.get("entries")
    entries = entries if isinstance(entries, list) else []
    _Reader(made, _by_members(raw.get("pg_config"))).read(entries)
    _groups(made, raw)
    return made


class _Reader:
    """Turns entries into the arrays of a program: the loop that counts for speed."""

    def __init__(self, made: Program, local: dict[Any, str]) -> None:
        self.made = made
        self._local = local
        self._symbols: dict[bytes, int] = {}
        self._known: dict[Symbol, int] = {}
        self._sites: dict[tuple[Any, ...], int] = {}
        self._names: dict[str, int] = {}
        self._batches: set[tuple[str, int]] = set()
        """(group, p2p_seq) of batches of sends and receives that have ended."""

    def read(self, entries: list[Any]) -> None:
        made = self.made
        thinned = _thinned(entries)
        if thinned:
            entries = _without_ended_parts(entries)
        keep_from = len(entries) - _TIMES
        symbols, sites, names, local = self._symbols, self._sites, self._names, self._local
        add_symbol, add_order, add_seq, add_site = (
            made.symbols.append, made.order.append, made.seqs.append, made.sites.append,
        )  # fmt: skip
        for position, e in enumerate(entries):
            try:
                get = e.get
                group = get("process_group")
                name = group[0] if group else local.get(get("pg_id", 0)) or _text(get("pg_id", 0))
                key = marshal.dumps(
                    (
                        get("profiling_name"), get("input_sizes"), get("output_sizes"),
                        get("input_dtypes"), get("output_dtypes"),
                    ),
                    4,  # with references: sizes may share lists, and be endless when written out
                )  # fmt: skip
                symbol = symbols.get(key)
                if symbol is None:
                    symbol = self._symbol(key, e)
                index = names.get(name)
                if index is None:
                    index = self._name(name, e)
                try:
                    frames = (get("frames") or ())[:_FRAMES]
                    places = tuple(map(_PLACE, frames))
                    site = sites.get(places)
                    if site is None:
                        site = self._site(places, frames)
                except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
                    site = self._site((), ())
                seq = int(get("collective_seq_id") or get("seq_id") or 0)
                add_seq(int(get("p2p_seq_id") or 0) if get("is_p2p") else seq)
                add_symbol(symbol)
                add_order(index)
                add_site(site)
                done = get("retired") or get("state") == "completed"
                if not done or position >= keep_from:
                    self._late(name, symbol, seq, e, done=bool(done))
            except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError, RecursionError):
                made.bad += 1
                shortest = min(len(made.seqs), len(made.symbols), len(made.order), len(made.sites))
                for column in (made.seqs, made.symbols, made.order, made.sites):
                    del column[shortest:]
        if entries and isinstance(entries[0], dict):
            made.whole = not thinned and entries[0].get("record_id", entries[0].get("id", 0)) == 0
        self._close_batches()
        made.active_only = thinned or (bool(entries) and len(made.open) == len(made.seqs) and not made.whole)

    def _close_batches(self) -> None:
        """The parts of a batch are never marked as ended: the entry of the whole batch, which follows them, is."""
        waiting = {(o.group, o.p2p_seq) for o in self.made.open if self.made.symbol_table[o.symbol].op == _BATCH}
        kept = []
        for o in self.made.open:
            key = (o.group, o.p2p_seq)
            over = key in self._batches or (key not in waiting and self._stale(key, waiting))
            if o.peer is None or not over:
                kept.append(o)
        self.made.open = kept

    @staticmethod
    def _stale(key: tuple[str, int], waiting: set[tuple[str, int]]) -> bool:
        """A part whose batch is not listed: it has ended if a later batch of the group is still under way."""
        return any(group == key[0] and seq > key[1] for group, seq in waiting)

    def _symbol(self, key: bytes, e: dict[str, Any]) -> int:
        profiling = e["profiling_name"] or "?"
        if not isinstance(profiling, str):
            raise TypeError("the name of a call is text")
        backend, _, op = profiling.partition(":") if ":" in profiling else ("", "", profiling)
        self.made.backend = self.made.backend or clean(backend)[:20]
        match = _P2P.match(op)
        symbol = Symbol(
            match["op"] if match else clean(op)[:60],
            _sizes(e.get("input_sizes")),
            _sizes(e.get("output_sizes")),
            (_word(e.get("input_dtypes")), _word(e.get("output_dtypes"))),
        )
        number = self._known.get(symbol)
        if number is None:
            number = self._known[symbol] = len(self.made.symbol_table)
            self.made.symbol_table.append(symbol)
        self._symbols[key] = number
        return number

    def _name(self, name: Any, e: dict[str, Any]) -> int:
        if not isinstance(name, str):
            raise TypeError("the name of a group is text")
        number = self._names[name] = len(self.made.names)
        self.made.names.append(name)
        if isinstance(e.get("pg_id"), int):
            self.made.ids[name] = e["pg_id"]
        return number

    def _site(self, places: tuple[Any, ...], frames: Iterable[dict[str, Any]]) -> int:
        user = [f for f in frames if not is_library(_text(f.get("filename", "")))]
        site = tuple(
            Frame(
                clean(_text(f.get("filename", "")))[:500],
                int(f["line"]) & 0xFFFFFF,
                clean(_text(f.get("name", "")))[:200],
            )
            for f in reversed(user)  # the recorder has the innermost first
        )
        number = self._sites[places] = len(self.made.site_table)
        self.made.site_table.append(site)
        return number

    def _late(self, name: str, symbol: int, seq: int, e: dict[str, Any], *, done: bool) -> None:
        created = int(e.get("time_created_ns") or 0) / 1e9
        self.made.times[name, seq] = created
        if not done:
            match = _P2P.search(_text(e.get("profiling_name")))
            peer = int(match["there"]) if match else None
            started = e.get("state") == "started"
            position = len(self.made.seqs) - 1
            p2p_seq = int(e.get("p2p_seq_id") or 0)
            self.made.open.append(Open(position, name, symbol, seq, p2p_seq, started, peer, created))
        elif self.made.symbol_table[symbol].op == _BATCH:
            self._batches.add((name, int(e.get("p2p_seq_id") or 0)))


def _text(value: Any) -> str:
    """Text and numbers as text, else the name of the type: a small list may be endless when it is written out."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < 1 << 63):
        return str(value)
    return type(value).__name__


def _sizes(value: Any) -> Sizes:
    if not isinstance(value, list):
        return ()
    return tuple(tuple(int(n) for n in row[:64]) if isinstance(row, list) else (int(row),) for row in value[:4096])


def _word(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(sorted({clean(_text(v))[:30] for v in value[:64]}))
    return clean(_text(value))[:30] if value else ""


def _thinned(entries: list[Any]) -> bool:
    """Entries have been left out in between: those of ended operations."""
    first, last = (
        e.get("record_id") if isinstance(e, dict) else None for e in (*entries[:1], *entries[-1:]) or (None, None)
    )
    return isinstance(first, int) and isinstance(last, int) and last - first >= len(entries)


def _without_ended_parts(entries: list[Any]) -> list[Any]:
    """The sends and receives of an ended batch look open for ever: they stand before a gap, where its entry was."""
    read = [e for e in entries if isinstance(e, dict) and isinstance(e.get("record_id"), int)]
    batches = {_batch(e) for e in read if _BATCH in _text(e.get("profiling_name"))}
    gap = max((e["record_id"] for e, after in pairwise(read) if after["record_id"] > e["record_id"] + 1), default=-1)
    return [
        e
        for e in read
        if e["record_id"] > gap or not _P2P.search(_text(e.get("profiling_name"))) or _batch(e) in batches
    ]


def _batch(e: dict[str, Any]) -> tuple[str, str]:
    """What the entries of one batch have in common."""
    return _text(e.get("pg_id")), _text(e.get("p2p_seq_id"))


def _groups(made: Program, raw: dict[str, Any]) -> None:
    """Members and progress of each group, from what the dump tells of it and from the entries."""
    config = raw.get("pg_config") if isinstance(raw.get("pg_config"), dict) else {}
    status = raw.get("pg_status") if isinstance(raw.get("pg_status"), dict) else {}
    local = _by_members(config)
    told: dict[str, tuple[str, tuple[int, ...]]] = {local[k]: ("", _ranks((config or {})[k])) for k in local}
    told |= {
        _text(name): (clean(_text(about.get("desc", "")))[:100], _ranks(about.get("ranks")))
        for name, about in (config or {}).items()
        if isinstance(about, dict) and name != ""  # gloo's only entry: the latest group, without a name
    }
    highest: dict[int, int] = {}
    passing = {number for number, symbol in enumerate(made.symbol_table) if symbol.op in P2P}
    for index, seq, number in zip(made.order, made.seqs, made.symbols, strict=True):
        if seq > highest.get(index, 0) and number not in passing:
            highest[index] = seq
    reached = {made.names[index]: seq for index, seq in highest.items()}
    for index, number in {*zip(made.order, made.symbols, strict=True)}:
        symbol = made.symbol_table[number]
        if symbol.op in ("all_gather", "gather") and symbol.inputs and symbol.outputs:
            first, *rest = symbol.outputs[0] or (0,)
            if tuple(rest) == symbol.inputs[0]:
                made.sizes[made.names[index]] = first
    by_id = {_text(number): name for name, number in made.ids.items()}
    by_id |= {_text(number): name for number, name in local.items()}
    progress = {by_id.get(_text(k), _text(k)): v for k, v in (status or {}).items() if isinstance(v, dict)}
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
        if made.backend == "gloo":  # its counters count point-to-point operations, of which there is no entry
            unended = enqueued - completed - sum(o.group == name for o in made.open)
            if unended > 0:
                made.hidden[name] = unended
            enqueued = seq
        else:
            enqueued = max(seq, enqueued)
        ended = pending[name] - 1 if name in pending else enqueued if seq else completed
        made.groups[name] = Told(name, desc, ranks, enqueued, min(ended, enqueued))


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
