"""Protects the user's files: those from before the first run are not overwritten, renamed or deleted.

A run works in a copy of the working directory; this protects paths outside of it. An audit hook sees files that Python
opens and commands that it starts; files that C++ writes (`torch.save`) are seen where Python calls it.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
from contextlib import suppress
from types import ModuleType
from typing import Any

from dtdebug.experiments.isolate.inside import written_files
from dtdebug.experiments.isolate.inside.record_writer import PartNotes

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_TRUNC | os.O_APPEND | os.O_CREAT
_STARTS = ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn")
_FREE = ("/dev/", "/proc/", "/sys/", "/run/")
_CACHES = ("/__pycache__/", "/.cache/", "/.triton/", "/torchinductor_", "/.nv/", "/.config/matplotlib/")
"""Caches that programs recreate."""


class _Guard:
    """Paths that may be written."""

    def __init__(self, notes: PartNotes, ours: list[str], begun: float) -> None:
        self._notes, self._begun = notes, begun
        self._ours = tuple(os.path.realpath(path) + "/" for path in ours)

    def event(self, name: str, args: tuple[Any, ...]) -> None:
        if name == "open":
            if isinstance(args[2], int) and args[2] & _WRITES:
                self.writes(args[0])
        elif name in ("os.remove", "os.truncate", "shutil.rmtree", "os.rmdir"):
            self.writes(args[0])
        elif name == "os.rename":
            self.writes(args[0])
            self.writes(args[1])
        elif name in _STARTS:
            paths: list[str] = []
            with suppress(TypeError, ValueError, OSError):
                paths += written_files.written_paths(name, args)
            for path in paths:
                self.writes(path)

    def writes(self, path: Any) -> None:
        """Raise PermissionError if a file from before the first run would be changed."""
        try:
            text = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
            real = os.path.realpath(text) if text else ""
        except (OSError, ValueError):
            return
        if not real or f"{real}/".startswith((*self._ours, *_FREE)) or any(part in real for part in _CACHES):
            return
        try:
            found = os.lstat(real)
        except OSError:
            self._notes.note("wrote", real)
            return
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)) or found.st_ctime >= self._begun:
            return
        self._notes.note("denied", real)
        raise PermissionError(f"dtdebug isolate: {real} was there before; a run may not change it")


_guard: _Guard | None = None


def begin(notes: PartNotes, ours: list[str], begun: float) -> None:
    """Watch this process's writes; `ours` are folders that it may change, `begun` is when the first run began."""
    global _guard
    if not ours:  # the user wants runs in place
        return
    _guard = _Guard(notes, ours, begun)
    sys.addaudithook(_guard.event)


def saving(module: ModuleType, notes: PartNotes) -> None:
    """Patch `torch.save`, which opens its file in C++."""
    original = module.save

    @functools.wraps(original)
    def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        if _guard is not None and isinstance(f, (str, os.PathLike)):
            _guard.writes(f)
        return original(obj, f, *args, **kwargs)

    module.save = save  # type: ignore[attr-defined]
