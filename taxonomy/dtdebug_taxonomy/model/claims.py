"""Claims: statements about ranks as data, each with the record it rests on. Sentences are rendered from them.

A verdict states nothing that no claim contains, so that no sentence can contradict a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from dtdebug_taxonomy.model.rank_ranges import say, spell

Source = Literal[
    "output", "dump", "agent", "stack", "native", "system", "exit", "kernel", "source", "exception", "store", "cell",
    "run",
]  # fmt: skip
"""Origin of a record.

output: a printed line; dump: an entry or a status of a flight-recorder dump; agent: what the agent in a rank wrote;
stack: a Python stack, from inside or outside; native: a native stack; system: a file of /proc or of a control group;
exit: the status of an ended process; kernel: the kernel's log or its memory events; source: the user's program;
exception: an exception object; store: the job's store; cell: a cell of a notebook; run: a run of the job with
something changed.
"""

What = Literal[
    "waits", "absent", "at", "raised", "ended", "left", "called", "counted", "system", "moved", "unmoved", "printed",
    "source", "came", "missing", "disagree", "last", "entered", "finished", "unfinished", "silent", "compared",
    "varied", "new", "stops",
]  # fmt: skip
"""Kind of statement that a claim makes; `sentence` has the words."""


LOOP_ENDED = "it has come to the end of the loop in which the others call"
"""Beginning of the words of `compared` if the source shows that a rank made fewer iterations than its peers, and that
no `break` or `return` cut them short."""
LOOP_LASTS = "its peers have come to the end of the loop in which it calls"
"""The same if the peers made fewer iterations."""
GLOO_ABORTED = "gloo aborted it"
"""The same if gloo received a different number of bytes than it expected."""
SHARED_RANK = "more than one process has it"
"""Beginning of the words of `system` if two live processes have the same rank."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Record that a claim rests on, so that it can be looked up."""

    source: Source
    line: int = 0
    """Line of the output or file; 0 if the record has none."""
    path: str = ""
    """File of the record: a log, a dump, a file of /proc, a program."""
    rank: int | None = None
    """Rank that the record belongs to, if there is one."""
    words: str = ""
    """The record itself, shortened: a printed line, the content of a file of /proc."""


