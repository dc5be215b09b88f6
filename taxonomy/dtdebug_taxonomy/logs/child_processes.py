"""Links exceptions that only report the loss of a child process to the exception of that child."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from dtdebug_taxonomy.logs.events import PrintedException
from dtdebug_taxonomy.logs.message_detail import add_detail
from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.text.whole_parts import message_parts

_GONE = frozenset({"EOFError", "ConnectionResetError", "BrokenPipeError", "ConnectionRefusedError", "RemoteError"})
_WORKER = "DataLoader worker (pid"
_THROUGH = re.compile(r"[/\\]multiprocessing[/\\]|[/\\]torch[/\\]utils[/\\]data[/\\]|[/\\]concurrent[/\\]futures[/\\]")
_CHAIN = 8


def says_child_has_gone(text: str, stack: Sequence[Frame]) -> bool:
    """True if the exception, `Type: message`, is a parent's whose child no longer answers."""
    name = text.partition(":")[0].rsplit(".", 1)[-1]
    if _WORKER in text or name == "BrokenProcessPool":
        return True
    return name in _GONE and any(_THROUGH.search(frame.file) for frame in stack)


def of_children(raised: Iterable[PrintedException]) -> list[PrintedException]:
    """Put exceptions of child processes before those that their parents raised as a result.

    A child's traceback seldom names the rank: it is attributed to the only parent whose child is gone.
    """
    rows = [*raised]
    parents = [r for r in rows if not (r.process or r.unheeded) and says_child_has_gone(r.text, r.frames)]
    found = {id(parent): child for parent in parents if (child := _child_of(parent, rows, len(parents))) is not None}
    used = {id(child) for child in found.values()}
    if any(parent.rank is not None for parent in parents):  # of several children only the parent's rank is known
        used |= {id(r) for r in rows if r.process and r.rank is None}
    return [
        msgspec.structs.replace(r, before=(*r.before, found[id(r)])[-_CHAIN:]) if id(r) in found else r
        for r in rows
        if id(r) not in used
    ]


def _child_of(parent: PrintedException, rows: Iterable[PrintedException], parents: int) -> PrintedException | None:
    children = [r for r in rows if r.process and not says_child_has_gone(r.text, r.frames)]
    mine = [r for r in children if r.rank is not None and r.rank == parent.rank]
    mine = mine or [r for r in children if r.rank is None and parents == 1]
    alike = {(r.type, r.frames) for r in mine}
    return mine[0] if len(alike) == 1 else None


def child_of(raised: PrintedException) -> PrintedException | None:
    """Return the exception of a child process that caused this one, or None."""
    return next((r for r in reversed(raised.before) if r.process), None)


_LONGEST = 200


def _words_of(raised: PrintedException) -> str:
    """Return type and message; of a bare assertion, what it asserts."""
    code = raised.frames[-1].code.strip() if raised.frames else ""
    bare = not raised.message and code.startswith("assert ")
    kind = raised.type.rpartition(".")[2] if "._" in raised.type else raised.type  # a private module says nothing
    message = code if bare else add_detail(raised.message, [text for _, text in raised.below])
    return f"{kind}: {message}" if message else kind


def in_process(raised: PrintedException) -> str:
    """Return `KeyError: 'width'`, with the child process that raised it, if any."""
    text = message_parts(_words_of(raised), _LONGEST).removesuffix(".")
    return f"{text} (in its process {raised.process})" if raised.process else text
