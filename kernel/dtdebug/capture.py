"""Captures a snapshot of a failure: the exception as text, the output tail, ranks, devices, versions.

It keeps no reference to the exception or its frames, so that no tensor stays alive.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec

from dtdebug.live.agent.exit_hooks import account
from dtdebug.privacy.sanitize import allowed_variables, plain
from dtdebug.process import rank_state, user_objects
from dtdebug_taxonomy.model.account import Account
from dtdebug_taxonomy.model.ranks import Frame, RankState
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Gpu, Snapshot

_MESSAGE_LIMIT = 16_000
_FRAMES = 30
_MEMBERS = 16
"""Maximum number of members of an exception group, or failed ranks, that are described."""
_DEPTH = 6
_MOST = 48
"""Maximum number of exceptions described for one failure."""
_INTEGERS = 1 << 31
"""Exclusive upper bound of ranks, process ids and exit codes."""

_CAUGHT = re.compile(r"Caught [\w.]{1,100} in [^\n]{1,200}\nOriginal Traceback ")
"""Message of an exception that PyTorch raises again for a loader's worker or a replica's thread."""
_PRINTED = frozenset({"RemoteTraceback", "_RemoteTraceback"})
"""Classes by which multiprocessing, concurrent.futures and loky hand on the traceback of a worker as text."""

T = TypeVar("T")


def capture(
    exception: BaseException | None = None,
    *,
    output: str = "",
    cell: str = "",
    situation: str = "",
    devices: bool = True,
) -> Snapshot:
    """Return a snapshot of this process with raw texts.

    Apply `dtdebug.privacy.boundary.mask_snapshot` before it is stored or sent.

    Probes that fail are recorded as notes; none raises.
    """
    notes: list[str] = []

    def probe(name: str, read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except Exception as error:
            notes.append(f"{name}: {type(error).__name__}: {_foreign_text(error, 200)}")
            return otherwise

    info = probe("exception", lambda: describe(exception) if exception is not None else None, None)
    untold: Account | None = None
    told = probe("account", lambda: account(exception) if exception is not None else None, untold)
    none: RankState | None = None
    rank = probe("rank", rank_state.rank_state, none)
    found: tuple[Gpu, ...] = ()
    if devices:
        from dtdebug.process import gpus

        found, note = probe("devices", lambda: gpus.gpus(), (found, ""))  # noqa: PLW0108 - it has optional parameters
        notes += [note] if note else []
    return Snapshot(
        situation=plain(situation),
        output=plain(output),
        source="cell output" if output else "",
        exception=info,
        accounts=(told,) if told is not None else (),
        cell=plain(cell),
        ranks=(rank,) if rank else (),
        gpus=found,
        versions=probe("versions", rank_state.versions, {}),
        environment=allowed_variables(os.environ),
        child_ranks=probe("children", _child_ranks, 0),
        notes=tuple(notes),
    )


def _child_ranks() -> int:
    from dtdebug.live.probe.processes import ranks_below

    return len(ranks_below(os.getpid()))


def describe(exception: BaseException) -> ExceptionInfo:
    """Return an exception and its chain as text; never raises, whatever the exception's class does."""
    return _describe_chain(exception, _DEPTH, set())


def _describe_chain(exception: BaseException, depth: int, seen: set[int]) -> ExceptionInfo:
    """Describe one exception with its causes, each once: chains may be circular and groups may share members."""
    seen.add(id(exception))
    kind = type(exception)
    module, name = (
        user_objects.attribute(kind, "__module__"),
        str(user_objects.attribute(kind, "__qualname__", "unknown")),
    )
    causes = [*_children(exception, depth, seen)]
    causes += (
        _describe_chain(linked, depth - 1, seen)
        for linked in (_linked_exceptions(exception) if depth else ())
        if len(seen) < _MOST and id(linked) not in seen
    )
    notes = user_objects.attribute(exception, "__notes__", [])
    return ExceptionInfo(
        type=_foreign_text(name if module == "builtins" else f"{module}.{name}", 200),
        message=_foreign_text(exception),
        frames=_frames(exception),
        causes=tuple(causes),
        notes=tuple(_foreign_text(n) for n in notes[:_MEMBERS]) if isinstance(notes, list) else (),
        rank=_integer(exception, "error_index"),
        pid=_integer(exception, "error_pid"),
        exit_code=_integer(exception, "exit_code"),
        signal=_foreign_text(user_objects.attribute(exception, "signal_name") or "", 40),
    )


def _foreign_text(value: object, most: int = _MESSAGE_LIMIT) -> str:
    """Return a foreign object as text."""
    try:
        text = user_objects.bounded_text(value, 2 * most)
    except user_objects.RAISES as error:
        text = f"<its text could not be had: {type(error).__name__}>"
    return plain(text)[:most]


def _integer(owner: object, name: str) -> int | None:
    value = user_objects.attribute(owner, name)
    return int(value) if isinstance(value, int) and abs(value) < _INTEGERS else None


def _linked_exceptions(exception: BaseException) -> Iterator[BaseException]:
    members = user_objects.attribute(exception, "exceptions") if issubclass(type(exception), BaseExceptionGroup) else ()
    linked: list[Any] = [*members[:_MEMBERS]] if isinstance(members, tuple) else []
    original = user_objects.attribute(exception, "original_error")  # of ipyparallel's AlreadyDisplayedError
    linked += [original] if original is not None else []
    cause = user_objects.attribute(exception, "__cause__")
    if cause is not None:
        linked.append(cause)
    elif not user_objects.attribute(exception, "__suppress_context__"):
        linked.append(user_objects.attribute(exception, "__context__"))
    yield from (e for e in linked if issubclass(type(e), BaseException) and not _is_printed(e))