class Claim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One statement about some ranks. Unknown fields keep their defaults and are not stated."""

    what: What
    ranks: tuple[int, ...]
    record: Record
    hosts: tuple[str, ...] = ()
    """Hosts that it is about, if it is not about ranks."""
    process: str = ""
    """Process that it is about, if its rank is unknown: `TrainController (pid 16123)`."""
    op: str = ""
    seq: int | None = None
    """Sequence number of the collective in its group, 1 for the first."""
    group: str = ""
    of: tuple[int, ...] = ()
    """Other ranks that it is about: those waited for, or those it differs from."""
    file: str = ""
    line: int = 0
    function: str = ""
    words: str = ""
    """Free text: the message of an exception, what the operating system shows, arguments."""
    seconds: float | None = None
    """Duration in seconds."""
    count: int | None = None

    @property
    def text(self) -> str:
        """The claim as a sentence."""
        return sentence(self)


def sentence(c: Claim) -> str:
    """Return a claim as a sentence."""
    seconds = f" for {c.seconds:.0f} s" if c.seconds is not None and c.seconds >= 1 else ""
    who = spell(c.ranks, 8) if c.ranks else _hosts(c.hosts) or c.process or "a rank"
    return f"{_SAID[c.what](c, _capital(who))}{seconds}."


def _hosts(names: tuple[str, ...]) -> str:
    shown = [*names[:8], *([f"{len(names) - 8} more"] if len(names) > 8 else [])]
    return f"host{'s' * (len(names) > 1)} {', '.join(shown)}" if names else ""


def texts(claims: Iterable[Claim]) -> tuple[str, ...]:
    """Return the claims as distinct sentences."""
    return tuple(dict.fromkeys(claim.text for claim in claims))


def distinct(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """Return the distinct claims; of two about one wait, the one with its sequence number."""
    found = tuple({claim.text: claim for claim in claims}.values())
    numbered = {(c.what, c.ranks, c.op) for c in found if c.seq is not None}
    return tuple(c for c in found if c.what != "waits" or c.seq is not None or (c.what, c.ranks, c.op) not in numbered)


def _subject_and_verb(ranks: tuple[int, ...], verb: str) -> str:
    return _capital(say(ranks, verb))


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _call(c: Claim) -> str:
    number = "" if c.seq is None else f" #{c.seq}"
    return f"{c.op}{number}{f' of {c.group}' if c.group else ''}" if c.op else ""


def _place(c: Claim) -> str:
    if not c.file:
        return ""
    if c.file.startswith("cell "):
        return f"{c.file}, line {c.line}{f' in {c.function}' if c.function else ''}"
    return f"{c.file}:{c.line}{f' in {c.function}' if c.function else ''}"


def _then(link: str, words: str) -> str:
    return f"{link}{words}" if words else ""


def _format_count(c: Claim) -> str:
    number = f"{c.count} operation{'s' if c.count != 1 else ''}"
    return f"{_subject_and_verb(c.ranks, 'have')} {c.words or 'begun'} {number}{_then(' of ', c.group)}"


def _waits(c: Claim) -> str:
    whom = f" for {spell(c.of, 8)}" if c.of else ""
    what = f" {c.words}" if c.words else f"{_then(' in ', _call(c))}{whom}"
    return f"{_subject_and_verb(c.ranks, 'wait')}{what}{_then(', at ', _place(c))}"


def _format_finish(c: Claim) -> str:
    return f"ended its program by {c.op}{_then(' at ', _place(c))}," if c.op else "finished the program"


def _status(c: Claim) -> str:
    """Return how it ended, if recorded: a signal may end a process whose program has finished."""
    words = c.record.words
    return " with exit status 0" if words.startswith("exit status 0") else f", then {words} ended it" if words else ""


def _plain(c: Claim, who: str) -> str:
    place = _then(" at ", _place(c)) if c.what == "source" else ""
    return f"{who}: {c.words}{place}" if who else f"{c.words}{place}"


_SAID: dict[What, Callable[[Claim, str], str]] = {
    "waits": lambda c, who: _waits(c),
    "absent": lambda c, who: f"{who} never entered {_call(c) or 'it'}",
    "at": lambda c, who: f"{_subject_and_verb(c.ranks, 'are')} at {_place(c)}{_then(': ', c.words)}",
    "raised": lambda c, who: f"{who} raised {c.words}{_then(' at ', _place(c))}",
    "ended": lambda c, who: f"{who} {c.words or 'ended; how was not seen'}{_then(' at ', _place(c))}",
    "left": lambda c, who: f"{who} {_format_finish(c)}{_status(c)}{_then(': ', c.words)}",
    "called": lambda c, who: f"{who} called {_call(c)}{_then(' with ', c.words)}{_then(' at ', _place(c))}",
    "last": lambda c, who: f"{who} last called {_call(c)}{_then(' at ', _place(c))}",
    "counted": lambda c, who: _format_count(c),
    "moved": lambda c, who: f"{who} made progress{_then(': ', c.words)}",
    "unmoved": lambda c, who: f"{who} made no progress{_then(': ', c.words)}",
    "came": lambda c, who: f"{who} came{_then(' to ', c.words)}",
    "missing": lambda c, who: f"{who} did not come{_then(' to ', c.words)}",
    "disagree": lambda c, who: f"{who} and {spell(c.of, 8)} disagree{_then(': ', c.words)}",
    "entered": lambda c, who: f"{who} entered {_call(c)}{_then(' with ', c.words)}{_then(' at ', _place(c))}",
    "finished": lambda c, who: f"{who} finished {_call(c)}",
    "unfinished": lambda c, who: f"{who} never finished {_call(c)}",
    "silent": lambda c, who: f"{_subject_and_verb(c.ranks, 'have')} left {c.words or 'no record'}",
    "compared": _plain,
    "varied": lambda c, who: c.words,
    "new": lambda c, who: f"{who} printed what no log of the healthy run holds: {c.words}",
    "stops": lambda c, who: f"The log ends at {c.words}",
    "system": _plain,
    "printed": lambda c, who: _plain(c, who if c.ranks or c.hosts else ""),
    "source": _plain,
}


def cite_record(r: Record) -> str:
    """Return a short reference to a record: `line 12 of the output`, `/proc/locks`, `stack of rank 3`."""
    rank = "" if r.rank is None else f" of rank {r.rank}"
    name = r.path.rpartition("/")[2]
    match r.source:
        case "output":
            return f"line {r.line} of {name or 'the output'}" if r.line else name or "the output"
        case "source" | "cell":
            return f"{name}:{r.line}" if r.line else name or "the program"
        case "system":
            return r.path or "/proc"
        case "kernel":
            return r.path or "the kernel's log"
        case "dump":
            return f"dump{rank}" if rank else f"dump {name}".strip()
        case "stack" | "native":
            return f"stack{rank}"
        case "agent":
            return f"record{rank}"
        case "exit":
            return f"exit status{rank}"
        case "run":
            return name or "a run"
        case _:
            return f"the {r.source}{rank}"
