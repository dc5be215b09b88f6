"""Captures a snapshot of a failure: the exception as text, the output tail, ranks, devices, versions.

It keeps no reference to the exception or its frames, so that no tensor stays alive.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from dtdebug import foreign
from dtdebug.clean import allowed_variables, plain
from dtdebug.probes import process
from dtdebug_taxonomy.ranks import Frame, RankState
from dtdebug_taxonomy.snapshot import ExceptionInfo, Gpu, Snapshot

_MESSAGE_LIMIT = 16_000
_FRAMES = 30
_MEMBERS = 16
"""Maximum number of members of an exception group, or failed ranks, that are described."""
_DEPTH = 6
_MOST = 48
"""Maximum number of exceptions described for one failure."""
_INTEGERS = 1 << 31
"""Exclusive upper bound of ranks, process ids and exit codes."""

T = TypeVar("T")


def capture(
    exception: BaseException | None = None,
    *,
    output: str = "",
    cell: str = "",
    situation: str = "",
    devices: bool = True,
) -> Snapshot:
    """Return a snapshot of this process with raw texts; apply `dtdebug.border.masked` before it is stored or sent.

    Probes that fail are recorded as notes; none raises.
    """
    notes: list[str] = []

    def probe(name: str, read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except Exception as error:
            notes.append(f"{name}: {type(error).__name__}: {_told(error, 200)}")
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
        situation=plain(situation),
        output=plain(output),
        source="cell output" if output else "",
        exception=info,
        cell=plain(cell),
        ranks=(rank,) if rank else (),
        gpus=found,
        versions=probe("versions", process.versions, {}),
        environment=allowed_variables(os.environ),
        child_ranks=probe("children", _child_ranks, 0),
        notes=tuple(notes),
    )


def _child_ranks() -> int:
    from dtdebug.probe.processes import ranks_below

    return len(ranks_below(os.getpid()))


def describe(exception: BaseException) -> ExceptionInfo:
    """Return an exception and its chain as text; never raises, whatever the exception's class does."""
    return _described(exception, _DEPTH, set())


def _described(exception: BaseException, depth: int, seen: set[int]) -> ExceptionInfo:
    """Describe one exception with its causes, each once: chains may be circular and groups may share members."""
    seen.add(id(exception))
    kind = type(exception)
    module, name = foreign.attribute(kind, "__module__"), str(foreign.attribute(kind, "__qualname__", "unknown"))
    causes = [*_children(exception)]
    causes += (
        _described(linked, depth - 1, seen)
        for linked in (_linked(exception) if depth else ())
        if len(seen) < _MOST and id(linked) not in seen
    )
    notes = foreign.attribute(exception, "__notes__", [])
    return ExceptionInfo(
        type=_told(name if module == "builtins" else f"{module}.{name}", 200),
        message=_told(exception),
        frames=_frames(exception),
        causes=tuple(causes),
        notes=tuple(_told(n) for n in notes[:_MEMBERS]) if isinstance(notes, list) else (),
        rank=_integer(exception, "error_index"),
        pid=_integer(exception, "error_pid"),
        exit_code=_integer(exception, "exit_code"),
        signal=_told(foreign.attribute(exception, "signal_name") or "", 40),
    )


def _told(value: object, most: int = _MESSAGE_LIMIT) -> str:
    """Return a foreign object as text."""
    try:
        text = foreign.bounded_text(value, 2 * most)
    except foreign.RAISES as error:
        text = f"<its text could not be had: {type(error).__name__}>"
    return plain(text)[:most]


def _integer(owner: object, name: str) -> int | None:
    value = foreign.attribute(owner, name)
    return int(value) if isinstance(value, int) and abs(value) < _INTEGERS else None


def _linked(exception: BaseException) -> Iterator[BaseException]:
    members = foreign.attribute(exception, "exceptions") if issubclass(type(exception), BaseExceptionGroup) else ()
    linked: list[Any] = [*members[:_MEMBERS]] if isinstance(members, tuple) else []
    cause = foreign.attribute(exception, "__cause__")
    if cause is not None:
        linked.append(cause)
    elif not foreign.attribute(exception, "__suppress_context__"):
        linked.append(foreign.attribute(exception, "__context__"))
    yield from (e for e in linked if issubclass(type(e), BaseException))


def _frames(exception: BaseException) -> tuple[Frame, ...]:
    try:
        trace = foreign.attribute(exception, "__traceback__")
        found = traceback.extract_tb(trace, limit=-_FRAMES) if trace else ()
    except Exception:  # the name of a source file may be invalid as a file name
        return ()
    return tuple(
        Frame(_told(f.filename, 500), f.lineno or 0, _told(f.name, 200), _told(f.line or "", 200)) for f in found
    )


def _children(exception: BaseException) -> Iterator[ExceptionInfo]:
    """Yield the exceptions of failed ranks that the launcher's exception contains.

    `torch.multiprocessing.ProcessRaisedException` contains the child's traceback as text,
    `torch.distributed.elastic.multiprocessing.errors.ChildFailedError` a record for each rank.
    """
    name = foreign.attribute(type(exception), "__name__")
    if name == "ProcessRaisedException":
        text = foreign.attribute(exception, "msg") or _told(exception)
        yield from_traceback(str(text) if isinstance(text, str) else "", _integer(exception, "error_index"))
    elif name == "ChildFailedError":
        failures = foreign.attribute(exception, "failures")
        for rank, failure in list(failures.items())[:_MEMBERS] if isinstance(failures, dict) else []:
            yield _elastic(rank, failure)


def _elastic(rank: Any, failure: Any) -> ExceptionInfo:
    data = foreign.attribute(failure, "error_file_data")
    said = data.get("message", "") if isinstance(data, dict) else ""
    extra = said.get("extraInfo", {}) if isinstance(said, dict) else {}
    stack = _told(extra.get("py_callstack", "")) if isinstance(extra, dict) else ""
    text = _told(said.get("message", "")) if isinstance(said, dict) else _told(said)
    found = from_traceback(stack or text or _told(foreign.attribute(failure, "message", "")), None)
    code = _integer(failure, "exitcode")
    signal_name = foreign.attribute(failure, "signal_name")
    return ExceptionInfo(
        type=found.type,
        message=found.message or text,
        frames=found.frames,
        notes=found.notes,
        rank=rank if isinstance(rank, int) and abs(rank) < _INTEGERS else None,
        pid=_integer(failure, "pid"),
        exit_code=code,
        signal=_told(signal_name(), 40) if callable(signal_name) and code is not None and code < 0 else "",
    )


def from_traceback(text: str, rank: int | None) -> ExceptionInfo:
    """Parse an exception from a printed traceback."""
    from dtdebug_taxonomy.failure.events import last_exception

    text = plain(text[-2 * _MESSAGE_LIMIT :])[-_MESSAGE_LIMIT:]
    found = last_exception(text)
    if found is None:
        return ExceptionInfo(type="unknown", message=text.strip(), rank=rank)
    more = "\n".join(text.split("\n")[found.line :])[:4_000]
    message = f"{found.message}\n{more}".strip()
    return ExceptionInfo(type=found.type, message=message, frames=found.frames[-_FRAMES:], rank=rank)
