"""The one door to files that a foreign text names: frames of dumps and logs, configuration, archives, modules.

Such a name may be of a pipe without a writer, of a file of the kernel that is endless or waits, or of a key. Only
regular files of a bounded size are read, and only source may be shown, if it lies where the user works: below the
working tree, the paths on the command line, or the places that Python imports the user's modules from; or if a running
process of the user has it on its stack.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
LARGEST = 2 << 20
"""Maximum size in bytes of a source file; larger ones are generated."""
_SOURCE = (".py", ".pyw", ".pyi", ".pyx")
_KERNEL = ("/proc", "/sys", "/sys/kernel/debug", "/sys/kernel/tracing", "/dev/mqueue")
"""File systems whose files are endless, or act when they are read."""
_LINE = 4_000
"""Maximum characters of a line of source."""
_PATIENCE = 5.0
"""Seconds for a file system to answer; after them it is not asked again."""
_given: tuple[str, ...] = ()
_running: set[str] = set()
"""Files that running processes of the user have told."""
_MOST = 1_000
"""Maximum number of words and files that are kept."""
_silent: set[str] = set()
"""First parts of paths whose file system has not answered."""


def give_roots(words: Iterable[str]) -> None:
    """Set the words of the command line; the paths among them are places whose source may be shown."""
    global _given
    _given = tuple(word.rpartition("=")[2] if word.startswith("-") else word for word in words)[:_MOST]


def note_running(path: str) -> None:
    """Let a file be shown that a running process of the user has on its stack; no text can name it so."""
    if len(_running) < _MOST:
        _running.add(path)


def refusal_reason(handle: int) -> str:
    """Return why an open file is not read, or nothing for a regular one that no kernel generates."""
    there = os.fstat(handle)
    if stat.S_ISDIR(there.st_mode):
        return "is a folder"
    if stat.S_ISREG(there.st_mode):
        return "is a file of the kernel" if there.st_dev in _kernel_devices() else ""
    return "is a pipe" if stat.S_ISFIFO(there.st_mode) else "is a device or a socket"


def open_file(path: str | Path) -> io.FileIO:
    """Open a regular file without waiting.

    Raises:
        OSError: it can't be read, or is something else; the text names its type.
        ValueError: no file can have this name.

    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | getattr(os, "O_NONBLOCK", 0))
    if why := refusal_reason(handle):
        os.close(handle)
        raise OSError(errno.EINVAL, why, str(path))
    return io.FileIO(handle, "rb")


def read_file(path: str | Path, most: int) -> bytes:
    """Return the contents of a regular file of at most `most` bytes.

    Raises:
        OSError: it can't be read, is something else, is larger, or its file system does not answer.

    """
    place = str(Path(*Path(path).parts[:3]))
    if place in _silent:
        raise OSError(errno.ETIMEDOUT, "its file system does not answer", str(path))
    try:
        data = _in_time(lambda: _read(path, most))
    except TimeoutError:
        _silent.add(place)
        raise OSError(errno.ETIMEDOUT, "its file system does not answer", str(path)) from None
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    if len(data) > most:
        raise OSError(errno.EFBIG, f"is larger than {most} bytes", str(path))
    return data


def read_source(path: str | Path, most: int = LARGEST) -> bytes | None:
    """Return the source of a Python file; None if it is missing, too large, or anything but source."""
    try:
        if not _is_source(path):
            return None
        data = read_file(path, most)
    except OSError:
        return None
    return None if b"\0" in data else data


def read_shown_source(path: str | Path, most: int = LARGEST) -> bytes | None:
    """Return the source of a Python file that may be shown to the user, else None."""
    return read_source(path, most) if is_shown(path) else None


def source_line(path: str | Path, line: int, *, anywhere: bool = False) -> str:
    """Return a line of a Python file without blanks around it; nothing if it may not be shown.

    `anywhere` is for a path that a running process of the user has told, not a text.
    """
    if not os.path.isabs(path) or not (anywhere or is_shown(path)):  # noqa: PTH117 - a name that may be anything
        return ""
    try:
        there = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return ""
    lines = _lines(str(path), there.st_mtime_ns, there.st_size)
    return lines[line - 1].strip()[:_LINE] if 0 < line <= len(lines) else ""


def is_shown(path: str | Path) -> bool:
    """True if a file lies, once all links are followed, where the user works."""
    if str(path) in _running:
        return True
    try:
        real = os.path.realpath(path)
    except (OSError, ValueError):
        return False
    return any(real == root or real.startswith(root + os.sep) for root in _roots(os.getcwd(), _given, tuple(sys.path)))  # noqa: PTH109


def _is_source(path: str | Path) -> bool:
    try:
        return str(path).endswith(_SOURCE) and os.path.realpath(path).endswith(_SOURCE)
    except ValueError:
        return False


def _read(path: str | Path, most: int) -> bytes:
    with open_file(path) as file:
        parts = []
        left = most + 1
        while left > 0 and (part := file.read(min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
    return b"".join(parts)


@lru_cache(maxsize=256)
def _lines(path: str, _changed: int, _size: int) -> list[str]:
    import tokenize  # late: not every command shows source

    data = read_source(path)
    if data is None:
        return []
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        return data.decode(encoding, "replace").splitlines()
    except (SyntaxError, LookupError, ValueError):
        return []


def _in_time(action: Callable[[], T]) -> T:
    """Return the result of an action; raises TimeoutError if a file system keeps it."""
    found: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(action())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    if failed:
        raise failed[0]
    if not found:
        raise TimeoutError
    return found[0]


@lru_cache(maxsize=16)
def _roots(here: str, given: tuple[str, ...], imported: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders whose source may be shown; never the root of all files."""
    found = [_working_tree(Path(here))]
    there = (Path(word) for word in given if len(word) < 4_096 and os.path.exists(word))  # noqa: PTH110
    found += (path if path.is_dir() else path.parent for path in there)
    own = tuple(os.path.realpath(prefix) + os.sep for prefix in {sys.prefix, sys.base_prefix})
    found += [Path(p) for p in imported if p and not os.path.realpath(p).startswith(own)]
    return tuple(dict.fromkeys(real for path in found if (real := os.path.realpath(path)) != os.sep))


def _working_tree(here: Path) -> Path:
    """Return the folder of the repository around a folder, below the user's home; else the folder."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - never fails
    for place in (here, *here.parents):
        if place in (home, Path(os.sep)):
            break
        if (place / ".git").exists():
            return place
    return here


@lru_cache(maxsize=1)
def _kernel_devices() -> frozenset[int]:
    """Return the device numbers of file systems whose content the kernel generates."""
    found = set()
    for place in _KERNEL:
        try:
            found.add(os.stat(place).st_dev)  # noqa: PTH116
        except OSError:
            continue
    return frozenset(found - {os.stat(os.sep).st_dev})  # noqa: PTH116
