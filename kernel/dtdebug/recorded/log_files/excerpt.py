"""Reduces a log of any size to its tail and, before that, the first lines of each shape.

Memory is bounded for any size; each line of the excerpt keeps its number in the log.
"""

from __future__ import annotations

import io
from collections import deque
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol, cast

from dtdebug.recorded.log_files.line_blocks import CHUNK, LineBuffer
from dtdebug.recorded.log_files.line_shapes import LINE, KeptLine, Shapes, cut, runs
from dtdebug.storage import budget, safe_open

WHOLE = 512 << 10
"""Bytes up to which a log is kept unchanged."""
TAIL = 384 << 10
REGIONS = 512 << 10
"""Bytes of the tail of a longer log, and of the unusual lines before it."""
SHARED_TAIL = 4 << 20
"""Bytes kept of the end of a log, in which the last line of each of many printers is searched."""
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
    lines = LogLines()
    read_file(path, lines)
    return lines.excerpt()


def read_file(path: Path, lines: LogLines) -> None:
    """Read a file to its end.

    Raises:
        LogError: a folder, missing, no permission, or not text.

    """
    if path.is_dir():
        raise LogError(f"{path}: is a folder; name one log file in it, or `dtdebug triage` reads all")
    try:
        with safe_open.log(path, pipes=True) as file:
            read_stream(cast("BinaryIO", file), str(path), lines)
    except FileNotFoundError:
        raise LogError(f"{path}: no such file") from None
    except OSError as error:
        raise LogError(f"{path}: can't be read: {error.strerror}") from None


def read_excerpt(stream: BinaryIO, name: str) -> Excerpt:
    """Return the excerpt of a stream, read to its end; raises `LogError` if it is not text."""
    lines = LogLines()
    read_stream(stream, name, lines)
    return lines.excerpt()


def read_stream(stream: BinaryIO, name: str, lines: LogLines) -> None:
    """Read a stream to its end; raises `LogError` if it is not text."""
    pending = bytearray()  # a pipe delivers a few bytes at a time: each is copied once
    spent = budget.current()
    while chunk := stream.read(CHUNK):
        if name != "standard input" and spent.is_late():
            lines.fault = f"{name}: after {lines.size:,} bytes: {budget.LATE}"
            break
        pending += chunk
        if len(pending) >= CHUNK:
            lines.add(bytes(pending), name)
            pending.clear()
    if pending:
        lines.add(bytes(pending), name)
    lines.end()


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


class LineReader(Protocol):
    """Something else that looks at the lines of a log while they are read."""

    def read(self, block: bytes, number: int = 1) -> int:
        """Read a run of whole lines, of which the first has this number; return the number of the next one."""


class LogLines:
    """Lines kept of a log of any size while its bytes are read, once for all that is to be known of it."""

    def __init__(self, most: int = REGIONS, reader: LineReader | None = None) -> None:
        self.most = most
        """Maximum bytes of unusual lines that are kept."""
        self.shapes = Shapes(most=most, choose=telling)
        self.size = 0
        """Bytes that were read."""
        self.fault = ""
        """Reason why the rest was not read."""
        self._runs: deque[tuple[int, bytes]] = deque()
        """(number of the first line, whole lines) at the end of the log."""
        self._kept = 0
        """Total bytes of those runs."""
        self._line = 1
        self._whole = LineBuffer()
        self._reader = reader

    @property
    def tail(self) -> bytes:
        """End of the log, in whole lines except for the first."""
        return b"".join(run for _, run in self._runs)[-SHARED_TAIL:]

    @property
    def text(self) -> bytes | None:
        """The whole log; None for one that is larger than the end that is kept."""
        return self.tail if self.size <= SHARED_TAIL else None

    def add(self, chunk: bytes, name: str) -> None:
        """Add the next bytes.

        Raises:
            LogError: it is not text.

        """
        if not self.size:
            refuse_binary(chunk[:8192], name)
        self.size += len(chunk)
        if run := self._whole.add(chunk):
            self._take(run)

    def end(self) -> None:
        """Finish the log; its last line may lack a line end."""
        if rest := self._whole.end():
            self._take(rest)

    def since(self, begin: int, reader: LineReader | None = None) -> LogLines:
        """Return the lines from one on, of a log that is whole; those above are blank, so that numbers stay."""
        last = LogLines(self.most, reader)
        last.add(b"\n" * (begin - 1) + (self.text or b"").split(b"\n", begin - 1)[-1], "")
        last.end()
        last.fault = self.fault
        return last

    def _take(self, run: bytes) -> None:
        """Add a run of whole lines to the unusual ones and to the end."""
        self.shapes.take(run)
        if self._reader is not None:
            self._reader.read(run, self._line)
        self._runs.append((self._line, run))
        self._kept += len(run)
        while self._kept - len(self._runs[0][1]) >= SHARED_TAIL:
            self._kept -= len(self._runs.popleft()[1])
        self._line += run.count(b"\n")

    def excerpt(self) -> Excerpt:
        """Return the part that an answer is sought in: all of a small log, else its unusual lines and its end."""
        if self.size <= WHOLE:
            return Excerpt(_text(_clip_lines(self.tail)), (), self.size)
        parts: deque[bytes] = deque()
        first, left = 1, TAIL
        for first, run in reversed(self._runs):  # noqa: B007 - the first line of the last one taken
            parts.appendleft(run)
            left -= len(run)
            if left <= 0:
                break
        joined = _clip_lines(b"".join(parts))
        if first == 1 and len(joined) <= WHOLE:  # few lines, but long ones
            return Excerpt(_text(joined), (), self.size)
        skipped = joined.find(b"\n", max(len(joined) - TAIL, 0)) + 1 if len(joined) > TAIL else 0
        last = first + joined.count(b"\n", 0, skipped)
        before = [
            (number, b"\n".join(lines) + b"\n")
            for number, lines in runs(row for row in self.shapes.kept if row.number < last)
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
