"""Finds the line of the user's program that led to a collective."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import FrameType

from dtdebug.process.thread_frames import frames_of
from dtdebug_taxonomy.stacks.frames import is_library

_GENERATED = ("<", "/torchinductor_", "/torch_compile_debug", "/.triton/")
"""Path prefixes and parts of generated code: `<string>`, `<eval_with_key>.3`, files of TorchInductor."""


@lru_cache(maxsize=8192)
def _rank_of(file: str) -> int:
    """Return 2 for a file of the user's program, 1 for one of a library other than torch, 0 for any other."""
    if file.startswith("<ipython-input-"):
        return 2
    if any(part in file[:1] if part == "<" else part in file for part in _GENERATED):
        return 0
    if not is_library(file):
        return 2
    parts = file.replace("\\", "/")
    return 0 if "/torch/" in parts or "/dtdebug/" in parts or "-packages/" not in parts else 1


def is_of_user(file: str) -> bool:
    """True for a file of the user's program."""
    return _rank_of(file) == 2


def here() -> tuple[str, int]:
    """Return the innermost line of the user's own files, else of a library other than torch; ("", 0) if there is none.

    With a GPU, autograd calls hooks on its own threads: then the main thread, which waits for it, has the line.
    """
    found = _innermost(_own(sys._getframe(1)))  # noqa: SLF001 - documented
    if found[0] < 2 and threading.current_thread() is not threading.main_thread():
        other = _innermost(frames_of(threading.main_thread().ident))
        found = max(found, other, key=lambda place: place[0])
    return found[1], found[2]


def _own(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _innermost(frames: Iterable[FrameType]) -> tuple[int, str, int]:
    best = (0, "", 0)
    for frame in frames:
        file = frame.f_code.co_filename
        rank = _rank_of(file)
        if rank == 2:
            return rank, file, frame.f_lineno or 0
        if rank > best[0]:
            best = (rank, file, frame.f_lineno or 0)
    return best


def is_blocking() -> bool:
    """True if called by `dist.send` or `dist.recv`, which wait, unlike `isend` and `irecv`."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - documented
    for _ in range(12):
        if frame is None:
            return False
        if frame.f_code.co_filename.endswith("distributed_c10d.py"):
            return frame.f_code.co_name in ("send", "recv")
        frame = frame.f_back
    return False


def object_sizes() -> list[int] | None:
    """Return the bytes of each object about to be sent, [] if each fills its tensor; None if no object is sent."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - documented
    for _ in range(20):
        if frame is None:
            return None
        name = frame.f_code.co_name
        if name in ("all_gather_object", "gather_object"):
            size = frame.f_locals.get("local_size")
            return [int(size)] if size is not None else []
        if name == "scatter_object_list":
            return [int(size) for size in frame.f_locals.get("tensor_sizes") or ()]
        if name in ("broadcast_object_list", "send_object_list"):
            return []
        frame = frame.f_back
    return None


def user_frame() -> FrameType:
    """Return the innermost frame of the user's own files, or the caller's."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - documented
    while frame is not None:
        if _rank_of(frame.f_code.co_filename) == 2:
            return frame
        frame = frame.f_back
    return sys._getframe(1)  # noqa: SLF001
