"""Reads events from lines: exceptions with their frames and causes, warnings, restarts, steps of training.

The only reader of printed tracebacks. Lines of several ranks may be interleaved; their prefixes separate them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from dtdebug_taxonomy.logs import message_detail
from dtdebug_taxonomy.logs.child_processes import of_children
from dtdebug_taxonomy.logs.counting_lines import CountingLines
from dtdebug_taxonomy.logs.events import Events, PrintedException
from dtdebug_taxonomy.logs.exception_roles import called_worker, is_summary
from dtdebug_taxonomy.logs.lines import OF_PROCESS, Line
from dtdebug_taxonomy.logs.native_ends import NativeEnds
from dtdebug_taxonomy.logs.open_traceback import (
    FRAMES,
    HEADLESS,
    LAST,
    LONGEST,
    NAMED,
    PATH,
    SYNTAX,
    TYPE,
    UNCOMPILED,
    OpenTraceback,
    is_last,
    strip_margin,
)
from dtdebug_taxonomy.logs.progress import PROGRESS, ProgressBar, has_advanced
from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.whole_parts import shorten_lists

_START = "Traceback (most recent call last)"
_BARE = lazy_re(rf" {{0,2}}({PATH}[A-Z]\w{{0,100}}(?:Error|Exception|Interrupt)|Exception(?=: ))(?:: (.{{0,2000}})|$)")
_IPYTHON = lazy_re(rf"{TYPE}\s{{2,80}}$")
_SPAWNED = lazy_re(r"-- Process (\d{1,7}) terminated with the following error:")
_SNIPPET = lazy_re(r"\[Rank (\d{1,7}) Error Snippet\]:|Error on Rank (\d{1,7})\b|Worker \(rank (\d{1,7})[,)]")
_THREAD = lazy_re(r"Exception in thread ([^\n:]{1,200})")
_PROCESS = lazy_re(r"Process ([A-Za-z]\w{0,60}-\d{1,7}(?::\d{1,7}){0,4}):$")
"""Heading that multiprocessing prints above the traceback of a child."""
_UNHEEDED = lazy_re(
    r"Exception ignored (?:in|on)|Error in atexit\._run_exitfuncs|Exception in callback|"
    r"Task exception was never retrieved|--- Logging error ---|Exception in Tkinter|Exception raised during shutdown"
)
_CALLED = lazy_re(r"\bray::(\S{1,200}?)(?:\(\))? \(pid=(\d{1,9})[,)]")
"""Message of Ray at the caller about an exception of a remote process; its traceback follows without a head.
Source: https://github.com/ray-project/ray/blob/master/python/ray/exceptions.py (RayTaskError, ActorDiedError)"""
_AND_THEN = lazy_re(r"(?:During handling of the above exception|The above exception was the direct cause)")
_TABLE_RANK = lazy_re(r"  rank {1,10}: (\d{1,7}) \(local_rank: (\d{1,5})\)")
_FATAL = lazy_re(r"Fatal Python error: ([^\n]{1,200})")
_FATAL_FRAME = lazy_re(r'  File "([^"\n]{1,500})", line (\d{1,9}) in ([^\n]{1,200})')
_FATAL_END = lazy_re(r"Thread 0x|Extension modules|Stack \(most recent")
_FATAL_OTHER = lazy_re(r"Thread 0x|Extension modules")
"""Lines that end a dump before its first frame; `Stack (most recent` is its head if the thread is unknown."""
_FATAL_LINES = 200
_WARNED = lazy_re(rf"\S{{1,300}}\.py:\d{{1,8}}: ((?:{TYPE})?Warning): ?(.{{0,500}})")
_ALOUD = lazy_re(r"(?i)\bwarn(?:ing)?s?\b ?[:|\]!]")
_RESTART = lazy_re(
    r"(?:Worker group FAILED|\[\w{1,40}\] Worker group \S{1,40}).{0,40}attempts left|will restart worker group"
    r"|Restarting worker group|Attempt \d{1,4}/\d{1,4} failed|restarting (?:all )?workers"
)
_OF_RANK = lazy_re(r" ?:? ?\(RANK (\d{1,7})\)")
"""Suffix in the head of a traceback that torch.distributed.checkpoint repeats from another rank.
Source: torch 2.13, torch/distributed/checkpoint/api.py (CheckpointException.__str__)"""
_HANDLED = lazy_re(
    r"(?i)(?:\b(?:will (?:be )?retr(?:y|ied)|retrying|re-trying|trying again|retry (?:no\.? ?|number |#)?\d{1,6}\b"
    r"|attempt (?:no\.? ?|#)?\d{1,6} ?(?:of|/) ?\d{1,6}|skipp(?:ing|ed)|ignor(?:ing|ed)|fall(?:ing|s)? ?back"
    r"|continuing|will continue)\b|\(non-fatal\))"
)
_GIVES_UP = lazy_re(
    r"(?i)exceeded|exhausted|giv(?:ing|en) up|gave up|no more|abort|fatal\b(?<!non-fatal)|attempts? left|restart"
    r"|fail(?:ed|ing) after"
)
_JOB = 1 << 14
"""Maximum number of events of each kind."""
_MOST = 1 << 18


