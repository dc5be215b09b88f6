"""Lines of one printed traceback: its frames with their code, and those of others that are mixed with it."""

from __future__ import annotations

import re

from dtdebug_taxonomy.model.ranks import Frame

_FRAME = re.compile(r'\s{1,12}File "([^"\n]{1,500})", line (\d{1,9})(?:, in ([^\n]{1,200}))?')
HEADLESS = re.compile(r'\s{1,4}File "[^"\n]{1,500}", line \d{1,9}, in \S')
UNCOMPILED = re.compile(r'  File "[^"\n]{1,500}", line \d{1,9}$')
"""First line of Python's report on a program that it can't compile, which has no heading."""
SYNTAX = frozenset(("SyntaxError", "IndentationError", "TabError"))
_RICH_FRAME = re.compile(r"\s{0,4}│ (\S[^\n│]{0,300}?):(\d{1,9}) in (\S{1,120})\s")
_CELL = re.compile(
    r"\s{0,4}(?:Cell In\s?\[\d{1,6}\]|<ipython-input-\S{1,40}>|File (\S{1,300}?))(?:, line |:)(\d{1,9})"
    r"(?:, in ([^\n(]{1,200}))?"
)
_ARROW = re.compile(r"-{1,6}> {1,3}(\d{1,9}) ?(.{0,200})")
PATH = r"(?:(?:[A-Za-z_]\w{0,100}|<locals>)\.){0,12}"
TYPE = rf"{PATH}[A-Za-z_]\w{{0,100}}(?:\([\w.]{{1,100}}\))?"
LAST = re.compile(rf"({TYPE})(?:: ?(.{{0,2000}})|$)")
NAMED = re.compile(
    r"(?:Error|Exception|Interrupt|Exit|Warning|Timeout|Failure|Fault|Abort|Group|Expired|Empty|Full)(?:\([\w.]{1,100}\))?$"
)
_RAISES = re.compile(r"raise (?:\w{1,60}\.){0,6}(\w{1,80})")
ENGINE_CELL = "<ipython-input>"
"""File of a frame in a cell, whose number says nothing where it was printed by another kernel."""
FRAMES = 200
LONGEST = 4_000
"""Maximum number of lines of a traceback."""


class OpenTraceback:
    """Printed traceback whose last line has not been read yet."""

    def __init__(self, begin: int, indent: int, level: str = "") -> None:
        self.begin, self.indent, self.level = begin, indent, level
        self.rank: int | None = None
        """Another rank, if its traceback is repeated here."""
        self.frames: list[Frame] = []
        self.frame_indent = -1
        self.lines = 0
        self.logged = False
        """True if a logger printed the line above it."""
        self.kind = "python"
        self.others = 0
        """Number of tracebacks of other processes whose lines are mixed with it."""
        self.mixed = self.ended = False
        """True if there was any such traceback, and if one of them has ended."""
        self.unsure = False
        """True if a line of code stood where it can belong to either of two places."""

    def mix(self) -> None:
        """Count a traceback that begins within this one."""
        self.others, self.mixed = self.others + 1, True

    def take_code(self, words: str) -> None:
        """Add a line of code to its frame: the one above it; of mixed ones, to one of a place that has this code."""
        at = self._frame_of(words) if self.mixed else len(self.frames) - 1
        if at >= 0 and not self.frames[at].code:
            f = self.frames[at]
            self.frames[at] = Frame(f.file, f.line, f.function, words)

    def _frame_of(self, words: str) -> int:
        """Return the index of a frame without code that a line belongs to; -1 if there is none."""
        code = {(f.file, f.line): f.code for f in self.frames if f.code}
        without = [(at, code.get((f.file, f.line))) for at, f in enumerate(self.frames) if not f.code]
        same = [at for at, known in without if known == words]
        new = [at for at, known in without if known is None]
        if not same and len({(self.frames[at].file, self.frames[at].line) for at in new}) > 1:
            self.unsure = True
            return -1
        return (same or new or [-1])[-1]

    def frames_to(self, kind: str) -> tuple[Frame, ...]:
        """Return the frames that lead to an exception: of mixed ones, to the line that raises its class.

        None where it is not known which line of code belongs to which place.
        """
        name = kind.rpartition(".")[2]
        if not self.mixed:
            return tuple(self.frames)
        raising = [(at, found[1]) for at, f in enumerate(self.frames) if (found := _RAISES.match(f.code))]
        own = [at for at, raised in raising if raised == name]
        if own:
            return tuple(self.frames[: own[-1] + 1])
        if self.unsure:
            return ()
        others = {at for at, _ in raising}
        if any(f.code for f in self.frames):  # what has no code yet will have it below this exception
            others |= {at for at, f in enumerate(self.frames) if not f.code}
        last = max((at for at in range(len(self.frames)) if at not in others), default=len(self.frames) - 1)
        return tuple(self.frames[: last + 1])

    def take_frame(self, text: str) -> bool:
        """Add the frame of a line, or the position in one that it shows; return True if there is any."""
        found = _FRAME.match(text) or _FRAME.match(f" {text}")
        if found is None and self.kind == "rich":
            found = _RICH_FRAME.match(text)
        if found is not None:
            if self.frame_indent < 0:
                self.frame_indent = max(1, len(text) - len(text.lstrip()))
            if len(self.frames) < FRAMES:
                self.frames.append(Frame(found[1], int(found[2]), found[3] or ""))
            else:
                self.frames[-1] = Frame(found[1], int(found[2]), found[3] or "")
            return True
        if self.kind == "ipython":
            if cell := _CELL.match(text):
                self.frames.append(Frame(cell[1] or ENGINE_CELL, int(cell[2]), (cell[3] or "<module>").strip()))
                self.frame_indent = 1
                return True
            if (arrow := _ARROW.match(text)) and self.frames:
                f = self.frames[-1]
                self.frames[-1] = Frame(f.file, int(arrow[1]), f.function, arrow[2].strip())
                return True
        return False


def strip_margin(text: str) -> str:
    """Return a line without the margin of an exception group."""
    stripped = text.lstrip(" ")
    if not stripped.startswith(("| ", "+ ", "+-")):
        return text
    return (
        stripped.lstrip("+-|").removeprefix(" ")
        if stripped[:1] == "+"
        else strip_margin(stripped[1:].removeprefix(" "))
    )


def is_last(last: re.Match[str]) -> bool:
    """True if the line can end a traceback: any class can, even if not named as an error; a sentence cannot."""
    return bool(last[1][:1].isalpha() or last[1][:1] == "_") and (last[2] is not None or last.end() == len(last.string))
