"""Records which cell a kernel runs in a file that outlives the kernel; a death by signal runs no hook.

The file is mapped into memory, so that noting a cell copies a few bytes instead of writing.
"""

from __future__ import annotations

import mmap
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from dtdebug.privacy.sanitize import clean
from dtdebug.storage import state_dir

NAME = "journal"
"""File in the run's folder; its presence shows that a kernel made the folder."""
_SIZE = 4096
"""Bytes for the running cell, for the names of earlier cells, and for their start times (each)."""
_ROW = 32
FILES = _SIZE // _ROW
"""Maximum number of cells, the last ones, whose files are known."""
_KEPT = 7 * 24 * 3600.0
"""Seconds for which the folder of a dead kernel is kept."""


class LastCell(msgspec.Struct, frozen=True, kw_only=True):
    """Last cell that a kernel ran."""

    running: bool
    """True if it had not ended at the time of the entry."""
    pid: int
    kernel: str
    """Name of the kernel's connection file, which survives a restart of the kernel."""
    number: int
    begun: float
    source: str
    files: dict[str, int] = {}
    """File name (without folder) that the kernel gave to an earlier cell -> the cell's number."""
    begins: dict[int, float] = {}
    """Start times of the last cells, in seconds since the epoch."""

    def cell_at(self, moment: float) -> int | None:
        """Return the cell that ran, or had run last, at that time."""
        earlier = [(begun, number) for number, begun in self.begins.items() if begun <= moment]
        return max(earlier)[1] if earlier else None


class Journal:
    """Journal of this kernel."""

    def __init__(self, folder: Path, kernel: str) -> None:
        """Create the file; raises OSError."""
        handle = os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(handle, 3 * _SIZE)
            self._map = mmap.mmap(handle, 3 * _SIZE)
        finally:
            os.close(handle)
        self._head = f"1\n{os.getpid()}\n{kernel}\n".encode(errors="replace")
        self.begins(0, "")
        self.ends()

    def begins(self, number: int, source: str) -> None:
        """Note the start of a cell."""
        now = time.time()
        data = b"%b%d\n%.3f\n%b\0" % (self._head, number, now, source[:_SIZE].encode(errors="replace"))
        if len(data) > _SIZE:
            data = data[: _SIZE - 1] + b"\0"
        self._map[: len(data)] = data
        self._row(2, number, b"%.3f" % now)

    def note_file(self, number: int, file: str) -> None:
        """Note the file that the kernel gave to the code of a cell."""
        self._row(1, number, name(file).encode(errors="replace"))

    def _row(self, table: int, number: int, what: bytes) -> None:
        row = b"%d %b" % (number, what)
        if len(row) < _ROW:
            at = table * _SIZE + number * _ROW % _SIZE
            self._map[at : at + _ROW] = row.ljust(_ROW, b"\0")

    def ends(self) -> None:
        """Note the end of the cell."""
        self._map[:1] = b"0"


def read_journal(folder: Path) -> LastCell | None:
    """Return the content of the journal in a folder, or None if there is no journal."""
    try:
        data = state_dir.read_start(folder / NAME, 3 * _SIZE)
        text = data[:_SIZE].partition(b"\0")[0].decode(errors="replace")
        running, pid, kernel, number, begun, source = text.split("\n", 5)
        return LastCell(
            running=running == "1",
            pid=int(pid),
            kernel=clean(kernel),
            number=int(number),
            begun=float(begun),
            source=clean(source),
            files=dict(sorted(((file, n) for n, file in _rows(data[_SIZE : 2 * _SIZE])), key=lambda row: row[1])),
            begins={n: float(begun) for n, begun in _rows(data[2 * _SIZE :]) if n},
        )
    except (OSError, ValueError):
        return None


def name(file: str) -> str:
    """Return the last part of a path of any operating system."""
    return file.replace("\\", "/").rpartition("/")[2]


def _rows(table: bytes) -> Iterator[tuple[int, str]]:
    for at in range(0, len(table), _ROW):
        number, _, what = table[at : at + _ROW].rstrip(b"\0").decode(errors="replace").partition(" ")
        if number.isdecimal() and what:
            yield int(number), what


def folders() -> Path:
    """Return the folder in which kernels create theirs; separate from runs, as an open notebook isn't a running job."""
    return state_dir.folder() / "kernels"


def entries() -> Iterator[tuple[Path, LastCell]]:
    """Yield the folders of kernels with the content of their journals, the newest first."""
    found = [(path.parent, entry) for path in folders().glob(f"*/{NAME}") if (entry := read_journal(path.parent))]
    yield from sorted(found, key=lambda row: row[1].begun, reverse=True)


def find_dead_kernel(kernel: str) -> tuple[Path, LastCell] | None:
    """Return the folder and the cell of the kernel of that name if it died while it ran a cell, else None."""
    for path, entry in entries():
        if entry.kernel == kernel and entry.pid != os.getpid() and not lives(entry.pid):
            return (path, entry) if entry.running else None
    return None


def forget_death(kernel: str) -> None:
    """Mark the deaths of kernels of that name as reported: a later kernel has ended cleanly since."""
    for path, entry in entries():
        if entry.kernel == kernel and entry.running and not lives(entry.pid):
            with suppress(OSError), (path / NAME).open("r+b") as file:
                file.write(b"0")


def prune() -> None:
    """Remove the folders of kernels that died long ago."""
    for path, entry in entries():
        if time.time() - entry.begun > _KEPT and not lives(entry.pid):
            shutil.rmtree(path, ignore_errors=True)


def lives(pid: int) -> bool:
    """True if a process has that number."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
