"""Turns the entries of a dump into a program: the loop that runs once for each call of each rank."""

from __future__ import annotations

import marshal
import re
from collections.abc import Iterable
from itertools import pairwise
from operator import itemgetter
from typing import Any

from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.flight_recorder.rank_program import BATCH, Open, Program, Sizes, Symbol
from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.stacks.frames import is_library

P2P_NAME = re.compile(r"(?P<op>send|recv)\s*(?P<here>\d+)\s*(?:->|<-)\s*(?P<there>\d+)")
_TIMES = 256
"""Number of latest entries whose times are kept."""
_FIELDS = itemgetter(
    "process_group", "collective_seq_id", "profiling_name", "input_sizes", "output_sizes", "input_dtypes",
    "output_dtypes", "retired", "state",
)  # fmt: skip
_LAST_LINE = (1 << 24) - 1
_PLACE = itemgetter("line", "filename")
_TORCH = "pt_"
"""Prefix of the names of torch's own threads: `pt_autograd_0`."""
_FRAMES = 256
"""Maximum number of frames of a stack that are read."""
_PATH = 4_096
"""Maximum length in characters of a path that Linux opens; cleaning more costs time and shows nothing."""


class EntryReader:
    """Converts entries to the arrays of a program; its loop determines the speed."""

    def __init__(self, made: Program, local: dict[Any, str]) -> None:
        self.made = made
        self._local = local
        self._symbols: dict[Any, int] = {}
        self._known: dict[Symbol, int] = {}
        self._sites: dict[int, int] = {}
        """Identity of a list of frames -> number of its call site."""
        self._stacks: dict[tuple[int, ...], int] = {}
        """Identities of the frames -> number of the call site."""
        self._known_sites: dict[tuple[Any, ...], int] = {}
        """Files and lines of the frames -> number of the call site."""
        self._names: dict[str, int] = {}
        self._batches: set[tuple[str, int]] = set()
        """(group, p2p_seq) of batches of sends and receives that have ended."""

    def read(self, entries: list[Any]) -> None:
        """Read all entries, oldest first."""
        made = self.made
        thinned = _has_gaps(entries)
        if thinned:
            entries = _without_ended_parts(entries)
        keep_from = len(entries) - _TIMES
        symbols, sites, names = self._symbols, self._sites, self._names
        columns = (made.symbols, made.order, made.seqs, made.sites)
        add_symbol, add_order, add_seq, add_site = (column.append for column in columns)
        for position, e in enumerate(entries):
            try:
                try:
                    group, seq, op, inputs, outputs, read, written, done, state = _FIELDS(e)
                    key: Any = (
                        op, tuple(map(tuple, inputs)), tuple(map(tuple, outputs)), tuple(read), tuple(written)
                    )  # fmt: skip
                    symbol = symbols.get(key)
                    name = group[0]
                except (KeyError, TypeError, IndexError):
                    name, seq, done, state, key = self._odd(e)
                    symbol = symbols.get(key)
                if symbol is None:
                    symbol = self._symbol(key, e)
                index = names.get(name)
                if index is None:
                    index = self._name(name, e)
                frames = e.get("frames")
                site = sites.get(id(frames))  # the entries stay alive while they are read, so identity means equality
                if site is None:
                    site = self._place(frames)
                add_seq(int(seq))
                add_symbol(symbol)
                add_order(index)
                add_site(site)
                ended = done or state == "completed"
                if not ended or position >= keep_from:
                    self._late(name, symbol, int(seq), e, done=bool(ended), keep=position >= keep_from)
            except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError, RecursionError):
                made.bad += 1
                shortest = min(map(len, columns))
                for column in columns:
                    del column[shortest:]
                del made.created[len(made.order) :]
        if entries and isinstance(entries[0], dict):
            made.whole = not thinned and entries[0].get("record_id", entries[0].get("id", 0)) == 0
        made.parted = _has_separate_threads(entries)
        self._close_batches()
        made.active_only = thinned or (bool(entries) and len(made.open) == len(made.seqs) and not made.whole)

    def _close_batches(self) -> None:
        """Drop open sends and receives of finished batches: only the entry of the whole batch is marked as ended."""
        waiting = {(o.group, o.p2p_seq) for o in self.made.open if self.made.symbol_table[o.symbol].op == BATCH}
        kept = []
        for o in self.made.open:
            key = (o.group, o.p2p_seq)
            over = key in self._batches or (key not in waiting and self._stale(key, waiting))
            if o.peer is None or not over:
                kept.append(o)
        self.made.open = kept

    @staticmethod
    def _stale(key: tuple[str, int], waiting: set[tuple[str, int]]) -> bool:
        """True if a later batch of the group is still in progress, so that this unlisted batch has ended."""
        return any(group == key[0] and seq > key[1] for group, seq in waiting)

    def _symbol(self, key: Any, e: dict[str, Any]) -> int:
        profiling = e["profiling_name"] or "?"
        if not isinstance(profiling, str):
            raise TypeError("the name of a call is text")
        backend, _, op = profiling.partition(":") if ":" in profiling else ("", "", profiling)
        self.made.backend = self.made.backend or clean(backend)[:20]
        match = P2P_NAME.match(op)
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

    def _odd(self, e: dict[str, Any]) -> tuple[str, Any, Any, Any, bytes]:
        """Return the group, sequence number, state and key of an entry of an older version or a different shape."""
        get = e.get
        group = get("process_group")
        name = group[0] if group else self._local.get(get("pg_id", 0)) or as_text(get("pg_id", 0))
        told = (
            get("profiling_name"), get("input_sizes"), get("output_sizes"), get("input_dtypes"), get("output_dtypes")
        )  # fmt: skip
        key = marshal.dumps(told, 4)  # with references: sizes may share lists, and be endless when written out
        return name, get("collective_seq_id") or get("seq_id") or 0, get("retired"), get("state"), key

    def _place(self, frames: Any) -> int:
        """Return the number of a stack; many entries share one."""
        number = None
        try:
            kept = (frames or ())[:_FRAMES]
            by_frame = tuple(map(id, kept))
            number = self._stacks.get(by_frame)
            if number is None:
                places = tuple(map(_PLACE, kept))
                number = self._known_sites.get(places)
                if number is None:
                    number = self._known_sites[places] = self._site(kept)
                self._stacks[by_frame] = number
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError):  # the call has no usable place
            number = self._nowhere()
        self._sites[id(frames)] = number
        return number

    def _nowhere(self) -> int:
        if () not in self._known_sites:
            self._known_sites[()] = self._site(())
        return self._known_sites[()]

    def _site(self, frames: Iterable[dict[str, Any]]) -> int:
        user = [f for f in frames if not is_library(as_text(f.get("filename", "")))]
        site = tuple(
            Frame(
                clean(as_text(f.get("filename", ""))[:_PATH])[:500],
                _line(f["line"]),
                clean(as_text(f.get("name", ""))[:_PATH])[:200],
            )
            for f in reversed(user)  # the recorder has the innermost first
        )
        self.made.site_table.append(site)
        return len(self.made.site_table) - 1

    def _late(self, name: str, symbol: int, seq: int, e: dict[str, Any], *, done: bool, keep: bool) -> None:
        created = int(e.get("time_created_ns") or 0) / 1e9
        if keep:
            self.made.created.append(created)
        if not done:
            match = P2P_NAME.search(as_text(e.get("profiling_name")))
            peer = int(match["there"]) if match else None
            started = e.get("state") == "started"
            position = len(self.made.seqs) - 1
            p2p_seq = int(e.get("p2p_seq_id") or 0)
            self.made.open.append(Open(position, name, symbol, seq, p2p_seq, started, peer, created))
        elif self.made.symbol_table[symbol].op == BATCH:
            self._batches.add((name, int(e.get("p2p_seq_id") or 0)))


