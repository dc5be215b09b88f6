"""Asks ipyparallel's engines what their part of a failed `%%px` cell raised, with the values that they still have.

An engine keeps the exception of its last cell as any kernel does. Each counts its own cells and does not see the line
of the magic, so places get the names of the notebook, by the text of the cell.
"""

from __future__ import annotations

import linecache
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from dtdebug.account.sources import is_cell
from dtdebug.live.probe.deadline_threads import begin, until
from dtdebug.process import user_objects
from dtdebug_taxonomy.model.account import Account

MAGIC = "%%px"
_SECONDS = 4.0
"""Maximum seconds for the answers of engines, which may have to import what reads their values."""
_ENGINES = 8
"""Maximum number of engines that are asked: they mostly fail alike."""
_CELLS, _TEXT = 64, 20_000
"""Maximum number of cells of an engine whose text is told, and of characters of each."""


class Told(msgspec.Struct, frozen=True):
    """Account of the exception of an engine's last cell, with the texts of its cells."""

    account: Account
    cells: dict[str, str]
    """File of each of its cells -> text."""


class Body(NamedTuple):
    """Cell of the notebook whose lines below a magic ran on the engines."""

    name: str
    above: int
    """Number of lines above those that ran."""
    text: str


def last_failure() -> bytes:
    """Return what this engine's last cell raised, as JSON; empty if none has failed. Runs on an engine."""
    from dtdebug.account.capture import capture

    value = sys.__dict__.get("last_value")
    if not isinstance(value, BaseException):
        return b""
    cells = {
        file: "".join(entry[2])[:_TEXT]
        for file, entry in list(linecache.cache.items())[-_CELLS:]
        if len(entry) == 4 and is_cell(file)
    }
    return msgspec.json.encode(Told(capture(value, seconds=0.5), cells))


def engine_accounts(
    names: Mapping[str, Any], exception: BaseException | None, bodies: Sequence[Body]
) -> tuple[Account, ...]:
    """Return the accounts of the engines that raised, by their ranks; () without a client."""
    engines = _failed_engines(exception)[:_ENGINES]
    kind = getattr(sys.modules.get("ipyparallel"), "Client", None)
    clients = {id(v): v for v in list(names.values()) if isinstance(kind, type) and isinstance(v, kind)}
    if not engines or len(clients) != 1:
        return ()
    client: Any = next(iter(clients.values()))
    deadline = time.monotonic() + _SECONDS
    asked = [client[engine].apply_async(last_failure) for engine in engines]
    answers = until(begin([partial(each.get, timeout=_SECONDS) for each in asked], deadline), deadline)
    told = [(engine, msgspec.json.decode(raw, type=Told)) for engine, raw in zip(engines, answers, strict=True) if raw]
    named = [_with_rank(_named(each, bodies), engine) for engine, each in told]
    return tuple(sorted(named, key=lambda account: account.rank or 0))


def _with_rank(account: Account, engine: int) -> Account:
    """Return the account with its engine's number where there is no group yet: printed errors name that, too."""
    return account if account.rank is not None else msgspec.structs.replace(account, rank=engine)


def bodies_of(cells: Sequence[str], names: Sequence[str]) -> tuple[Body, ...]:
    """Return what ran on the engines of the notebook's cells, the newest first; `names` are those of the cells."""
    found = []
    for text, name in zip(cells, names, strict=True):
        begin = text.find(MAGIC) if text.lstrip().startswith(MAGIC) else -1
        head, line, body = text[begin:].partition("\n")
        if begin >= 0 and line and head:
            found.append(Body(name, text[:begin].count("\n") + 1, body))
    return tuple(reversed(found))


def body_with(bodies: Sequence[Body], line: int, code: str) -> Body | None:
    """Return the newest cell that has this line of code there."""
    return next((b for b in bodies if code.strip() and code.strip() == _line(b.text, line)), None)


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def _failed_engines(exception: BaseException | None) -> list[int]:
    """Return the engines that a client's exception names."""
    whole = user_objects.attribute(exception, "original_error") or exception
    rows = user_objects.attribute(whole, "elist")
    found = [row[3].get("engine_id") for row in rows if len(row) > 3 and isinstance(row[3], dict)] if rows else []
    return [each for each in found if isinstance(each, int)]


def _named(told: Told, bodies: Sequence[Body]) -> Account:
    """Return an engine's account with the names and lines of the notebook's cells."""
    by_text = {b.text.strip(): b for b in reversed(bodies)}
    homes = {file: by_text[text.strip()] for file, text in told.cells.items() if text.strip() in by_text}
    return msgspec.convert(_each(msgspec.to_builtins(told.account), homes), Account)


def _each(value: Any, homes: Mapping[str, Body]) -> Any:
    if isinstance(value, list | tuple):
        return [_each(each, homes) for each in value]
    if not isinstance(value, dict):
        return value
    moved = {key: _each(each, homes) for key, each in value.items()}
    home = homes.get(moved.get("file", ""))
    return moved if home is None else {**moved, "file": home.name, "line": moved.get("line", 1) + home.above}
