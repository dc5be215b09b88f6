"""Exceptions that only say that a child process has gone, and what that child raised itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from dtdebug_taxonomy.failure.raised import Raised
from dtdebug_taxonomy.ranks import Frame
from dtdebug_taxonomy.spelling import shortened

_GONE = frozenset({"EOFError", "ConnectionResetError", "BrokenPipeError", "ConnectionRefusedError", "RemoteError"})
_WORKER = "DataLoader worker (pid"
_THROUGH = re.compile(r"[/\\]multiprocessing[/\\]|[/\\]torch[/\\]utils[/\\]data[/\\]|[/\\]concurrent[/\\]futures[/\\]")
_CHAIN = 8


def says_child_has_gone(text: str, stack: Sequence[Frame]) -> bool:
    """The exception, `Type: message`, is that of a parent whose child does not answer any more."""
    name = text.partition(":")[0].rsplit(".", 1)[-1]
    if _WORKER in text or name == "BrokenProcessPool":
        return True
    return name in _GONE and any(_THROUGH.search(frame.file) for frame in stack)


def of_children(raised: Iterable[Raised]) -> list[Raised]:
    """The exceptions with those of child processes put before what their parents raised for it.

    A child's traceback seldom names the rank: it is taken for the one parent whose child has gone.
    """
    rows = [*raised]
    parents = [r for r in rows if not (r.process or r.unheeded) and says_child_has_gone(r.text, r.frames)]
    found = {id(parent): child for parent in parents if (child := _child_of(parent, rows, len(parents))) is not None}
    used = {id(child) for child in found.values()}
    if any(parent.rank is not None for parent in parents):  # of several children the parent's rank is what is known
        used |= {id(r) for r in rows if r.process and r.rank is None}
    return [
        msgspec.structs.replace(r, before=(*r.before, found[id(r)])[-_CHAIN:]) if id(r) in found else r
        for r in rows
        if id(r) not in used
    ]


def _child_of(parent: Raised, rows: Iterable[Raised], parents: int) -> Raised | None:
    children = [r for r in rows if r.process and not says_child_has_gone(r.text, r.frames)]
    mine = [r for r in children if r.rank is not None and r.rank == parent.rank]
    mine = mine or [r for r in children if r.rank is None and parents == 1]
    alike = {(r.type, r.frames) for r in mine}
    return mine[0] if len(alike) == 1 else None


def child_of(raised: Raised) -> Raised | None:
    """What a child process raised, of which this exception is the echo."""
    return next((r for r in reversed(raised.before) if r.process), None)


def in_process(raised: Raised) -> str:
    """`KeyError: 'width'`, and in which child process, if in one."""
    text = shortened(raised.text)
    return f"{text} (in its process {raised.process})" if raised.process else text
