"""Makes a snapshot of a failure: the exception as text, the output tail, ranks, devices, versions.

Keeps no reference to the exception or its frames, so that no tensor stays alive.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from dtdebug_taxonomy.snapshot import ExceptionInfo, Frame, Gpu, RankState, Snapshot

from dtdebug.clean import clean, environment
from dtdebug.probes import process

_MESSAGE_LIMIT = 16_000
_FRAMES = 30
_MEMBERS = 16
"""Members of an exception group, or failed ranks, that are described."""
_DEPTH = 6

T = TypeVar("T")


def capture(
    exception: BaseException | None = None,
    *,
    output: str = "",
    cell: str = "",
    situation: str = "",
    devices: bool = True,
) -> Snapshot:
    """A snapshot of this process now. Probes that fail become notes; none raises."""
    notes: list[str] = []

    def probe(name: str, read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except Exception as error:
            notes.append(f"{name}: {type(error).__name__}: {clean(str(error))[:200]}")
            return otherwise

    info = probe("exception", lambda: describe(exception) if exception is not None else None, None)
    none: RankState | None = None
    rank = probe("rank", process.rank_state, none)
    found: tuple[Gpu, ...] = ()
    if devices:
        from dtdebug.probes import gpus

        found, note = probe("devices", lambda: gpus.gpus(), (found, ""))  # noqa: PLW0108 - it has optional parameters
        notes += [note] if note else []
    return Snapshot(
        situation=clean(situation),
        output=clean(output),
        source="cell output" if output else "",
        exception=info,
        cell=clean(cell),
        ranks=(rank,) if rank else (),
        gpus=found,
        versions=probe("versions", process.versions, {}),
        modules=process.frameworks(),
        environment=environment(os.environ),
        child_ranks=probe("children", process.child_ranks, 0),
        notes=tuple(notes),
    )


def describe(exception: BaseException, depth: int = _DEPTH) -> ExceptionInfo:
    """An exception and what it carries, as text."""
    kind = type(exception)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    causes = [*_children(exception)]
    if depth:
        causes += [describe(e, depth - 1) for e in _linked(exception)]
    return ExceptionInfo(
        type=name,
        message=_message(exception),
        frames=_frames(exception),
        causes=tuple(causes),
        notes=tuple(clean(str(n))[:_MESSAGE_LIMIT] for n in getattr(exception, "__notes__", ())),
        rank=_integer(exception, "error_index"),
        pid=_integer(exception, "error_pid"),
        exit_code=_integer(exception, "exit_code"),
        signal=str(getattr(exception, "signal_name", None) or ""),
    )


def _message(exception: BaseException) -> str:
    try:
        text = str(exception)
    except Exception as error:
        text = f"<its text could not be had: {type(error).__name__}>"
    return clean(text[: 2 * _MESSAGE_LIMIT])[:_MESSAGE_LIMIT]


def _integer(exception: BaseException, name: str) -> int | None:
    value = getattr(exception, name, None)
    return value if isinstance(value, int) else None


def _linked(exception: BaseException) -> Iterator[BaseException]:
    if isinstance(exception, BaseExceptionGroup):
        yield from exception.exceptions[:_MEMBERS]
    if exception.__cause__ is not None:
        yield exception.__cause__
    elif exception.__context__ is not None and not exception.__suppress_context__:
        yield exception.__context__


def _frames(exception: BaseException) -> tuple[Frame, ...]:
    found = traceback.extract_tb(exception.__traceback__, limit=-_FRAMES) if exception.__traceback__ else ()
    return tuple(Frame(f.filename, f.lineno or 0, f.name, clean(f.line or "")[:200]) for f in found)


def _children(exception: BaseException) -> Iterator[ExceptionInfo]:
    """What failed ranks left in the launcher's exception.

    `torch.multiprocessing.ProcessRaisedException` carries the child's traceback as text,
    `torch.distributed.elastic.multiprocessing.errors.ChildFailedError` a record for each rank.
    """
    name = type(exception).__name__
    if name == "ProcessRaisedException":
        yield from_traceback(str(getattr(exception, "msg", "") or exception), _integer(exception, "error_index"))
    elif name == "ChildFailedError":
        failures = getattr(exception, "failures", None)
        for rank, failure in list(failures.items())[:_MEMBERS] if isinstance(failures, dict) else []:
            yield _elastic(rank, failure)


def _elastic(rank: Any, failure: Any) -> ExceptionInfo:
    data = getattr(failure, "error_file_data", None)
    said = data.get("message", "") if isinstance(data, dict) else ""
    extra = said.get("extraInfo", {}) if isinstance(said, dict) else {}
    stack = str(extra.get("py_callstack", "")) if isinstance(extra, dict) else ""
    text = str(said.get("message", "")) if isinstance(said, dict) else str(said)
    found = from_traceback(stack or text or str(getattr(failure, "message", "")), None)
    code = getattr(failure, "exitcode", None)
    signal_name = getattr(failure, "signal_name", None)
    return ExceptionInfo(
        type=found.type,
        message=found.message or clean(text)[:_MESSAGE_LIMIT],
        frames=found.frames,
        notes=found.notes,
        rank=rank if isinstance(rank, int) else None,
        pid=_integer(failure, "pid"),
        exit_code=code if isinstance(code, int) else None,
        signal=str(signal_name()) if callable(signal_name) and isinstance(code, int) and code < 0 else "",
    )


_LAST = re.compile(r"^(?P<type>[A-Za-z_][\w.]{0,200})(?::[ \t](?P<message>[^\n]{0,4000}))?$", re.MULTILINE)
_FRAME = re.compile(
    r'^[ \t]{0,8}File "(?P<file>[^"\n]{1,500})", line (?P<line>\d{1,9}), in (?P<function>[^\n]{1,200})$', re.MULTILINE
)


def from_traceback(text: str, rank: int | None) -> ExceptionInfo:
    """An exception read back from a printed traceback."""
    text = clean(text)[-_MESSAGE_LIMIT:]
    frames = tuple(Frame(m["file"], int(m["line"]), m["function"]) for m in _FRAME.finditer(text))[-_FRAMES:]
    tail = text[text.rfind('\n  File "') + 1 :] if frames else text
    last = None
    for last in _LAST.finditer(tail):
        if not tail[last.end() :].strip() or "Error" in last["type"] or "Exception" in last["type"]:
            break
    if last is None:
        return ExceptionInfo(type="unknown", message=text.strip()[:_MESSAGE_LIMIT], frames=frames, rank=rank)
    message = (last["message"] or "") + tail[last.end() : last.end() + 4_000]
    return ExceptionInfo(type=last["type"], message=message.strip(), frames=frames, rank=rank)
