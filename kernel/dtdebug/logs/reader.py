"""Reduces a log of any size to what is worth reading: head, tail and the regions with telltale words.

Memory is bounded whatever the size; each line of the excerpt keeps its number in the log.
"""

from __future__ import annotations

import io
from collections import deque
from pathlib import Path
from typing import BinaryIO, NamedTuple

CHUNK = 1 << 20
HEAD = 128 << 10
TAIL = 384 << 10
REGIONS = 256 << 10
"""Bytes of head, tail and telltale regions that are kept."""
_AROUND = 2
"""Bytes are cut to whole lines; this many lines are kept before and after a telltale line."""
_LINE = 2_000
"""Bytes that are kept of one line."""
_BINARY = 0.05

# Without the first letter, so that one search finds both spellings of the case.
_TELLTALES = (
    b"rror", b"raceback", b"xception", b"NCCL WARN", b"atal", b"FATAL", b"ailed", b"FAILED", b"illed", b"KILLED",
    b"ERROR", b"egmentation", b"bort", b"imeout", b"imed out", b"efused", b"stall", b"Signal", b"Missing ranks",
    b"of memory", b"OVERFLOW",
)  # fmt: skip


class LogError(ValueError):
    """A log can't be read: the text says which, why, and what to do."""


class Excerpt(NamedTuple):
    """The part of a log that was kept."""

    text: str
    first_lines: tuple[tuple[int, int], ...]
    """(line of the excerpt, line of the log) where each kept part begins; empty if all was kept."""
    size: int
    """Bytes of the whole log."""


def read_path(path: Path) -> Excerpt:
    """The excerpt of a file.

    Raises:
        LogError: a folder, missing, no permission, or not text.

    """
    if path.is_dir():
        raise LogError(f"{path}: is a folder; name one log file in it")
    try:
        with path.open("rb") as file:
            return read(file, str(path))
    except FileNotFoundError:
        raise LogError(f"{path}: no such file") from None
    except OSError as error:
        raise LogError(f"{path}: can't be read: {error.strerror}") from None


def read(stream: BinaryIO, name: str) -> Excerpt:
    """The excerpt of a stream, read to its end.

    Raises:
        LogError: it is not text.

    """
    parts = _Parts()
    pending = bytearray()  # a pipe gives a few bytes at a time: each is copied once
    while chunk := stream.read(CHUNK):
        pending += chunk
        if len(pending) >= CHUNK:
            parts.add(bytes(pending), name)
            pending.clear()
    if pending:
        parts.add(bytes(pending), name)
    return parts.excerpt()


def _refuse_binary(begin: bytes, name: str) -> None:
    zeros = begin.count(0)
    if zeros > _BINARY * len(begin):
        utf16 = begin[:2] in (b"\xff\xfe", b"\xfe\xff")
        advice = "convert it with `iconv -f UTF-16 -t UTF-8`" if utf16 else "give the text that the program printed"
        raise LogError(f"{name}: is not text ({zeros} zero bytes in the first {len(begin)}); {advice}")


class _Parts:
    """Head, regions and tail of a stream, with the line numbers where they begin."""

    def __init__(self) -> None:
        self.size = 0
        self._head = bytearray()
        self._regions: list[tuple[int, bytes]] = []
        self._kept = 0
        self._seen: set[bytes] = set()
        self._tail: deque[tuple[int, bytes]] = deque()
        self._tail_size = 0
        self._line = 1
        self._rest = b""

    def add(self, chunk: bytes, name: str) -> None:
        if self.size == 0:
            _refuse_binary(chunk[:8192], name)
        self.size += len(chunk)
        if len(self._head) < HEAD + TAIL:
            self._head += chunk[: HEAD + TAIL + CHUNK]
        data = self._rest + chunk
        cut = data.rfind(b"\n") + 1
        whole, self._rest = data[:cut], data[cut:]
        if len(self._rest) > CHUNK:
            self._rest = _clipped(self._rest)
        if whole:
            self._take(whole)

    def _take(self, whole: bytes) -> None:
        """A run of whole lines: its telltale regions, and it may be the tail."""
        if self.size > HEAD + TAIL:  # less is kept whole
            self._search(whole)
        self._tail.append((self._line, whole))
        self._tail_size += len(whole)
        while len(self._tail) > 1 and self._tail_size - len(self._tail[0][1]) >= TAIL:
            self._tail_size -= len(self._tail.popleft()[1])
        self._line += whole.count(b"\n")

    def _search(self, whole: bytes) -> None:
        for word in _TELLTALES:
            at = whole.find(word)
            tries = 0
            while at >= 0 and tries < 64 and self._kept < REGIONS:
                at = self._keep(whole, at)
                at = whole.find(word, at)
                tries += 1

    def _keep(self, whole: bytes, at: int) -> int:
        """Keeps the lines around an offset unless their like is kept; the offset after them."""
        end = whole.find(b"\n", at) + 1 or len(whole)
        begin = whole.rfind(b"\n", 0, at) + 1
        kind = whole[begin : min(end, begin + 200)].translate(None, b"0123456789")
        if kind in self._seen:
            return end
        self._seen.add(kind)
        for _ in range(_AROUND):
            begin = whole.rfind(b"\n", 0, max(begin - 1, 0)) + 1 if begin else 0
            end = whole.find(b"\n", end) + 1 or len(whole)
        part = _clipped(whole[begin:end])
        self._regions.append((self._line + whole.count(b"\n", 0, begin), part))
        self._kept += len(part)
        return end

    def excerpt(self) -> Excerpt:
        if self._rest:
            self._take(self._rest)
        if self.size <= HEAD + TAIL:
            return Excerpt(_text(_clipped(bytes(self._head))), (), self.size)
        first = self._tail[0][0]
        joined = _clipped(b"".join(part for _, part in self._tail))
        if first == 1 and len(joined) <= HEAD + TAIL:  # few lines, but long ones
            return Excerpt(_text(joined), (), self.size)
        head = bytes(self._head[:HEAD])
        head = head[: head.rfind(b"\n") + 1] or head[:_LINE] + b"\n"
        skipped = joined.find(b"\n", max(len(joined) - TAIL, 0)) + 1 if len(joined) > TAIL else 0
        last = first + joined.count(b"\n", 0, skipped)
        tail = joined[skipped:]
        headlines = head.count(b"\n")
        middle = sorted((n, p) for n, p in self._regions if headlines < n < last)
        return _assemble([(1, head), *middle, (last, tail)], self.size)


def _assemble(parts: list[tuple[int, bytes]], size: int) -> Excerpt:
    text: list[str] = []
    first_lines, line = [], 1
    for number, part in parts:
        words = _text(_clipped(part))
        if not words.endswith("\n"):
            words += "\n"
        first_lines.append((line, number))
        line += words.count("\n")
        text.append(words)
    return Excerpt("".join(text), tuple(first_lines), size)


def _clipped(part: bytes) -> bytes:
    """Lines cut to `_LINE` bytes; a progress bar's line keeps its end, which is what a terminal shows."""
    if len(part) <= _LINE:
        return part
    kept = io.BytesIO()
    kept.writelines(map(_cut, io.BytesIO(part)))  # line by line: a list of all lines is many times larger
    return kept.getvalue()


def _cut(line: bytes) -> bytes:
    if len(line) <= _LINE:
        return line
    words = line.removesuffix(b"\n")
    end = line[len(words) :]
    return (words[-_LINE:] if b"\r" in words else words[:_LINE]) + end


def _text(part: bytes) -> str:
    return part.decode("utf-8", errors="replace")
