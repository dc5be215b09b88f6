"""Types of what is read from a text with stacks, before ranks are known."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class TextThread:
    """One thread as a tool has printed it."""

    name: str = ""
    number: str = ""
    """Its number or id in the text, to see when it is printed again."""
    lwp: int | None = None
    """Id of the operating system."""
    current: bool = False
    """True if faulthandler calls it the current thread."""
    frames: list[tuple[str, int, str, str]] = field(default_factory=list)
    """(file, line, function, code) of Python frames, innermost first."""
    native: list[str] = field(default_factory=list)
    """Native functions inside the innermost Python frame, innermost first."""


@dataclass(slots=True)
class TextProcess:
    """One process as a tool has printed it."""

    tool: str = ""
    pid: int | None = None
    rank: int | None = None
    """Rank that a heading, a prefix of the lines or the command line names."""
    local_rank: int | None = None
    host: str = ""
    command: str = ""
    file: str = ""
    threads: list[TextThread] = field(default_factory=list)
    numbers: dict[str, None] = field(default_factory=dict)
    """Numbers of the threads, in their order."""

    def main(self) -> TextThread:
        """Return the main thread: the one so called, else that with the id of the process, else the oldest."""
        named = [t for t in self.threads if t.name == "MainThread"]
        same = [t for t in self.threads if self.pid is not None and t.lwp == self.pid]
        first = [t for t in self.threads if self.tool == "gdb" and t.number == "1"]
        return (named or same or first or self.threads[-1:] or [TextThread()])[0]
