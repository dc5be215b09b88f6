"""Reads the ranks' notes: bounded, and without malformed lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, TypeVar

import msgspec

from dtdebug.experiments.invariants.record_types import (
    AnyRecord,
    Backward,
    Batch,
    DroppedWork,
    Fetch,
    FirstStep,
    Forward,
    MadeGroup,
    Mesh,
    OutsideCall,
    Process,
    Site,
    WatchRecord,
)
from dtdebug.storage import state_dir

_FILES, _BYTES, _TOTAL = 4096, 9 << 20, 1 << 30
R = TypeVar("R", bound=WatchRecord)


class Rank:
    """Notes of one rank, including those of its loader workers."""

    decoder: ClassVar[msgspec.json.Decoder[AnyRecord]] = msgspec.json.Decoder(AnyRecord)

    def __init__(self, rank: int, host: str, world: int) -> None:
        self.rank, self.host, self.world = rank, host, world
        self.rows: list[AnyRecord] = []
        self.workers: list[Fetch] = []
        self._sites: dict[int, Site] = {}
        self._by_kind: dict[type, list[AnyRecord]] = {}

    def add(self, rows: list[AnyRecord]) -> None:
        """Add rows of its main process."""
        self.rows += rows
        self._sites |= {row.i: row for row in rows if isinstance(row, Site)}
        for row in rows:
            self._by_kind.setdefault(type(row), []).append(row)

    def of(self, kind: type[R]) -> list[R]:
        """Return its rows of that kind, in order."""
        return self._by_kind.get(kind, [])  # type: ignore[return-value]

    def place(self, site: int) -> tuple[str, int]:
        """Return the file and line of a site."""
        found = self._sites.get(site)
        return (found.file, found.line) if found is not None else ("", 0)


def read_ranks(folder: Path) -> list[Rank]:
    """Return the ranks with notes, by number; of a restarted rank, the process with the most rows."""
    processes: list[tuple[Process, list[AnyRecord]]] = []
    total = 0
    for path in sorted(folder.glob("*.jsonl"))[:_FILES]:
        try:
            raw = state_dir.read_start(path, _BYTES)
        except OSError:
            continue
        total += len(raw)
        if total > _TOTAL:
            break
        rows = list(_rows(raw))
        first = next((row for row in rows if isinstance(row, Process)), None)
        if first is not None:
            processes.append((first, rows))
    return _merge_processes(processes)


def _rows(raw: bytes) -> Iterator[AnyRecord]:
    for line in raw.splitlines():
        try:
            yield Rank.decoder.decode(line)
        except (ValueError, RecursionError):  # truncated, or of another version
            continue


def _merge_processes(processes: list[tuple[Process, list[AnyRecord]]]) -> list[Rank]:
    ranks: dict[int, Rank] = {}
    by_pid: dict[tuple[str, int], Rank] = {}
    for process, rows in sorted(processes, key=lambda p: -len(p[1])):
        begun = next((row for row in rows if isinstance(row, FirstStep)), None)
        rank = begun.rank if begun is not None and begun.rank is not None else process.rank
        trains = any(
            isinstance(row, (FirstStep, Forward, Backward, Batch, DroppedWork, OutsideCall, Mesh, MadeGroup))
            for row in rows
        )
        if rank is None or not trains or rank in ranks or not 0 <= rank < 1 << 18:
            continue
        world = (begun.world if begun is not None else None) or process.world or 1
        found = ranks[rank] = by_pid[process.host, process.pid] = Rank(rank, process.host, world)
        found.add(rows)
    for process, rows in processes:
        parent = by_pid.get((process.host, process.parent))
        if parent is not None and (process.host, process.pid) not in by_pid:
            parent.workers += [row for row in rows if isinstance(row, Fetch)]
    return [ranks[rank] for rank in sorted(ranks)]