def _is_printed(exception: BaseException) -> bool:
    """True if it only carries the traceback of a worker of a pool as text."""
    return str(user_objects.attribute(type(exception), "__name__", "")) in _PRINTED


def _frames(exception: BaseException) -> tuple[Frame, ...]:
    try:
        trace = user_objects.attribute(exception, "__traceback__")
        found = traceback.extract_tb(trace, limit=-_FRAMES) if trace else ()
    except Exception:  # the name of a source file may be invalid as a file name
        return ()
    return tuple(
        Frame(
            _foreign_text(f.filename, 500), f.lineno or 0, _foreign_text(f.name, 200), _foreign_text(f.line or "", 200)
        )
        for f in found
    )


def _children(exception: BaseException, depth: int, seen: set[int]) -> Iterator[ExceptionInfo]:
    """Yield the exceptions of failed ranks that the launcher's exception contains.

    `torch.multiprocessing.ProcessRaisedException` contains the child's traceback as text,
    `torch.distributed.elastic.multiprocessing.errors.ChildFailedError` a record for each rank, ipyparallel's
    `CompositeError` the text of each engine, Ray's `WorkerGroupError` an exception for each worker, what a worker of a
    pool raised has the worker's traceback as the text of its cause, and that of a loader's worker as its message.
    """
    if _is_printed(cause := user_objects.attribute(exception, "__cause__")):
        found = from_traceback(_foreign_text(cause, 2 * _MESSAGE_LIMIT).rstrip('" \n'), None)
        yield from (found,) if found.type != "unknown" else ()
    engines = user_objects.attribute(exception, "elist")
    for row in engines[:_MEMBERS] if isinstance(engines, list) else ():
        yield from _engine(row)
    workers = user_objects.attribute(exception, "worker_failures")
    for rank, failure in [*workers.items()][:_MEMBERS] if isinstance(workers, dict) else ():
        if issubclass(type(failure), BaseException) and depth and id(failure) not in seen and len(seen) < _MOST:
            info = _describe_chain(failure, depth - 1, seen)
            yield msgspec.structs.replace(info, rank=rank) if isinstance(rank, int) and info.rank is None else info
    name = user_objects.attribute(type(exception), "__name__")
    if name == "ProcessRaisedException":
        text = user_objects.attribute(exception, "msg") or _foreign_text(exception)
        yield from_traceback(str(text) if isinstance(text, str) else "", _integer(exception, "error_index"))
    elif name == "ChildFailedError":
        failures = user_objects.attribute(exception, "failures")
        for rank, failure in list(failures.items())[:_MEMBERS] if isinstance(failures, dict) else []:
            yield _elastic(rank, failure)
    elif _CAUGHT.match(message := _foreign_text(exception)):
        yield from_traceback(message, None)


def _engine(row: object) -> Iterator[ExceptionInfo]:
    """Yield what one engine of ipyparallel raised: (class, message, traceback, about the engine)."""
    if not (isinstance(row, tuple) and len(row) == 4):
        return
    kind, message, trace, about = row
    number = about.get("engine_id") if isinstance(about, dict) else None
    found = from_traceback(_foreign_text(trace), None)
    yield ExceptionInfo(
        type=_foreign_text(kind, 200),
        message=_foreign_text(message),
        frames=found.frames,
        rank=number if isinstance(number, int) and abs(number) < _INTEGERS else None,
    )


def _elastic(rank: Any, failure: Any) -> ExceptionInfo:
    data = user_objects.attribute(failure, "error_file_data")
    said = data.get("message", "") if isinstance(data, dict) else ""
    extra = said.get("extraInfo", {}) if isinstance(said, dict) else {}
    stack = _foreign_text(extra.get("py_callstack", "")) if isinstance(extra, dict) else ""
    text = _foreign_text(said.get("message", "")) if isinstance(said, dict) else _foreign_text(said)
    found = from_traceback(stack or text or _foreign_text(user_objects.attribute(failure, "message", "")), None)
    code = _integer(failure, "exitcode")
    signal_name = user_objects.attribute(failure, "signal_name")
    return ExceptionInfo(
        type=found.type,
        message=found.message or text,
        frames=found.frames,
        notes=found.notes,
        rank=rank if isinstance(rank, int) and abs(rank) < _INTEGERS else None,
        pid=_integer(failure, "pid"),
        exit_code=code,
        signal=_foreign_text(signal_name(), 40) if callable(signal_name) and code is not None and code < 0 else "",
    )


def from_traceback(text: str, rank: int | None) -> ExceptionInfo:
    """Parse an exception from a printed traceback."""
    from dtdebug_taxonomy.logs.event_reader import last_exception

    text = plain(text[-2 * _MESSAGE_LIMIT :])[-_MESSAGE_LIMIT:]
    found = last_exception(text)
    if found is None:
        return ExceptionInfo(type="unknown", message=text.strip(), rank=rank)
    more = "\n".join(text.split("\n")[found.line :])[:4_000]
    message = f"{found.message}\n{more}".strip()
    return ExceptionInfo(type=found.type, message=message, frames=found.frames[-_FRAMES:], rank=rank)
