"""Frames of this process's main thread: where it is, and the progress in its local variables.

This calls no code of the user, such as a `__len__` or a property.
"""

from __future__ import annotations

import linecache
import math
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from dtdebug.privacy.sanitize import clean
from dtdebug.process import user_objects
from dtdebug.process.thread_frames import frames_of, from_locals
from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.stacks.frames import is_library

_OUTER, _INNER = 20, 40
"""Numbers of outer and inner frames that are kept of a deep stack."""
_STEPS = ("global_step", "step", "iteration", "iter_num", "batch_idx", "i")
_OURS = str(Path(__file__).parents[2])
_SAFE = ("builtins", "numpy", "torch.utils.data")
"""Modules whose `__len__` returns a stored value."""


def main_thread() -> list[FrameType]:
    """Return the main thread's frames, innermost last, without our own."""
    frames = frames_of(threading.main_thread().ident)
    while frames and frames[0].f_code.co_filename.startswith(_OURS):
        del frames[0]
    frames.reverse()
    return frames if len(frames) <= _OUTER + _INNER else frames[:_OUTER] + frames[-_INNER:]


def describe_frames(frames: list[FrameType], *, code: bool) -> tuple[Frame, ...]:
    """Convert frames to data; with `code`, lines of the user's own files and of the innermost one."""
    return tuple(
        Frame(
            file=f.f_code.co_filename,
            line=f.f_lineno or 0,
            function=f.f_code.co_name,
            code=clean(current_line(f)) if code and (f is frames[-1] or is_user(f)) else "",
        )
        for f in frames
    )


def describe_exception(value: BaseException) -> str:
    """Format class and first line of an exception as in a traceback, whatever its `__str__` does.

    Adds the last error of NCCL, whose first line only gives the kind of error.
    """
    kind = type(value)
    home = getattr(kind, "__module__", "")
    name = kind.__qualname__ if home in ("builtins", "__main__") else f"{home}.{kind.__qualname__}"
    message, _, rest = _text(value).partition("\n")
    _, last, words = rest.partition("Last error:\n")
    if last and (said := words.partition("\n")[0].strip()):
        message = f"{message[:250]}; last error: {said}"
    return clean(f"{name}: {message}" if message else name)[:500]


def first_line(value: object) -> str:
    """Return the first line of the object's text."""
    return _text(value).partition("\n")[0]


def _text(value: object) -> str:
    try:
        return "\n".join(user_objects.bounded_text(value, 100_000).strip().splitlines())
    except user_objects.RAISES:
        return "<exception str() failed>"  # as Python prints it


def raised_at(trace: TracebackType | None) -> tuple[Frame, ...]:
    """Return the stack at which an exception was raised, innermost last."""
    frames = []
    while trace is not None:
        file, number = trace.tb_frame.f_code.co_filename, trace.tb_lineno or 0
        text = linecache.getline(file, number, trace.tb_frame.f_globals).strip()[:200]
        frames.append(Frame(file=file, line=number, function=trace.tb_frame.f_code.co_name, code=clean(text)))
        trace = trace.tb_next
    return tuple(frames[-_INNER:])


def current_line(frame: FrameType) -> str:
    """Return the source line that the frame is at."""
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno or 0, frame.f_globals).strip()[:200]


def is_user(frame: FrameType) -> bool:
    """True if the frame is in code of the user, not of a library."""
    return not is_library(frame.f_code.co_filename)


def innermost_users(frames: list[FrameType]) -> Iterator[FrameType]:
    """Yield the user's frames, then those of libraries other than torch, innermost first."""
    yield from (f for f in reversed(frames) if is_user(f))
    yield from (f for f in reversed(frames) if not is_user(f) and "/torch/" not in f.f_code.co_filename)


def step(frames: list[FrameType]) -> int | None:
    """Return the main thread's current step, by the usual names of loop variables."""

    def choose(local: Mapping[str, object]) -> int | None:
        values = (local.get(name) for name in _STEPS)
        return next((v for v in values if type(v) is int), None)  # a bool is not a step

    found = (from_locals(f, choose) for f in innermost_users(frames))
    return next((number for number in found if number is not None), None)


def loader_facts(local: Mapping[str, object]) -> dict[str, str]:
    """Return length of the data, batches, sampler and workers of the first data loader among local variables."""
    data: Any = sys.modules.get("torch.utils.data")
    kind = getattr(data, "DataLoader", None)
    if kind is None:
        return {}
    loader = next((value for value in local.values() if kind in type(value).__mro__), None)
    return _facts(_attributes(loader)) if loader is not None else {}


def _facts(loader: Mapping[str, Any]) -> dict[str, str]:
    sampler, size = loader.get("sampler"), loader.get("batch_size")
    dataset = length(loader.get("dataset"))
    samples = _attributes(sampler).get("num_samples")
    if not isinstance(samples, int) and type(sampler).__name__ in ("SequentialSampler", "RandomSampler"):
        samples = dataset
    facts = {
        "dataset length": dataset,
        "samples": samples if isinstance(samples, int) else None,
        "batch size": size if isinstance(size, int) else None,
        "sampler": type(sampler).__name__,
        "loader workers": loader.get("num_workers"),
    }
    if isinstance(samples, int) and isinstance(size, int) and size > 0:
        facts["batches"] = samples // size if loader.get("drop_last") else math.ceil(samples / size)
    return {name: str(value) for name, value in facts.items() if value is not None}


def length(dataset: object) -> int | None:
    """Return the dataset's length, if that only runs code of Python, numpy or torch."""
    function = getattr(type(dataset), "__len__", None)
    home = getattr(function, "__module__", None) or type(dataset).__module__
    if function is None or not home.startswith(_SAFE):
        return None
    attributes = _attributes(dataset)
    if "indices" in attributes and length(attributes["indices"]) is None:  # torch's Subset asks its indices
        return None
    try:
        return len(dataset)  # type: ignore[arg-type]  # its type has __len__
    except Exception:
        return None


def _attributes(value: object) -> Mapping[str, Any]:
    """Return the attributes stored in the object: no property, no __getattr__."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if isinstance(found, dict) else {}
