"""The account of a printed exception: from its traceback and the files on disk, without values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from dtdebug.account import scopes
from dtdebug.account.capture import explain, facts
from dtdebug.account.chain import traces
from dtdebug.account.objects import MISSING, attribute, class_of_value, is_kind, loaded, name_of
from dtdebug.account.sources import Sources
from dtdebug.account.swallowed import swallowing
from dtdebug.account.values import masked, one_line
from dtdebug.account.way_back import Deadline
from dtdebug.check.files import UnreadableError, read_source
from dtdebug.check.stack_files import sourced_snapshot
from dtdebug.process.thread_frames import copy_locals
from dtdebug_taxonomy.logs import log as logs
from dtdebug_taxonomy.logs.events import PrintedException
from dtdebug_taxonomy.model.account import Account, Parting
from dtdebug_taxonomy.model.ranks import Frame, RankState, Verdict
from dtdebug_taxonomy.model.snapshot import Snapshot

_SECONDS = 0.5
_MOST = 8
"""Maximum number of exceptions with an account of their own."""
_LIBRARY_BYTES = 2_000_000


def with_program(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with what the program's files tell: accounts of printed exceptions, findings of checks."""
    return sourced_snapshot(with_accounts(snapshot))


def with_accounts(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the accounts of the exceptions in its output, unless it has any with values."""
    if snapshot.accounts or not snapshot.output:
        return snapshot
    found: dict[tuple[object, ...], Account] = {}
    sources = Sources(_lines)
    log = logs.read_output(snapshot)
    outlived = {r.line for r in log.outcome.handled}
    for raised in log.events.raised:
        first = logs.primary(raised)
        key = (first.text, tuple((f.file, f.line) for f in first.frames))
        if first.line in outlived:
            continue
        if first.frames and key not in found and len(found) < _MOST and logs.role(first) == "own":
            found[key] = of_exception(first, sources)
    told = tuple(account for account in found.values() if account.place is not None)
    return msgspec.structs.replace(snapshot, accounts=told) if told else snapshot


def of_exception(raised: PrintedException, sources: Sources | None = None) -> Account:
    """Return the account of a printed exception; never raises."""
    return from_text(raised.text, raised.frames, raised.rank, sources)


def of_worker(raised: PrintedException, reported: BaseException) -> Account:
    """Return the account of an exception of a loader's worker, with values of the data set that its rank has."""
    known = facts()
    rank = next((int(each.text) for each in known if each.name == "rank" and each.text.isdigit()), raised.rank)
    account = Account(rank=rank, exception=one_line(raised.text.split("\n", 1)[0]), facts=known, with_values=False)
    try:
        return _of_frames(account, raised.frames, Sources(_lines), _data_set(reported))
    except Exception as error:
        return msgspec.structs.replace(account, stopped=f"the program can't be read ({type(error).__name__})")


def _data_set(reported: BaseException) -> object:
    """Return the data set of the loader that reports a worker's exception."""
    for trace in traces(reported):
        owner = copy_locals(trace.tb_frame).get("self", MISSING)
        if is_kind(owner, loaded("torch.utils.data.dataloader", "_BaseDataLoaderIter")):
            return attribute(owner, "_dataset")
    return MISSING


def standing(state: RankState, read: Callable[[str], Sequence[str]] | None = None) -> Account:
    """Return the account of the place at which a rank without an exception ended, or waits."""
    return from_text("", state.stack, state.rank, Sources(read or _lines))


def swallowed(states: Sequence[RankState], verdict: Verdict) -> Parting | None:
    """Return the `except` that can have taken a rank around the call in which its peers wait."""
    return swallowing(states, verdict, Sources(_lines))


def from_text(text: str, frames: Sequence[Frame], rank: int | None = None, sources: Sources | None = None) -> Account:
    """Return the account of a traceback: its last line, and its frames with the innermost last."""
    account = Account(rank=rank, exception=one_line(text.split("\n", 1)[0]), with_values=False)
    try:
        return _of_frames(account, frames, sources or Sources(_lines))
    except Exception as error:
        return msgspec.structs.replace(account, stopped=f"the program can't be read ({type(error).__name__})")


def _of_frames(account: Account, frames: Sequence[Frame], sources: Sources, data: object = MISSING) -> Account:
    stack, why = scopes.of_printed(frames, sources)
    known = () if account.rank is None else (masked("rank", str(account.rank)),)
    account = msgspec.structs.replace(account, facts=account.facts or known)
    for scope in stack if data is not MISSING else ():
        home = scope.program.code.class_of(scope.node) if scope.program is not None and scope.node is not None else None
        if home is not None and scope.user and home.name == name_of(class_of_value(data)):
            scope.local = {"self": data}
    found = explain(account, stack, sources, Deadline(_SECONDS))
    return msgspec.structs.replace(found, stopped=why) if why and found.root < 0 else found


def _lines(file: str) -> list[str]:
    """Return the lines of a regular file of bounded size, or none."""
    path = Path(file)
    try:
        if path.suffix != ".py" or not path.is_file() or path.stat().st_size > _LIBRARY_BYTES:
            return []
        return read_source(path).text.splitlines(keepends=True)
    except (OSError, ValueError, UnreadableError):  # on another machine, deleted, or not text
        return []