def find_events(lines: Sequence[Line]) -> Events:
    """Return the events of an output."""
    reader = _Reader()
    for index, line in enumerate(lines):
        reader.take(index, line)
    return reader.events()


def last_exception(text: str) -> PrintedException | None:
    """Return the exception that the text of one process ends in, or its last line alone if it names one; else None."""
    reader = _Reader()
    rows = text.split("\n")[:_MOST]
    for index, words in enumerate(rows):
        reader.take(index, Line(index + 1, words, rank=0))  # one stream, whose lines may be the end of a traceback
    raised = reader.events().raised
    telling = [r for r in raised if not is_summary(f"{r.type}: {r.message}")] or raised
    return msgspec.structs.replace(telling[-1], rank=None) if telling else None


def goes_on(text: str) -> bool:
    """True if a line below a traceback shows that the program continues: `retry 1 of 5`, `skipping`."""
    return bool(_HANDLED.search(text[:300])) and not _GIVES_UP.search(text[:300])


_GAP = re.compile(r" {4,80}")


def _one_message(last: re.Match[str]) -> str:
    """Return the message of an exception; of two that processes printed on one line, the first."""
    message = (last[2] or "").strip()
    other = message.find(f"{last[1]}: ")
    return message[:other] if other > 0 and message[other - 1].isalnum() else message


def _one_line(code: str) -> str:
    """Return a line of code; of two equal ones that processes printed on one line, the first."""
    parts = {part.strip() for part in _GAP.split(code)}
    return min(parts) if len(parts) == 1 else code


_MIXED = 60
"""Maximum number of lines of a traceback within which another one begins."""


def _may_mix(block: OpenTraceback, line: Line) -> bool:
    """True if a traceback that begins in an open one may be another process's: of known ranks, lines are apart."""
    return line.rank is None and not line.pid and block.kind == "python" and block.lines <= _MIXED and not block.rank


def _is_of_traceback(body: str) -> bool:
    """True if a line can be part of a traceback: a frame, its code, or the exception."""
    return body[:1].isspace() or (LAST.match(body) is not None and NAMED.search(body.partition(":")[0]) is not None)


def _is_progress(body: str) -> bool:
    """True if a line reports on a step, as no further line of a message does."""
    return not body[:1].isspace() and PROGRESS.search(body[:300]) is not None


