"""Reads a log in runs of whole lines. Memory is bounded for lines of any length: they are cut while they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from dtdebug.recorded.log_files.line_shapes import cut

CHUNK = 1 << 20
"""Bytes read at once, and bytes held of a line without an end."""


class LineBuffer:
    """Buffer that takes bytes and returns whole lines."""

    def __init__(self) -> None:
        self._rest = b""

    def add(self, chunk: bytes) -> bytes:
        """Return the whole lines that these bytes complete; empty if there are none."""
        data = self._rest + chunk if self._rest else chunk
        at = data.rfind(b"\n") + 1
        whole, self._rest = (data, b"") if at == len(data) else (data[:at], data[at:])
        if len(self._rest) > CHUNK:
            self._rest = cut(self._rest)
        return whole

    def end(self) -> bytes:
        """Return the rest: a last line without an end."""
        rest, self._rest = self._rest, b""
        return rest


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield the runs of whole lines of a file, to its end."""
    whole = LineBuffer()
    while chunk := file.read(CHUNK):
        if run := whole.add(chunk):
            yield run
    if rest := whole.end():
        yield rest
