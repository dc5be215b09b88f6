"""All dumps of a folder as programs, on several processors where there are many."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from dtdebug.flight import loader
from dtdebug.flight.loader import DumpError, Found
from dtdebug.flight.program import Program
from dtdebug.flight.told import program

_MANY = 48
"""Dumps from which a second process pays."""


def programs(folder: Path, prefix: str | None = None) -> tuple[dict[int, Program], set[int], list[str]]:
    """The programs by rank, the ranks whose dump can't be read, and what is to say. Raises FlightError."""
    found, notes = loader.find(folder, prefix)
    result: dict[int, Program] = {}
    unread = set()
    for item, made in zip(found, _all(found), strict=True):
        if isinstance(made, str):
            notes.append(made)
            unread.add(item)
        else:
            result[item.rank] = made
            if made.bad:
                notes.append(f"{item.path.name}: {made.bad} entries make no sense and were left out")
    prefixes = {item.prefix for item in found if item.rank in result}
    return result, {item.rank for item in unread if item.prefix in prefixes}, notes


def _all(found: list[Found]) -> list[Program | str]:
    workers = min(os.cpu_count() or 1, len(found) // _MANY + 1)
    if workers < 2 or threading.active_count() > 1:  # to fork a program with threads, as a kernel is, is not safe
        return [_one(f) for f in found]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(_one, found, chunksize=8))


def _one(found: Found) -> Program | str:
    try:
        made = program(loader.read(found.path), found.rank)
    except DumpError as error:
        return str(error)
    made.taken = loader.modified(found.path)
    return made