class _Stream(ProgressBar):
    """State of one printing process."""

    def __init__(self) -> None:
        super().__init__()
        self.open: OpenTraceback | None = None
        self.rank: int | None = None
        """Rank named by a heading: the process of spawn, a row of torchrun's table."""
        self.local: int | None = None
        self.thread = ""
        self.process = ""
        self.unheeded = False
        self.chained = False
        self.called: int | None = None
        """Worker of a remote call whose traceback follows."""
        self.actor: tuple[str, int] | None = None
        """(called function, process id) of a Ray process whose traceback follows."""
        self.spoke = -1
        """Index of its last line outside tracebacks."""
        self.level = ""
        """Level of that line, if a logger printed it."""
        self.last: int | None = None
        """Index of its last exception in the list."""
        self.fatal: PrintedException | None = None
        self.fresh = False
        """True if an exception ended in the line above."""
        self.below: list[tuple[int, str]] | None = None
        """Further lines of the last exception's message; None once it has ended."""
        self.mark: tuple[str, str] = ("", "")
        """Level and time before that exception's line."""
        self.counting = CountingLines()
        self.native = NativeEnds()
        self.listing = False
        """True within the frames of a dump or a logged stack, which are not a traceback's."""


class _Reader:
    def __init__(self) -> None:
        self._streams: dict[tuple[object, ...], _Stream] = {}
        self._raised: list[PrintedException] = []
        self._dropped: set[int] = set()
        self._remote: set[int] = set()
        """Indices of exceptions of remote calls, which the caller may handle."""
        self._warnings: list[tuple[int, int]] = []
        self._restarts: list[int] = []
        self._steps: dict[tuple[object, ...], list[int]] = {}
        self._processes: dict[int, int] = {}

    def take(self, index: int, line: Line) -> None:
        """Process the next line."""
        body = line.body
        s = self._streams.get(line.who)
        if s is None:
            s = self._streams.setdefault(line.who, _Stream()) if len(self._streams) < _JOB else _Stream()
        if s.below is not None:
            self._continue_message(s, line, body)
        at = body.find(_START)
        if at >= 0 and body[at - 2 : at] != "\\n":  # else it is inside the repr of a string
            self._start(s, index, line, body[:at], body[at + len(_START) :])
            return
        if s.fatal is not None:
            self._in_fatal(s, index, line, body)
            return
        if s.open is not None and s.open.ended and not _is_of_traceback(body):
            s.open = None  # what the others printed of theirs is not here
        if s.open is not None:
            self._inside(s, index, line, body)
            return
        if body and not body.isspace():
            s.listing = "most recent call" in body or (s.listing and body.startswith("  "))
            begins = "headless" if HEADLESS.match(body) else "syntax" if UNCOMPILED.match(body) else ""
            if not s.listing and begins:  # the head was cut off, or there is none
                s.open = OpenTraceback(line.number, 0, line.level)
                s.open.kind = begins
                s.open.take_frame(body)
                return
            if s.last is None and line.rank is not None and (bare := _BARE.match(body)):
                s.open = OpenTraceback(line.number, 0)  # the end of a traceback, cut out of a log
                self._raise(s, index, line, bare)
                return
            self._mark_handled(s, line, body)
            s.spoke, s.level = index, line.level
            self._outside(s, index, line, body)

    def events(self) -> Events:
        """Return all events found."""
        for s in self._streams.values():
            if s.below and s.last is not None:
                self._raised[s.last] = msgspec.structs.replace(self._raised[s.last], below=tuple(s.below))
            if s.fatal is not None:
                self._keep(s, s.fatal)
        callers = {called_worker(r.message) for r in self._raised}
        for place in self._remote:
            if self._raised[place].rank not in callers:
                self._raised[place] = msgspec.structs.replace(self._raised[place], unheeded=True)
        kept = of_children(r for place, r in enumerate(self._raised) if place not in self._dropped)
        return Events(
            raised=tuple(kept),
            warnings=tuple(self._warnings),
            restarts=tuple(self._restarts),
            steps=self._steps,
            spoke={who: s.spoke for who, s in self._streams.items() if s.last is not None},
            processes=self._processes,
        )

    def _start(self, s: _Stream, index: int, line: Line, before: str, behind: str) -> None:
        if s.open is not None and _may_mix(s.open, line):
            s.open.take_frame(before)
            s.open.mix()
            return
        margin = len(before) - len(before.lstrip(" |+")) if "Exception Group" in before else len(before)
        s.open = OpenTraceback(line.number, margin if before.strip(" |") == "" else 0, line.level)
        s.open.logged = bool(s.level) and s.spoke == index - 1
        s.open.rank = int(found[1]) if (found := _OF_RANK.match(behind)) else s.called
        if "─" in before:
            s.open.kind = "rich"
        elif _IPYTHON.match(before):
            s.open.kind = "ipython"
        s.chained = s.chained or "Original" in before or "Remote" in before

    def _mark_handled(self, s: _Stream, line: Line, body: str) -> None:
        """Mark the last exception as handled if the line below its traceback shows that the program continues."""
        if s.fresh and s.last is not None and goes_on(body):
            self._raised[s.last] = msgspec.structs.replace(self._raised[s.last], handled=line.number)
        s.fresh = False

    def _inside(self, s: _Stream, index: int, line: Line, body: str) -> None:
        block = s.open
        assert block is not None  # noqa: S101 - the caller has looked
        block.lines += 1
        if block.lines > LONGEST:
            s.open = None
            return
        text = strip_margin(body)
        if not text.strip() or block.take_frame(text):  # before rules of dashes: IPython's arrow begins like one
            return
        if text.lstrip().startswith(("^", "~", "[Previous line repeated", "╭", "╰", "---")):
            return
        indent = len(text) - len(text.lstrip())
        words = text.strip()
        if block.kind == "rich":
            if not text.startswith("│") and (last := LAST.match(words)) and block.frames:
                self._raise(s, index, line, last)
            return
        if indent and block.frames and indent >= block.frame_indent:
            block.take_code(_one_line(words)[:200])
            return
        last = LAST.match(words)
        if (block.kind == "headless" and (last is None or not NAMED.search(last[1]))) or (
            block.kind == "syntax" and (last is None or last[1] not in SYNTAX)
        ):
            s.open = None
            return
        if last is None or (block.frames and last[2] and last[2].strip()[:200] == block.frames[-1].code):
            return  # another process of the same program prints its traceback in between: the message comes later
        logged = line.level and line.level != block.level  # of another thread, as the watchdog of NCCL, in between
        if NAMED.search(last[1]) or (block.frames and not indent and not logged and is_last(last)):
            self._raise(s, index, line, last)

    def _raise(self, s: _Stream, index: int, line: Line, last: re.Match[str]) -> None:
        block = s.open
        assert block is not None  # noqa: S101 - the caller has looked
        before: tuple[PrintedException, ...] = ()
        if s.chained and s.last is not None:
            earlier = self._raised[s.last]
            before = (*earlier.before, msgspec.structs.replace(earlier, before=()))[-8:]
            self._dropped.add(s.last)
        actor = s.actor or (line.actor, line.pid)
        known = (block.rank, self._processes.get(actor[1]) if s.actor else line.rank, s.rank)
        rank = next((n for n in known if n is not None), None)
        raised = PrintedException(
            type=last[1],
            message=shorten_lists(_one_message(last), 500)[:500],
            frames=block.frames_to(last[1]),
            before=before,
            rank=rank,
            local=s.local if line.local is None else line.local,
            who=line.who,
            begin=block.begin,
            line=line.number,
            index=index,
            thread=s.thread,
            process=s.process,
            unheeded=s.unheeded,
            level=line.level,
            logged=block.logged,
            actor=f"{actor[0]} (pid {actor[1]})" if actor[0] and rank is None else "",
        )
        s.open, s.chained, s.thread, s.process, s.unheeded = None, False, "", "", False
        if block.others:
            block.others, block.ended, block.lines = block.others - 1, True, 0
            s.open = block
        s.bar = ""
        self._keep(s, raised)
        if s.called is not None:
            self._remote.add(len(self._raised) - 1)
        s.called = called_worker(raised.message) if raised.message.startswith("On ") else None  # else no lines follow
        s.fresh = True
        s.below, s.mark = [], (line.level, line.time)
        s.actor = None
        if (remote := _CALLED.search(raised.message)) is not None:
            s.open, s.chained, s.actor = OpenTraceback(line.number, 0), True, (remote[1], int(remote[2]))

    def _continue_message(self, s: _Stream, line: Line, body: str) -> None:
        """Add a line below an exception to its message, or end the message there."""
        rows = s.below
        assert rows is not None and s.last is not None  # noqa: S101, PT018 - set together
        own = (not line.level or line.level == s.mark[0]) and bool(line.time) == bool(s.mark[1])
        if own and len(rows) < message_detail.MOST and message_detail.continues(body) and not _is_progress(body):
            rows.append((line.number, body.rstrip()))
            return
        if rows:
            self._raised[s.last] = msgspec.structs.replace(self._raised[s.last], below=tuple(rows))
        s.below = None

    def _keep(self, s: _Stream, raised: PrintedException) -> None:
        if len(self._raised) < _JOB:
            self._raised.append(raised)
            s.last = len(self._raised) - 1

    def _outside(self, s: _Stream, index: int, line: Line, body: str) -> None:
        if (native := s.native.take(line.number, body)) is not None:
            raised = PrintedException(
                type=native.type, message=native.message, frames=native.frames, rank=line.rank, local=line.local,
                who=line.who, begin=native.line, line=line.number, index=index,
            )  # fmt: skip
            self._keep(s, raised)
            return
        if "rror" in body or "xception" in body or "Process" in body or "rank " in body or "orker" in body:
            self._heading(s, index, line, body)
        if "rank=" in body and (listed := OF_PROCESS.search(body)):
            self._processes[int(listed["pid"])] = int(listed["rank"])
        if "arning" in body and _WARNED.search(body):
            self._warnings.append((line.number, line.number + 1))
            return
        if line.level.startswith("W") or ("arn" in body[:120].lower() and _ALOUD.search(body[:120])):
            self._warnings.append((line.number, line.number))
        if (
            any(c.isdigit() for c in body[:200])
            and (PROGRESS.search(body[:300]) or s.counting.advances(body))
            and not line.level.startswith(("E", "C", "F"))
            and has_advanced(s, body)
        ):
            self._steps.setdefault(line.who, []).append(index)

    def _heading(self, s: _Stream, index: int, line: Line, body: str) -> None:
        if (called := called_worker(body)) is not None:
            s.called = called
        elif found := _SPAWNED.search(body):
            s.local = int(found[1])
            s.rank = int(found[1])
        elif found := _SNIPPET.search(body):
            s.rank = int(next(g for g in found.groups() if g))
        elif found := _TABLE_RANK.match(body):
            s.rank, s.local = int(found[1]), int(found[2])
        elif found := _THREAD.search(body):
            s.thread = found[1].strip()
        elif found := _PROCESS.match(body):
            s.process = found[1]
        elif _UNHEEDED.search(body):
            s.unheeded = True
        elif _AND_THEN.match(strip_margin(body).strip()):
            s.chained = True
        elif found := _FATAL.match(body):
            s.fatal = PrintedException(
                type=f"Fatal Python error: {found[1]}", rank=line.rank, local=line.local, who=line.who,
                begin=line.number, line=line.number, index=index,
                actor=f"{line.actor} (pid {line.pid})" if line.actor and line.rank is None else "",
            )  # fmt: skip
        if _RESTART.search(body):
            self._restarts.append(index)

    def _in_fatal(self, s: _Stream, index: int, line: Line, body: str) -> None:
        """Read faulthandler's traceback of the current thread: innermost first."""
        fatal = s.fatal
        assert fatal is not None  # noqa: S101 - the caller has looked
        if found := _FATAL_FRAME.match(body):
            frame = Frame(found[1], int(found[2]), found[3])
            if len(fatal.frames) < FRAMES:
                s.fatal = msgspec.structs.replace(fatal, frames=(frame, *fatal.frames))
        elif index - fatal.index > _FATAL_LINES or (
            (_FATAL_END.match(body) or not body.strip()) if fatal.frames else _FATAL_OTHER.match(body)
        ):
            s.fatal = None
            self._keep(s, fatal)
