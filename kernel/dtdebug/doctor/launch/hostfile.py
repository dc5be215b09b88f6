"""Parses host lists: hostfiles of DeepSpeed, MPI and Horovod, `-H a:4,b:4`, and Slurm's `node[01-04,7]`."""

from __future__ import annotations

import re
from pathlib import Path

from dtdebug.errors import UsageError
from dtdebug.storage import safe_open

_SIZE = 1 << 20
_MOST = 4096
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:%-]{0,252}\Z")
_SLOTS = re.compile(r"(?:slots|max[_-]slots|procs)\s{0,3}=\s{0,3}(\d{1,6})\Z")
_PIECE = re.compile(r"([A-Za-z0-9_.-]{1,200})\[([0-9,-]{1,2000})\]([A-Za-z0-9_.-]{0,200})\Z|([A-Za-z0-9_.-]{1,253})\Z")


def read_hostfile(path: Path) -> list[tuple[str, int | None]]:
    """Return (host, slots) of each line.

    Raises:
        UsageError: the file or one of its lines can't be read; names the line.

    """
    try:
        text = safe_open.read_text(path, _SIZE)
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror}") from None
    found: list[tuple[str, int | None]] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(found) >= _MOST:
            raise UsageError(f"{path}:{number}: more than {_MOST} hosts")
        found.append(_line(words, f"{path}:{number}", {name for name, _ in found}))
    if not found:
        raise UsageError(f"{path}: names no host")
    return found


def _line(words: list[str], place: str, known: set[str]) -> tuple[str, int | None]:
    name, colon, count = words[0].partition(":")
    if words[0].count(":") > 1:  # an IPv6 address
        name, colon, count = words[0], "", ""
    if not _NAME.match(name):
        raise UsageError(f"{place}: {name[:60]!r} is not a host name")
    if name in known:
        raise UsageError(f"{place}: {name} is listed twice")
    slots = int(count) if colon and count.isdecimal() and len(count) < 7 else None
    if colon and slots is None:
        raise UsageError(f"{place}: {words[0][:60]!r}: the colon must be followed by a number of slots")
    for word in words[1:]:
        given = _SLOTS.match(word)
        if given is None:
            raise UsageError(f"{place}: {word[:60]!r}: expected slots=N")
        slots = int(given[1])
    return name, slots


def inline(text: str) -> list[tuple[str, int | None]]:
    """Parse `a:4,b:4` into (host, slots) pairs; raises UsageError."""
    pieces = [piece.strip() for piece in text[:100_000].split(",") if piece.strip()]
    known: list[tuple[str, int | None]] = []
    for piece in pieces[:_MOST]:
        known.append(_line([piece], "list of hosts", {name for name, _ in known}))
    return known


def apply_include(text: str, rows: list[tuple[str, int | None]]) -> list[tuple[str, int | None]]:
    """Apply DeepSpeed's `--include host:0,2@other`: the named hosts with their number of named slots."""
    slots = dict(rows)
    found: list[tuple[str, int | None]] = []
    for piece in text[:10_000].split("@"):
        name, colon, numbers = piece.partition(":")
        found.append((name, len(numbers.split(",")) if colon else slots.get(name)))
    return found


def slurm(text: str) -> tuple[str, ...]:
    """Expand SLURM_JOB_NODELIST; empty if its form is not recognised."""
    found: list[str] = []
    for piece in _split(text[:10_000]):
        m = _PIECE.match(piece)
        if m is None:
            return ()
        if m[4]:
            found.append(m[4])
            continue
        for part in m[2].split(","):
            first, dash, last = part.partition("-")
            if not first.isdecimal() or (dash and not last.isdecimal()) or len(first) > 9 or len(last) > 9:
                return ()
            numbers = range(int(first), int(last or first) + 1)
            if len(numbers) + len(found) > _MOST:
                return ()
            found += [f"{m[1]}{n:0{len(first)}d}{m[3]}" for n in numbers]
    return tuple(found)


def _split(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    pieces, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        if letter in "[]":
            depth += 1 if letter == "[" else -1
        elif letter == "," and depth == 0:
            pieces.append(text[start:index])
            start = index + 1
    return [p for p in (*pieces, text[start:]) if p]
