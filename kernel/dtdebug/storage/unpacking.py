"""Unpacks compressed files and archives within the budget of the command."""

from __future__ import annotations

import io
import tarfile
import zlib
from typing import Any

from dtdebug.storage.budget import Allowance

_GZIP = zlib.MAX_WBITS + 16
"""Format that zlib is asked for."""
_CHUNK = 1 << 13
"""Bytes that are unpacked at a time: what a damaged one holds is lost."""
_HEADER = 1 << 20
"""Maximum size in bytes of a member's header in an archive."""
_LARGEST = 1 << 60
"""Bytes that no member has."""
_SPARSE = "a sparse file, which no log or record is"
_OF_HEADERS = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip


class GunzippedStream:
    """Contents of a file of gzip, one or several members.

    The module `gzip` reads the name in a header byte by byte, so that a long one takes minutes; zlib does not.
    """

    def __init__(self, packed: Any) -> None:
        self._packed, self._left = packed, b""
        self._member = zlib.decompressobj(_GZIP)

    def read1(self, size: int) -> bytes:
        """Return up to `size` bytes, none at the end.

        Raises:
            EOFError: the file is cut off.
            zlib.error: it is damaged, or something else.

        """
        while True:
            if self._member.eof:
                self._left = self._member.unused_data.lstrip(b"\0") or self._packed.read(_CHUNK).lstrip(b"\0")
                if not self._left:
                    return b""
                self._member = zlib.decompressobj(_GZIP)
            data = self._left or self._packed.read(_CHUNK)
            if not data:
                raise EOFError("the file is cut off")
            found = self._member.decompress(data, size)
            self._left = self._member.unconsumed_tail
            if found:
                return found

    read = read1


class UnpackedStream(io.RawIOBase):
    """Stream of the contents of a compressed file up to its allowance; beyond it, reading raises OSError."""

    def __init__(self, unpacker: Any, packed: int) -> None:
        super().__init__()
        self._unpacker, self._allowance = unpacker, Allowance(packed)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read as a file does."""
        try:
            data = self._unpacker.read1(len(buffer))
        except EOFError:  # cut: what is complete counts
            return 0
        self._allowance.take(len(data))
        buffer[: len(data)] = data
        return len(data)


class BoundedHeader(tarfile.TarInfo):
    """Header of an archive member; a large one, or the map of a sparse one, is refused: it would be held as a whole."""

    @classmethod
    def frombuf(cls, buf: Any, encoding: str | None, errors: str) -> BoundedHeader:
        """Parse as the base class does; raises ReadError for a large header and for a size that no file has."""
        found = super().frombuf(buf, encoding, errors)  # type: ignore[arg-type]
        if not 0 <= found.size < _LARGEST:
            raise tarfile.ReadError("a size that no file has")
        if found.type in _OF_HEADERS and found.size > _HEADER:
            raise tarfile.ReadError(f"a header of {found.size} bytes")
        if found.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError(_SPARSE)
        return found

    def _apply_pax_info(self, *of: Any) -> None:
        super()._apply_pax_info(*of)  # type: ignore[misc]
        if not 0 <= self.size < _LARGEST:
            raise tarfile.ReadError("a size that no file has")

    def _proc_gnusparse_10(self, *_: Any) -> None:
        raise tarfile.ReadError(_SPARSE)
