"""Reduces a log of any size to its tail and, before that, the first lines of each shape.

Memory is bounded for any size; each line of the excerpt keeps its number in the log.
"""

from __future__ import annotations

import io
from collections import deque
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from dtdebug.recorded.log_files.line_blocks import CHUNK, LineBuffer
from dtdebug.recorded.log_files.line_shapes import LINE, KeptLine, Shapes, cut, runs
from dtdebug.storage import safe_open

WHOLE = 512 << 10
"""Bytes up to which a log is kept unchanged."""
TAIL = 384 << 10
REGIONS = 512 << 10
"""Bytes of the tail of a longer log, and of the unusual lines before it."""
_BINARY = 0.05
"""Share of bytes that no text has, from which data is not text."""
_NEVER_PRINTED = bytes({*range(1, 7), *range(14, 27), *range(28, 32)})
"""Control characters that neither terminals nor loggers use; NUL is told apart, since UTF-16 is full of it."""
_AROUND, _BLOCK = 2, 48
"""Lines kept around one known to the knowledge, and lines of a traceback, if too many lines are unusual."""


class LogError(ValueError):
    """Log that can't be read; the text names it, the reason, and what to do."""


class Excerpt(NamedTuple):
    """Part of a log that was kept."""

    text: str
    first_lines: tuple[tuple[int, int], ...]
    """(line of the excerpt, line of the log) at the start of each kept part; empty if all was kept."""
    size: int
    """Size of the whole log in bytes."""


def read_path(path: Path) -> Excerpt:
    """Return the excerpt of a file.

    Raises:
        LogError: a folder, missing, no permission, or not text.

    """
    if path.is_dir():
        raise LogError(f"{path}: is a folder; name one log file in it, or `dtdebug triage` reads all")
    try:
        with safe_open.log(path, pipes=True) as file:
            return read_excerpt(cast("BinaryIO", file), str(path))
    except FileNotFoundError:
        raise LogError(f"{path}: no such file") from None
    except OSError as error:
        raise LogError(f"{path}: can't be read: {error.strerror}") from None


def read_excerpt(stream: BinaryIO, name: str) -> Excerpt:
    """Return the excerpt of a stream, read to its end.

    Raises:
        LogError: it is not text.

    """
    parts = _Parts()
    pending = bytearray()  # a pipe delivers a few bytes at a time: each is copied once
    while chunk := stream.read(CHUNK):
        pending += chunk
        if len(pending) >= CHUNK:
            parts.add(bytes(pending), name)
            pending.clear()
    if pending:
        parts.add(bytes(pending), name)
    return parts.excerpt()


def refuse_binary(begin: bytes, name: str) -> None:
    """Raise `LogError` for data that is not text."""
    zeros = begin.count(0)
    if zeros > _BINARY * len(begin):
        utf16 = begin[:2] in (b"\xff\xfe", b"\xfe\xff")
        advice = "convert it with `iconv -f UTF-16 -t UTF-8`" if utf16 else "give the text that the program printed"
        raise LogError(f"{name}: is not text ({zeros} zero bytes in the first {len(begin)}); {advice}")
    odd = len(begin) - len(begin.translate(None, _NEVER_PRINTED))
    if odd > _BINARY * len(begin):
        said = f"{odd} control characters in the first {len(begin)} bytes"
        raise LogError(f"{name}: is not text ({said}); give the text that the program printed")


def telling(rows: list[KeptLine]) -> list[KeptLine]:
    """Select from too many lines those known to the knowledge, those around them, and tracebacks."""
    from dtdebug_taxonomy.knowledge.loader import load
    from dtdebug_taxonomy.text.matchers import lexicon

    text = "\n".join(row.raw.decode("utf-8", "replace").replace("\n", " ") for row in rows)
    wanted: set[int] = set()
    for hit in lexicon(load()).hits(text):
        wanted.update(range(hit.line - 1 - _AROUND, hit.line + _AROUND))
    block = 0
    for i, row in enumerate(rows):
        block = _BLOCK if b"Traceback (most recent call last)" in row.raw else block - 1
        if block > 0:
            wanted.add(i)
    return [rows[i] for i in sorted(wanted) if 0 <= i < len(rows)]


class _Parts:
    """Unusual lines and tail of a stream, with the line numbers where they begin."""

    def __init__(self) -> None:
        self.size = 0
        self._whole = bytearray()
        self._shapes = Shapes(most=REGIONS, choose=telling)
        self._tail: deque[tuple[int, bytes]] = deque()
        self._tail_size = 0
        self._line = 1
        self._lines = LineBuffer()

    def add(self, chunk: bytes, name: str) -> None:
        if self.size == 0:
            refuse_binary(chunk[:8192], name)
        self.size += len(chunk)
        if self.size <= WHOLE:
            self._whole += chunk
        if run := self._lines.add(chunk):
            self._take(run)

    def _take(self, whole: bytes) -> None:
        """Add a run of whole lines to the unusual ones and to the tail."""
        self._shapes.take(whole)
        self._tail.append((self._line, whole))
        self._tail_size += len(whole)
        while len(self._tail) > 1 and self._tail_size - len(self._tail[0][1]) >= TAIL:
            self._tail_size -= len(self._tail.popleft()[1])
        self._line += whole.count(b"\n")

    def excerpt(self) -> Excerpt:
        if rest := self._lines.end():
            self._take(rest)
        if self.size <= WHOLE:
            return Excerpt(_text(_clip_lines(bytes(self._whole))), (), self.size)
        first = self._tail[0][0]
        joined = _clip_lines(b"".join(part for _, part in self._tail))
        if first == 1 and len(joined) <= WHOLE:  # few lines, but long ones
            return Excerpt(_text(joined), (), self.size)
        skipped = joined.find(b"\n", max(len(joined) - TAIL, 0)) + 1 if len(joined) > TAIL else 0
        last = first + joined.count(b"\n", 0, skipped)
        before = [
            (number, b"\n".join(lines) + b"\n")
            for number, lines in runs(row for row in self._shapes.kept if row.number < last)
        ]
        return _assemble([*before, (last, joined[skipped:])], self.size)


def _assemble(parts: list[tuple[int, bytes]], size: int) -> Excerpt:
    text: list[str] = []
    first_lines, line = [], 1
    for number, part in parts:
        words = _text(_clip_lines(part))
        if not words.endswith("\n"):
            words += "\n"
        first_lines.append((line, number))
        line += words.count("\n")
        text.append(words)
    return Excerpt("".join(text), tuple(first_lines), size)


def _clip_lines(part: bytes) -> bytes:
    """Cut lines to `LINE` bytes; of a progress bar keep the end, which is what a terminal shows."""
    if len(part) <= LINE:
        return part
    kept = io.BytesIO()
    kept.writelines(map(_cut, io.BytesIO(part)))  # line by line: a list of all lines is many times larger
    return kept.getvalue()


def _cut(line: bytes) -> bytes:
    words = line.removesuffix(b"\n")
    return cut(words) + line[len(words) :]


def _text(part: bytes) -> str:
    return part.decode("utf-8", errors="replace")
