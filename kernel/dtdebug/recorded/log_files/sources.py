"""Finds and opens logs: in files, folders, patterns, compressed files, archives and standard input."""

from __future__ import annotations

import bz2
import io
import lzma
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, cast

from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.log_files import object_store
from dtdebug.recorded.log_files.excerpt import LogError
from dtdebug.storage import budget, safe_open
from dtdebug.storage.unpacking import BoundedHeader, GunzippedStream

MOST_FILES = 1 << 18
"""Maximum number of files read for one job."""
_MEMBERS = 20_000
"""Maximum number of members read of one archive."""
_DEPTH = 12
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst")
MOST_STARS = 3
"""Maximum number of `**` in a pattern: each one multiplies the folders that are searched."""
_NOT_LOGS = (
    ".pt", ".pth", ".bin", ".safetensors", ".npy", ".npz", ".pkl", ".pickle", ".png", ".jpg", ".so", ".pyc", ".py",
    ".ckpt", ".parquet", ".arrow", ".zip", ".whl", ".db", ".sqlite", ".tfevents", ".ipynb", ".html", ".svg", ".pdf",
    ".md", ".rst", ".toml", ".yaml", ".yml", ".cfg", ".ini", ".lock", ".c", ".h", ".cpp", ".cu", ".js", ".ts", ".css",
)  # fmt: skip
"""Extensions of files in a job's folder that are not logs; a file named explicitly is always read."""
_NOT_OF_JOBS = frozenset({"__pycache__", "node_modules", "site-packages"})


class LogSource(NamedTuple):
    """Location of one log."""

    name: str
    """Displayed name: a path, with the member of an archive after a colon."""
    path: str
    """File to open; `-` is standard input."""
    member: str = ""
    size: int = 0
    """Size of the file in bytes, compressed if it is."""
    time: float = 0.0
    """Time of its last change, in seconds since the epoch."""
    offset: int = 0
    """Offset of the member in its archive."""


def find_logs(paths: list[str]) -> tuple[list[LogSource], list[str]]:
    """Return the logs that paths, folders and patterns name, sorted, each once, and notes on unreadable ones.

    Raises:
        LogError: there is no log at all.

    """
    found: dict[tuple[str, str], LogSource] = {}
    unread: list[str] = []
    for given in paths:
        if given == "-":
            found["-", ""] = LogSource("standard input", "-")
            continue
        if object_store.is_address(given):
            objects = [LogSource(name, name, "", size, time) for name, size, time in object_store.list_objects(given)]
            found.update({(s.path, ""): s for s in objects if len(objects) == 1 or _may_hold_a_log(s.path)})
            continue
        names = [given] if os.path.lexists(given) else _matching(given)
        if not names:
            raise LogError(f"{given}: {_missing(given)}")
        for name in names:
            files = _below(name, unread) if Path(name).is_dir() else [name]
            for file in files:
                try:
                    for source in _sources(file):
                        found[source.path, source.member] = source
                except (OSError, EOFError, ValueError, tarfile.TarError, RecursionError) as error:
                    unread.append(
                        _printable_name(str(error) if isinstance(error, LogError) else f"{file}: {_why(error)}")
                    )
                if len(found) > MOST_FILES:
                    unread.append(f"more than {MOST_FILES} files")
                    return list(found.values()), unread
    if not found:
        raise LogError(unread[0] if unread else f"{paths[0]}: holds no log")
    return sorted(found.values(), key=lambda s: _natural(s.name)), unread


def _may_hold_a_log(name: str) -> bool:
    return not name.lower().endswith(_NOT_LOGS)


def _printable_name(name: str) -> str:
    """Return a name that is safe for a terminal and can be encoded."""
    return name if name.isprintable() else " ".join(clean(name).split())


def _missing(given: str) -> str:
    try:
        os.lstat(given)
    except PermissionError as error:
        return _why(error)
    except (OSError, ValueError):
        pass
    return "no such file"


def _matching(pattern: str) -> list[str]:
    import glob

    if pattern.count("**") > MOST_STARS:
        raise LogError(f"{pattern[:80]}: has more than {MOST_STARS} times `**`; one finds files at any depth")
    found = glob.iglob(pattern, recursive=True)  # noqa: PTH207 - a pattern may begin at the root
    return sorted(islice(found, MOST_FILES + 1))


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _natural(name: str) -> list[tuple[int, str]]:
    import re

    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d{1,18})", name)]


def _below(folder: str, unread: list[str]) -> Iterator[str]:
    """Yield the files of a folder, recursively and without following links; note folders that can't be read."""
    base = folder.rstrip("/").count("/")
    for root, folders, files in os.walk(
        folder, onerror=lambda e: unread.append(_printable_name(f"{e.filename}: {_why(e)}"))
    ):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOT_OF_JOBS)
        if root.count("/") - base > _DEPTH:
            folders.clear()
        for name in sorted(files):
            if not name.startswith(".") and _may_hold_a_log(name):
                yield f"{root}/{name}"


def _sources(file: str) -> Iterator[LogSource]:
    there = Path(file).stat()
    if not Path(file).is_file():  # it would never end
        raise OSError(0, "is a pipe, a device or a socket")
    if not file.endswith(_ARCHIVES):
        yield LogSource(_printable_name(file), file, "", there.st_size, there.st_mtime)
        return
    plain = file if file.endswith(".tar") else _unpack_archive(file)
    with safe_open.log(plain) as tar, tarfile.open(fileobj=tar, mode="r:", tarinfo=BoundedHeader) as archive:
        for seen, member in enumerate(archive):
            if seen >= _MEMBERS:
                raise OSError(0, f"holds more than {_MEMBERS} members; the rest was not read")
            if member.isreg() and not member.issparse() and _may_hold_a_log(member.name):
                name, time = _printable_name(f"{file}:{member.name}"), float(member.mtime)
                yield LogSource(name, plain, member.name, member.size, time, member.offset_data)


