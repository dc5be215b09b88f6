"""Opens what holds logs: files, folders, patterns, compressed files, archives, standard input."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from dtdebug.logs import remote
from dtdebug.logs.reader import LogError

MOST_FILES = 1 << 18
"""Files that are read for one job."""
_DEPTH = 12
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst")
_MOST_UNPACKED = 64 << 30
"""Bytes of an archive that are unpacked."""
NOT_LOGS = (
    ".pt", ".pth", ".bin", ".safetensors", ".npy", ".npz", ".pkl", ".pickle", ".png", ".jpg", ".so", ".pyc", ".py",
    ".ckpt", ".parquet", ".arrow", ".zip", ".whl", ".db", ".sqlite", ".tfevents", ".ipynb", ".html", ".svg", ".pdf",
    ".md", ".rst", ".toml", ".yaml", ".yml", ".cfg", ".ini", ".lock", ".c", ".h", ".cpp", ".cu", ".js", ".ts", ".css",
)  # fmt: skip
"""Files of a job's folder that hold no log; a file that is named itself is read whatever its name."""
_NOT_OF_JOBS = frozenset({"__pycache__", "node_modules", "site-packages"})


class Source(NamedTuple):
    """One log."""

    name: str
    """As shown: a path, with the member of an archive after a colon."""
    path: str
    """The file to open; `-` is standard input."""
    member: str = ""
    size: int = 0
    """Bytes of the file, compressed if it is."""
    time: float = 0.0
    """When it was last written, in seconds since the epoch."""
    offset: int = 0
    """Where the member begins in its archive."""


def find(paths: list[str]) -> tuple[list[Source], list[str]]:
    """The logs that paths, folders and patterns name, sorted, each once; and what could not be read, with the reason.

    Raises:
        LogError: nothing at all is there.

    """
    found: dict[tuple[str, str], Source] = {}
    unread: list[str] = []
    for given in paths:
        if given == "-":
            found["-", ""] = Source("standard input", "-")
            continue
        if remote.is_address(given):
            found.update({(name, ""): Source(name, name, "", size, time) for name, size, time in remote.find(given)})
            continue
        names = [given] if os.path.lexists(given) else _matching(given)
        if not names:
            raise LogError(f"{given}: no such file")
        for name in names:
            files = _below(name) if Path(name).is_dir() else [name]
            for file in files:
                try:
                    found.update({(s.path, s.member): s for s in _sources(file)})
                except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
                    unread.append(f"{file}: {_why(error)}")
                if len(found) > MOST_FILES:
                    unread.append(f"more than {MOST_FILES} files")
                    return list(found.values()), unread
    if not found:
        raise LogError(f"{paths[0]}: holds no log")
    return sorted(found.values(), key=lambda s: _natural(s.name)), unread


def _matching(pattern: str) -> list[str]:
    import glob

    return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - a pattern may begin at the root


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _natural(name: str) -> list[tuple[int, str]]:
    import re

    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d{1,18})", name)]


def _below(folder: str) -> Iterator[str]:
    """Files of a folder and of those in it, links to folders left out."""
    base = folder.rstrip("/").count("/")
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOT_OF_JOBS)
        if root.count("/") - base > _DEPTH:
            folders.clear()
        for name in sorted(files):
            if not name.startswith(".") and not name.lower().endswith(NOT_LOGS):
                yield f"{root}/{name}"


def _sources(file: str) -> Iterator[Source]:
    there = Path(file).stat()
    if not Path(file).is_file():  # a pipe or a socket would never end
        return
    if not file.endswith(_ARCHIVES):
        yield Source(file, file, "", there.st_size, there.st_mtime)
        return
    plain = file if file.endswith(".tar") else _unpacked(file)
    with tarfile.open(plain, "r:") as archive:
        for member in archive:
            if member.isreg() and not member.issparse() and not member.name.lower().endswith(NOT_LOGS):
                name, time = f"{file}:{member.name}", float(member.mtime)
                yield Source(name, plain, member.name, member.size, time, member.offset_data)


_unpacked_here: dict[str, tempfile.TemporaryDirectory[str]] = {}


def _unpacked(file: str) -> str:
    """The archive as a file in which each member can be found: unpacked once, and gone when this process ends."""
    folder = tempfile.TemporaryDirectory(prefix="dtdebug-")
    _unpacked_here[file] = folder
    plain = Path(folder.name) / "archive.tar"
    with opened(Source(file, file)) as packed, plain.open("wb") as target:
        while target.tell() < _MOST_UNPACKED and (block := packed.read(1 << 20)):
            target.write(block)
            if shutil.disk_usage(folder.name).free < 1 << 30:
                raise OSError(0, "less than 1 GB is free for unpacking it")
    return str(plain)


@contextmanager
def opened(source: Source) -> Iterator[BinaryIO]:
    """The text of a log, unpacked as it is read.

    Raises:
        LogError: it is compressed in a way that needs a package that is not installed.
        OSError: it can't be read.

    """
    if source.path == "-":
        yield sys.stdin.buffer
        return
    if remote.is_address(source.path):
        with remote.opened(source.path) as far:
            yield _plain(far, source.path.lower(), source.name)
        return
    with Path(source.path).open("rb", buffering=0) as file:
        raw = _Member(file, source) if source.member else file
        yield _plain(raw, (source.member or source.path).lower(), source.name)


class _Member(io.RawIOBase):
    """A part of an archive."""

    def __init__(self, file: io.FileIO, source: Source) -> None:
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
    """What a file holds, by the end of its name."""
    if name.endswith((".zst", ".zstd")):
        return _zstd(raw, shown)
    ways: dict[str, Any] = {
        ".gz": gzip.open, ".tgz": gzip.open, ".xz": lzma.open, ".lzma": lzma.open, ".bz2": bz2.open
    }  # fmt: skip
    way = next((w for end, w in ways.items() if name.endswith(end)), None)
    return cast("BinaryIO", raw if way is None else _fast(way)(raw, "rb"))


def _fast(way: Any) -> Any:
    """Of gzip the fast form, where the package is there."""
    if way is gzip.open:
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
