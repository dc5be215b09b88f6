"""Identifies a failure, so that failures of two runs can be compared.

Type and place decide, and for hangs the operation. The rank may change with the number of ranks, and numbers within
messages change in every run.
"""

from __future__ import annotations

import difflib
import re
from pathlib import PurePath
from typing import Literal

import msgspec

from dtdebug.live.job.run_job import STOPPED
from dtdebug_taxonomy.logs import log as logs
from dtdebug_taxonomy.logs.exits import signal_name
from dtdebug_taxonomy.model.claims import Claim
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.case_json import Case
from dtdebug_taxonomy.stacks.frames import own_frame

_MESSAGE, _ALIKE = 400, 0.6
"""Maximum characters of a message to compare, and minimum similarity of equal messages."""
_VARYING = re.compile(r"0x[0-9a-fA-F]{1,16}|\d{1,20}(?:\.\d{1,20})?|/[^\s'\",]{1,300}")
_TYPED = re.compile(r"((?:[A-Za-z_]\w{0,100}\.){0,12}[A-Za-z_]\w{0,100})(?:: ?|$)")


class FailureIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of a failure that stay the same when it recurs."""

    how: Literal["raised", "ended", "ranks", "slow", "differs"]
    """Kind of failure.

    An exception; an end by signal or exit status; a conflict between ranks, which may end in either or hang; or no
    failure, but slow, or different from a recorded run.
    """
    hung: bool = False
    """The ranks made no progress until they were terminated."""
    type: str = ""
    """Class of the exception, name of the signal, `exit status 3`, or the kind of the verdict."""
    message: str = ""
    file: str = ""
    """Name of the user's file, without its folder."""
    line: int = 0
    function: str = ""
    op: str = ""
    """Collective in which the other ranks wait, or that hangs."""
    role: str = ""
    """Failing ranks: `all ranks`, `rank 0`, `the last rank`, `rank 2`; empty if unknown."""
    pace: float = 0.0
    """Seconds per step of a slow job."""
    text: str = ""
    """One sentence: what happened, on which rank, where."""


def of_case(case: Case, output: str, status: int, world: int) -> FailureIdentity:
    """Return the failure of a failed run; `status` is the job's exit status, `world` its number of ranks."""
    v = case.verdict
    role = _role(v.culprits, world)
    if v.kind not in ("none", "dead", "left", "not_understood"):
        return _of_verdict(case, role, status)
    said = next((c for c in v.claims if c.what in ("raised", "ended") and set(c.ranks) & set(v.culprits)), None)
    if said is not None:
        return _of_claim(said, role, v.summary)
    if v.kind in ("left", "not_understood") and v.waiting:
        return _of_verdict(case, role, status)
    return _last_exception(output) or _of_status(status)


def same_failure(a: FailureIdentity, b: FailureIdentity) -> bool:
    """True if both are the same failure."""
    if a.how != b.how:
        return False
    if a.how in ("slow", "differs"):
        return (a.type, a.op) == (b.type, b.op) and (a.how == "slow" or _same_place(a, b) or not a.file)
    if a.how == "ranks":
        return _same_place(a, b) or (bool(a.op) and a.op == b.op and a.type == b.type)
    if a.type.rpartition(".")[2] != b.type.rpartition(".")[2]:
        return False
    alike = _alike(a.message, b.message)
    placed = bool(a.file and b.file)
    return (alike and _same_place(a, b)) if placed else alike


def _same_place(a: FailureIdentity, b: FailureIdentity) -> bool:
    return bool(a.file) and (a.file, a.function, a.line) == (b.file, b.function, b.line)


def _alike(a: str, b: str) -> bool:
    a, b = (_VARYING.sub("#", text[:_MESSAGE]) for text in (a, b))
    return a == b or difflib.SequenceMatcher(None, a, b, autojunk=False).ratio() >= _ALIKE


def _role(ranks: tuple[int, ...], world: int) -> str:
    if not ranks or not world:
        return ""
    if len(ranks) >= world > 1:
        return "all ranks"
    if len(ranks) > 1:
        return "all ranks but 0" if ranks == tuple(range(1, world)) else "some ranks"
    if ranks[0] == 0:
        return "rank 0" if world > 1 else "the only rank"
    return "the last rank" if ranks[0] == world - 1 else f"rank {ranks[0]}"


def _of_verdict(case: Case, role: str, status: int) -> FailureIdentity:
    v = case.verdict
    site = next((s for s in v.sites if s.rank in v.culprits), next(iter(v.sites), None))
    return FailureIdentity(
        how="ranks",
        hung=status == STOPPED,
        type=v.kind,
        file=PurePath(site.file).name if site else "",
        line=site.line if site else 0,
        function=site.function if site else "",
        op=v.collective.op if v.collective else "",
        role=role,
        text=v.summary,
    )


def _of_claim(c: Claim, role: str, text: str) -> FailureIdentity:
    if c.what == "ended":
        words = c.words.removeprefix("was ended by ").removeprefix("ended with ")
        return FailureIdentity(how="ended", type=words, role=role, text=text)
    kind = _TYPED.match(c.words)
    return FailureIdentity(
        how="raised",
        type=kind[1] if kind else "",
        message=c.words[kind.end() :] if kind else c.words,
        file=PurePath(c.file).name,
        line=c.line,
        function=c.function,
        role=role,
        text=text,
    )


def _last_exception(output: str) -> FailureIdentity | None:
    """Return the last exception that a program without ranks printed, or None."""
    raised = [r for r in logs.read_output(Snapshot(output=output)).events.raised if logs.role(r) != "launcher"]
    if not raised:
        return None
    last = logs.primary(raised[-1])
    frame = own_frame(last.frames)
    place = f" at {frame.file}:{frame.line} in {frame.function}" if frame else ""
    name = last.type.rpartition(".")[2]
    return FailureIdentity(
        how="raised",
        type=last.type,
        message=last.message,
        file=PurePath(frame.file).name if frame else "",
        line=frame.line if frame else 0,
        function=frame.function if frame else "",
        text=f"The program raised {name}{f': {last.message}' if last.message else ''}{place}.",
    )


def _of_status(status: int) -> FailureIdentity:
    how = f"signal {signal_name(-status)}" if status < 0 else f"exit status {status}"
    return FailureIdentity(how="ended", type=how, text=f"The job ended with {how}.")