_unpacked_here: dict[str, tuple[tuple[int, int], IO[bytes]]] = {}
"""Archive -> its size and time of change, and the file with its contents."""


def _unpack_archive(file: str) -> str:
    """Unpack an archive once into an unnamed temporary file in which members can be located; return its path."""
    there = Path(file).stat()
    stamp, target = _unpacked_here.get(file, (None, None))
    if target is not None:
        if stamp == (there.st_size, there.st_mtime_ns):
            return f"/proc/{os.getpid()}/fd/{target.fileno()}"
        target.close()
    target = tempfile.TemporaryFile(prefix="dtdebug-")  # noqa: SIM115 - read until we end
    with open_log(LogSource(file, file, "", there.st_size)) as packed:
        while block := packed.read(1 << 20):
            target.write(block)
            if shutil.disk_usage(tempfile.gettempdir()).free < 1 << 30:
                raise OSError(0, "less than 1 GB is free for unpacking it")
    target.flush()
    _unpacked_here[file] = (there.st_size, there.st_mtime_ns), target
    return f"/proc/{os.getpid()}/fd/{target.fileno()}"


@contextmanager
def open_log(source: LogSource) -> Iterator[BinaryIO]:
    """Open a log, decompressed as it is read.

    Raises:
        LogError: its compression needs a package that is not installed.
        OSError: it can't be read, is damaged, or unpacks to far more than a log would.

    """
    if source.path == "-":
        yield safe_open.standard_input()
        return
    if object_store.is_address(source.path):
        with object_store.open_object(source.path) as far:
            plain = _plain(far, source.path.lower(), source.name)
            yield plain if plain is far else cast("BinaryIO", _BoundedReader(plain, source.size))
        return
    with safe_open.log(source.path) as file:
        raw = _Member(file, source) if source.member else file
        plain = _plain(raw, (source.member or source.path).lower(), source.name)

        def reopen() -> BinaryIO:
            file.seek(0)
            return cast("BinaryIO", GunzippedStream(_Member(file, source) if source.member else file))

        patient = reopen if type(plain).__name__ == "IGzipFile" else None
        yield plain if plain is raw else cast("BinaryIO", _BoundedReader(plain, source.size, patient))


class _BoundedReader:
    """Reader of a compressed file: every failure becomes an OSError, and decompression bombs are stopped."""

    def __init__(self, plain: BinaryIO, packed: int, again: Callable[[], BinaryIO] | None = None) -> None:
        self._given = 0
        self._again = again
        """Reopens the file with a slower decoder that returns all data before a fault; the fast one may lose 1 MB."""
        self._some = getattr(plain, "read1", plain.read)
        self._allowance = budget.Allowance(packed, budget.LOG_FOLD)
        self._broken: OSError | None = None

    def read(self, size: int) -> bytes:
        """Read like a file; if the rest is damaged, return everything before it first."""
        parts: list[bytes] = []
        while size > 0 and self._broken is None and (data := self._unpack(size)):
            parts.append(data)
            size -= len(data)
        if self._broken is not None and not parts:
            raise self._broken
        return b"".join(parts)

    def _unpack(self, size: int) -> bytes:
        try:
            data: bytes = self._some(size)
        except OSError as error:
            self._broken = error
            return b""
        except Exception as error:  # each compression format has its own exceptions
            if self._again is not None:
                return self._slowly(size)
            self._broken = OSError(0, f"is damaged or cut off ({error})")
            return b""
        self._given += len(data)
        try:
            self._allowance.take(len(data))
        except OSError as error:
            self._broken = error
        return data

    def _slowly(self, size: int) -> bytes:
        slow, self._again, skip = cast("Any", self._again)(), None, self._given
        while skip > 0:
            skip -= len(slow.read1(min(skip, 1 << 20)))
        self._some = slow.read1
        return self._unpack(size)


class _Member(io.RawIOBase):
    """Member of an archive."""

    def __init__(self, file: io.FileIO, source: LogSource) -> None:
        super().__init__()
        self._file, self._left = file, source.size
        file.seek(source.offset)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(memoryview(buffer)[: self._left]) or 0
        self._left -= count
        return count


def _plain(raw: io.RawIOBase, name: str, shown: str) -> BinaryIO:
    """Return the decompressed file, according to the extension of its name."""
    if name.endswith((".zst", ".zstd")):
        return _zstd(raw, shown)
    ways: dict[str, Any] = {
        ".gz": _gunzip, ".tgz": _gunzip, ".xz": lzma.open, ".lzma": lzma.open, ".bz2": bz2.open
    }  # fmt: skip
    way = next((w for end, w in ways.items() if name.endswith(end)), None)
    return cast("BinaryIO", raw if way is None else _fast(way)(raw, "rb"))


def _gunzip(raw: Any, _mode: str) -> GunzippedStream:
    return GunzippedStream(raw)


def _fast(way: Any) -> Any:
    """Return the fast implementation of gzip, if the package is installed."""
    if way is _gunzip:
        try:
            from isal import igzip  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            return way
        return igzip.open
    return way


def _zstd(raw: Any, name: str) -> BinaryIO:
    try:
        import zstandard  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise LogError(f"{name}: needs the package zstandard: pip install 'dtdebug[logs]'") from None
    return cast("BinaryIO", zstandard.ZstdDecompressor().stream_reader(raw, read_size=1 << 20, read_across_frames=True))
