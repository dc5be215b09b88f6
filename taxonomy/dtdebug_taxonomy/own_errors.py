"""What a rank's own code raised, outside any framework: an error of the program, which one process could meet as well.

The errors of the other ranks are then its echo. A traceback counts if its innermost frames are the user's own lines or
those of a library that does no training, and the class is one that Python itself or the line's `raise` raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dtdebug_taxonomy.frames import is_library, short
from dtdebug_taxonomy.prefixes import parted
from dtdebug_taxonomy.ranks import Frame
from dtdebug_taxonomy.snapshot import Snapshot, walk

_START = "Traceback (most recent call last):"
_SPAWNED = re.compile(r"-- Process (\d{1,7}) terminated with the following error:")
_FRAME = re.compile(r'\s{1,8}File "([^"\n]{1,500})", line (\d{1,9}), in ([^\n]{1,200})')
_LAST = re.compile(r"([A-Za-z_][\w.]{0,200})(?:: ?(.{0,500}))?$")
_FRAMEWORK = re.compile(
    r"[/\\](?:torch\w{0,20}|tensorflow|keras|horovod|deepspeed|megatron|colossalai|(?:pytorch_)?lightning|accelerate"
    r"|transformers|datasets|ray|jax|mpi4py)[/\\]"
)
_PYTHON = re.compile(r"\.py$|^<(?:ipython|stdin|string)")
"""Of all that a traceback names; compiled modules print places such as `index.pyx`."""
_PLAIN = frozenset({
    "ArithmeticError", "AssertionError", "AttributeError", "FloatingPointError", "IndexError", "JSONDecodeError",
    "KeyError", "LookupError", "NameError", "OverflowError", "RecursionError", "StopIteration", "TypeError",
    "UnboundLocalError", "UnicodeDecodeError", "ValueError", "ZeroDivisionError",
})  # fmt: skip
"""What Python and its libraries raise of wrong values and names; other classes only where the user's line raises."""
_LINE, _WORDS = 2_000, 60
"""Characters of a line that are looked at, and of a message that are shown."""


class OwnError(NamedTuple):
    """One exception with the user's own line that it comes from."""

    type: str
    words: str
    """`KeyError: 'label' in train.py:12`."""
    rank: int | None
    line: int = 0
    """Line of the output; 0 where it was not printed."""


def own_errors(snapshot: Snapshot) -> Iterator[OwnError]:
    """Those of ranks, the earliest first; where the ranks were compared, those of the culprits alone."""
    verdict = snapshot.verdict
    culprits = set(verdict.culprits) if verdict is not None and verdict.kind != "none" else set()
    for error in (*_carried(snapshot), *_printed(snapshot), *_recorded(snapshot)):
        if not culprits or error.rank is None or error.rank in culprits:
            yield error


def _carried(snapshot: Snapshot) -> Iterator[OwnError]:
    """What the launcher's exception holds of its ranks: each as an exception, or their tracebacks as text."""
    for info in walk(snapshot.exception):
        if info.rank is not None:
            yield from _own(info.type, info.message, info.frames, info.rank)
            yield from (error for _, error in _tracebacks(info.message))


def _recorded(snapshot: Snapshot) -> Iterator[OwnError]:
    for state in snapshot.ranks:
        kind, _, message = state.exception.partition(":")
        if kind:
            yield from _own(kind, message.strip(), state.stack, state.rank)


def _printed(snapshot: Snapshot) -> Iterator[OwnError]:
    for line, error in _tracebacks(snapshot.output):
        yield error._replace(line=snapshot.true_line(line))


def _tracebacks(text: str) -> Iterator[tuple[int, OwnError]]:
    """(line, error) of what is printed. Lines of ranks may stand among each other: the prefix tells them apart."""
    if _START not in text:
        return
    opened: dict[int | None, list[Frame]] = {}
    spawned: int | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if not (opened or _START in line or "-- Process" in line):  # most lines of a long log
            continue
        rank, words = parted(line[:_LINE])
        words = words.rstrip()
        if heading := _SPAWNED.search(words):
            spawned = int(heading[1])
        elif words.startswith(_START):
            opened[rank] = []
        elif rank not in opened:
            continue
        elif frame := _FRAME.match(words):
            opened[rank].append(Frame(frame[1], int(frame[2]), frame[3]))
        elif words[:1].isspace():
            if (frames := opened[rank]) and not frames[-1].code:
                frames[-1] = Frame(frames[-1].file, frames[-1].line, frames[-1].function, words.strip())
        elif (last := _LAST.match(words)) and opened[rank]:
            raised = list(_own(last[1], last[2] or "", opened[rank], spawned if rank is None else rank))
            yield from ((number, error) for error in raised)
            if raised or last[1].endswith(("Error", "Exception")):
                del opened[rank]


def _own(kind: str, message: str, stack: Sequence[Frame], rank: int | None) -> Iterator[OwnError]:
    """The exception, if it is the program's own."""
    below = 0
    for frame in reversed(stack):
        if _FRAMEWORK.search(frame.file):
            return
        if _PYTHON.search(frame.file) and not is_library(frame.file):
            break
        below += 1
    else:
        return
    name = kind.rsplit(".", 1)[-1]
    if name in _PLAIN or (not below and frame.code.startswith("raise ")):
        said = " ".join(message.split())
        said = said if len(said) <= _WORDS else f"{said[:_WORDS]}..."
        yield OwnError(name, f"{name}{': ' if said else ''}{said} in {short(frame.file)}:{frame.line}", rank)
