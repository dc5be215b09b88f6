"""Finds flight-recorder dumps in a folder and reads them, whichever tool wrote them.

A dump is a pickle of plain containers (protocol 2, no globals) or its JSON form, one file per rank, named
`<prefix><rank>` with any prefix:
https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/FlightRecorder.hpp
"""

from __future__ import annotations

import io
import os
import pickle
import re
import stat
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy.model.ranks import MOST_RANKS

_NAME = re.compile(r"(?P<prefix>.*?)(?P<rank>\d{1,7})(?P<suffix>\.(?:json|pkl|pickle|trace|bin))?\Z", re.DOTALL)
LARGEST = 256 << 20
"""Maximum size in bytes of a dump."""
_MOST_FILES = 100_000
_CHUNK = 1 << 20
"""Bytes that the unpickler buffers: from an unbuffered stream it reads each value by a call."""


class FlightError(ValueError):
    """A folder of dumps can't be analysed: the text states which, why, and what to do."""


class DumpError(ValueError):
    """One dump can't be read; the others can."""


class DumpFile(NamedTuple):
    """A file that looks like a dump."""

    rank: int
    path: Path
    prefix: str


def find_dumps(folder: Path, prefix: str | None = None) -> tuple[list[DumpFile], list[str]]:
    """Return the dumps of one run in a folder, by rank, and notes on the rest.

    Raises:
        FlightError: the folder is missing or can't be listed.

    """
    try:
        names = sorted(path.name for path in folder.iterdir())[:_MOST_FILES]
    except NotADirectoryError:
        raise FlightError(f"{folder}: is a file; give the folder that holds the dumps of all ranks") from None
    except OSError as error:
        raise FlightError(f"{folder}: can't be listed: {error.strerror}") from None
    by_prefix: dict[str, dict[int, DumpFile]] = defaultdict(dict)
    for name in names:
        match = _NAME.match(name)
        if match is None or name.startswith(".") or (prefix is not None and not name.startswith(prefix)):
            continue
        if int(match["rank"]) >= MOST_RANKS:  # no job is that large: all ranks up to it would be missing
            continue
        found = DumpFile(int(match["rank"]), folder / name, match["prefix"])
        known = by_prefix[found.prefix].get(found.rank)
        if known is None or known.path.suffix == ".json":  # the pickle has the stacks, the JSON has not
            by_prefix[found.prefix][found.rank] = found
    return _one_run(by_prefix)


def _one_run(by_prefix: dict[str, dict[int, DumpFile]]) -> tuple[list[DumpFile], list[str]]:
    """Merge prefixes that share no rank (hosts of one run); of those that do, take the largest and newest set."""
    ordered = sorted(by_prefix.items(), key=lambda row: (-len(row[1]), -_newest(row[1])))
    taken: dict[int, DumpFile] = {}
    notes = []
    for name, ranks in ordered:
        twice = taken.keys() & ranks.keys()
        if twice:
            notes.append(
                f"{clean(name)}*: {len(ranks)} more file(s) for ranks that are there already, left out; "
                "give --prefix to choose a run"
            )
        else:
            taken |= ranks
    return [taken[rank] for rank in sorted(taken)], notes


def _newest(ranks: dict[int, DumpFile]) -> float:
    return max((modified_time(found.path) or 0.0 for found in ranks.values()), default=0.0)


def modified_time(path: Path) -> float | None:
    """Return the modification time of a file in seconds since the epoch, if known."""
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def read_dump(path: Path) -> dict[str, Any]:
    """Return one dump as a dictionary; a bare list of entries, as written by torch before 2.3, becomes one.

    Takes as much time and memory as the file asks for: `bounded` sets limits.

    Raises:
        DumpError: it is not a regular file, too large, truncated, hostile, or not a dump.

    """
    data = _bytes(path)
    name = clean(path.name)
    if not data:
        raise DumpError(f"{name}: is empty; the rank ended before it had written its dump")
    try:
        raw = msgspec.json.decode(data) if data.lstrip()[:1] in (b"{", b"[") else _unpickle(data)
    except DumpError as error:
        raise DumpError(f"{name}: {error}") from None
    except MemoryError:
        raise DumpError(f"{name}: asks for more memory than there is; it is damaged or hostile") from None
    except Exception as error:
        raise DumpError(
            f"{name}: can't be read, {len(data)} bytes ({type(error).__name__}); it is truncated or no dump"
        ) from None
    if isinstance(raw, list):
        raw = {"entries": raw}
    if not isinstance(raw, dict) or not (raw.keys() & {"entries", "pg_status", "pg_config", "version"}):
        raise DumpError(f"{name}: holds no flight-recorder entries")
    return raw


def _bytes(path: Path) -> bytes:
    name = clean(path.name)
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a FIFO must not make us wait
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise DumpError(f"{name}: is not a regular file")
            if status.st_size > LARGEST:
                raise DumpError(f"{name}: {status.st_size >> 20} MiB are more than a dump has")
            if not status.st_size:  # a file of /proc claims this too, and may be endless
                return b""
            if _has_holes(handle, status.st_size):
                raise DumpError(f"{name}: has holes: it was not written to its end, or is no dump")
            data = file.read(status.st_size)
    except OSError as error:
        raise DumpError(f"{name}: can't be read: {error.strerror or type(error).__name__}") from None
    if data[:2] == b"\x1f\x8b":
        raise DumpError(f"{name}: is compressed; unpack it with gunzip")
    if data and data[0] not in b'\x80{[ \n\t(]}l"':
        raise DumpError(f"{name}: is neither a pickle nor JSON")
    return data


def _has_holes(handle: int, size: int) -> bool:
    """True if the file system stores less than the file's size: a few bytes may claim any size."""
    try:
        hole = os.lseek(handle, 0, os.SEEK_HOLE)
        os.lseek(handle, 0, os.SEEK_SET)
    except (OSError, AttributeError):  # not every system tells
        return False
    return hole < size


class _Plain(pickle.Unpickler):
    """An unpickler of containers, strings and numbers that refuses any import or call."""

    def find_class(self, module: str, name: str) -> Any:
        raise DumpError(
            f"asks for {clean(module)[:60]}.{clean(name)[:60]}: a dump holds plain data, so this is refused"
        )

    def persistent_load(self, pid: Any) -> Any:
        raise DumpError("refers to objects outside of it: refused")


def _unpickle(data: bytes) -> Any:
    return _Plain(io.BufferedReader(io.BytesIO(data), _CHUNK)).load()
