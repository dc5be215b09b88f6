"""A log as it comes, in runs of whole lines. A line of any length takes bounded memory: it is cut while it comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from dtdebug.logs.shapes import cut

CHUNK = 1 << 20
"""Bytes that are read at once, and of a line without an end that are held."""


class Whole:
    """Takes bytes, gives whole lines."""

    def __init__(self) -> None:
        self._rest = b""

    def add(self, chunk: bytes) -> bytes:
        """The whole lines that these bytes end; empty where they end none."""
        data = self._rest + chunk if self._rest else chunk
        at = data.rfind(b"\n") + 1
        whole, self._rest = (data, b"") if at == len(data) else (data[:at], data[at:])
        if len(self._rest) > CHUNK:
            self._rest = cut(self._rest)
        return whole

    def end(self) -> bytes:
        """What is left: a last line without an end."""
        rest, self._rest = self._rest, b""
        return rest


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The runs of whole lines of a file, to its end."""
    whole = Whole()
    while chunk := file.read(CHUNK):
        if run := whole.add(chunk):
            yield run
    if rest := whole.end():
        yield rest