def as_text(value: Any) -> str:
    """Return text and numbers as text, else the type's name: even a small list may be endless when written out."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < 1 << 63):
        return str(value)
    return type(value).__name__


def _sizes(value: Any) -> Sizes:
    if not isinstance(value, list):
        return ()
    return tuple(tuple(int(n) for n in row[:64]) if isinstance(row, list) else (int(row),) for row in value[:4096])


def _line(value: Any) -> int:
    if not 0 <= int(value) <= _LAST_LINE:
        raise ValueError("no file has this line")
    return int(value)


def _word(value: Any) -> str:
    words = value[:64] if isinstance(value, list) else [value or ""]
    if not all(isinstance(word, str) for word in words):
        raise TypeError("a type is told as text")
    return ",".join(sorted({clean(word)[:30] for word in words}))


def _has_gaps(entries: list[Any]) -> bool:
    """True if entries of finished operations were left out in between."""
    first, last = (
        e.get("record_id") if isinstance(e, dict) else None for e in (*entries[:1], *entries[-1:]) or (None, None)
    )
    return isinstance(first, int) and isinstance(last, int) and last - first >= len(entries)


def _without_ended_parts(entries: list[Any]) -> list[Any]:
    """Drop sends and receives of finished batches: they look open forever, before the gap left by the batch's entry."""
    read = [e for e in entries if isinstance(e, dict) and isinstance(e.get("record_id"), int)]
    batches = {_batch(e) for e in read if BATCH in as_text(e.get("profiling_name"))}
    gap = max((e["record_id"] for e, after in pairwise(read) if after["record_id"] > e["record_id"] + 1), default=-1)
    return [
        e
        for e in read
        if e["record_id"] > gap or not P2P_NAME.search(as_text(e.get("profiling_name"))) or _batch(e) in batches
    ]


def _has_separate_threads(entries: list[Any]) -> bool:
    """True if threads use disjoint sets of groups, so that each thread is a separate program.

    Torch's own threads, such as those of the backward pass, run while the main thread waits for them.
    """
    try:
        if len({e.get("thread_id") for e in entries}) < 2:
            return False
        pairs = {
            ("" if as_text(e.get("thread_name")).startswith(_TORCH) else e["thread_id"], as_text(e["process_group"][0]))
            for e in entries
        }
        pairs |= {("", group) for thread, group in pairs if thread == entries[0]["thread_id"]}
    except (AttributeError, KeyError, TypeError, IndexError):
        return False
    parts: list[set[Any]] = []
    for thread, group in pairs:
        mine = {("thread", thread), ("group", group)}
        apart = [part for part in parts if not part & mine]
        parts = [*apart, mine.union(*(part for part in parts if part & mine))]
    return len(parts) > 1


def _batch(e: dict[str, Any]) -> tuple[str, str]:
    """Return the key that entries of one batch share."""
    return as_text(e.get("pg_id")), as_text(e.get("p2p_seq_id"))
