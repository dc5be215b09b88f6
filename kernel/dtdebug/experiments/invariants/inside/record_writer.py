"""Writes the notes of this process: lines of JSON in its own file in the run's folder, which survives a killed rank.

An internal error disables the watch, with one line; the job continues.
"""

from __future__ import annotations

import atexit
import functools
import json
import math
import os
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from dtdebug_taxonomy.stacks.frames import is_library

_MOST_BYTES, _MOST_SITES, _HELD = 8 << 20, 4096, 64
"""Maximum bytes of a file, places in it, and buffered lines."""
_ALLOWANCE, _SHARE = 0.3, 0.02
"""Seconds that hashing may cost at the start, and its maximum share of the time after that."""
_DENSE, _SPARSEST = 8, 4096


class WatchNotes:
    """Notes file of this process; forked children write separate files."""

    def __init__(self, folder: str) -> None:
        self._folder, self._pid = folder, os.getpid()
        self._lines: list[str] = []
        self._sites: dict[tuple[str, int], int] = {}
        self._bytes = 0
        self._begun = time.monotonic()
        self._named = False
        self.dead = False
        self.spent = 0.0
        self._stride = 1
        atexit.register(self.end)

    def put(self, kind: str, /, **values: Any) -> None:
        """Add a record."""
        if self.dead or self._bytes > _MOST_BYTES:
            return
        if os.getpid() != self._pid:  # a forked child: buffered lines are the parent's
            self._pid, self._lines, self._sites, self._bytes, self._named = os.getpid(), [], {}, 0, False
        line = json.dumps({"k": kind, **values}, separators=(",", ":"), default=str)
        self._lines.append(line)
        if len(self._lines) >= _HELD:
            self.flush()

    def flush(self) -> None:
        """Write the buffered lines."""
        if not self._lines or self.dead:
            return
        if not self._named:
            self._named = True
            self._lines.insert(0, json.dumps({"k": "process", "pid": self._pid, "parent": os.getppid(), **_place()}))
        data = ("\n".join(self._lines) + "\n").encode()
        self._lines = []
        self._bytes += len(data)
        if self._bytes > _MOST_BYTES:
            data += b'{"k":"full"}\n'
        handle = os.open(
            f"{self._folder}/{self._pid}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        try:
            os.write(handle, data)
        finally:
            os.close(handle)

    def site(self, frame: FrameType | None) -> int:
        """Return the number of the innermost place in the user's own code, or 0."""
        while frame is not None and is_library(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return 0
        key = (frame.f_code.co_filename, frame.f_lineno or 0)
        number = self._sites.get(key)
        if number is None:
            if len(self._sites) >= _MOST_SITES:
                return 0
            number = self._sites[key] = len(self._sites) + 1
            self.put("site", i=number, file=key[0][:500], line=key[1], fn=frame.f_code.co_name[:100])
        return number

    def looks(self, number: int) -> bool:
        """True if step `number` is inspected: all at first, then every 2nd, 4th, ... as the cost demands.

        The strides are powers of two, so that ranks whose costs differ still have steps in common.
        """
        if self.dead:
            return False
        over = self.spent > _ALLOWANCE + _SHARE * (time.monotonic() - self._begun)
        if over and self._stride < _SPARSEST and number % (2 * self._stride) == 0:
            self._stride *= 2
        return number <= _DENSE or number % self._stride == 0

    def end(self) -> None:
        """Write the final record."""
        if os.getpid() != self._pid or self.dead:
            return
        try:
            self.put("end", spent=round(self.spent, 4), seconds=round(time.monotonic() - self._begun, 3))
            self.flush()
        except Exception:
            self.dead = True

    def fails(self, error: Exception, where: str) -> None:
        """Disable the watch, and report it once."""
        if self.dead:
            return
        why = f"{where}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
        try:
            self.put("off", why=why)
            self.flush()
        except Exception:
            why += ", and its file can't be written"
        self.dead = True
        print(f"dtdebug: watch: off in process {self._pid} ({why}); the job goes on", file=sys.stderr)


def guard_method(function: Callable[..., None]) -> Callable[..., None]:
    """Wrap a watcher's method so that it never raises, counts its time, and does nothing once the watch is off."""

    @functools.wraps(function)
    def run(self: Any, *args: Any, **kwargs: Any) -> None:
        notes: WatchNotes = self.notes
        if notes.dead:
            return
        begun = time.perf_counter()
        try:
            _refuse_capture()
            function(self, *args, **kwargs)
        except Exception as error:
            notes.fails(error, function.__name__)
        finally:
            notes.spent += time.perf_counter() - begun

    return run


def _refuse_capture() -> None:
    """Raise during CUDA graph capture: reading a value would break the job's capture."""
    cuda: Any = sys.modules.get("torch.cuda")
    ready = cuda is not None and getattr(cuda, "is_initialized", bool)()  # not while it is being imported
    if ready and cuda.is_current_stream_capturing():
        raise RuntimeError("a CUDA graph is captured; its steps are not seen when it is replayed")


def json_number(value: float) -> float | str:
    """Return a float as JSON can represent it: text if it is not finite."""
    return value if math.isfinite(value) else str(value)


def _place() -> dict[str, Any]:
    """Return the rank, world size and host, where known."""
    found: dict[str, Any] = {"host": os.uname().nodename, "initialized": False}
    for key, name in (("rank", "RANK"), ("world", "WORLD_SIZE")):
        text = os.environ.get(name, "")
        if text.isdigit():
            found[key] = int(text)
    module = sys.modules.get("torch.distributed.distributed_c10d")
    if module is not None and module.is_initialized():
        found.update(rank=module.get_rank(), world=module.get_world_size(), initialized=True)
    return found
