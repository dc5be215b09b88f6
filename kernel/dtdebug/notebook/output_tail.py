"""Keeps the end of a cell's output, stdout and stderr together, and earlier unusual lines.

ipykernel's stream hooks are per thread and run on the IO thread, so they are registered
there. What a forked child prints passes by them: it is noted in the child, in a file without
a name. A terminal has no such streams: the tail stays empty.
"""

from __future__ import annotations

import os
import select
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from dtdebug.recorded.log_files.line_shapes import Shapes

LIMIT, EARLIER = 64_000, 32_000
"""Characters kept of the end, and bytes of earlier unusual lines."""
_PAUSE, _PAUSES, _QUIET = 0.02, 50, 2
"""Seconds between two checks for pending output, maximum number of checks, and number of checks without output that
mean the end."""
_PRINTED_MOST = 4 * LIMIT
"""Bytes that forked children may print before what they printed first is dropped."""
_ENTRY = "\x1e"
"""Beginning of what a child has printed at once, after which its number stands."""
_SIGNS = ("Traceback (most recent call last)", "Error on Rank", "terminate called after throwing", "Fatal Python error")
"""Signs of a failure that a cell printed without raising it."""


class Tail:
    """End of one cell's output; `alarmed` is True after a sign of failure."""

    def __init__(self) -> None:
        self._parts: deque[str] = deque()
        self._size = 0
        self._earlier = Shapes(most=EARLIER)
        self._rest = ""
        """Incomplete last line that has left the end."""
        self._alarmed = False
        self._hooks: list[tuple[Any, Callable[[Any], Any]]] = []
        self._printed: IO[bytes] | None = None
        """File with the output of this cell's forked children."""

    @property
    def alarmed(self) -> bool:
        """True if the cell, or a child that it has forked, printed a sign of failure."""
        return self._alarmed or any(sign in self._of_children() for sign in _SIGNS)

    def attach(self) -> None:
        """Start listening to this process's streams."""
        with suppress(OSError, ImportError):  # not on Windows, where no child is forked
            import fcntl

            self._printed = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - `detach` closes it
            fcntl.fcntl(self._printed, fcntl.F_SETFL, os.O_APPEND)
            os.register_at_fork(after_in_child=self._listen_in_child)
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "pub_thread") and hasattr(stream, "register_hook"):
                hook = self._listen
                stream.pub_thread.schedule(lambda s=stream, h=hook: s.register_hook(h))
                self._hooks.append((stream, hook))

    def detach(self) -> None:
        """Stop listening."""
        for stream, hook in self._hooks:
            stream.pub_thread.schedule(lambda s=stream, h=hook: s.unregister_hook(h))
        self._hooks.clear()
        if self._printed is not None:
            self._printed.close()
            self._printed = None

    def _listen_in_child(self) -> None:
        """Note the output of this forked child; fork hooks can't be removed, so this may run after `detach`."""
        with suppress(Exception):
            for stream, _ in self._hooks:
                stream.register_hook(self._note)

    def _note(self, message: Any) -> Any:
        """Note a message of a forked child, and return it."""
        with suppress(Exception):
            if self._printed is not None and message["header"]["msg_type"] == "stream":
                if os.fstat(self._printed.fileno()).st_size > _PRINTED_MOST:
                    self._printed.truncate(0)
                text = message["content"]["text"][-LIMIT:].replace(_ENTRY, "")
                self._printed.write(f"{_ENTRY}{os.getpid()} {text}".encode(errors="replace"))
        return message

    def _of_children(self) -> str:
        """Return the end of the output of forked children."""
        with suppress(OSError, ValueError):
            if self._printed is not None and (size := os.fstat(self._printed.fileno()).st_size):
                data = os.pread(self._printed.fileno(), LIMIT, max(0, size - LIMIT)).decode(errors="replace")
                texts: dict[str, str] = {}
                for entry in data.split(_ENTRY)[1:]:  # children that fail together print their lines in between
                    pid, _, text = entry.partition(" ")
                    texts[pid] = texts.get(pid, "") + text
                return "".join(text if text.endswith("\n") else f"{text}\n" for text in texts.values())
        return ""

    def clear(self) -> None:
        """Forget the output: a new cell starts."""
        self._parts.clear()
        self._size = 0
        self._earlier = Shapes(most=EARLIER)
        self._rest = ""
        self._alarmed = False
        if self._printed is not None:
            self._printed.truncate(0)

    def flush(self) -> None:
        """Collect the output of this process's Python code."""
        for stream, _ in self._hooks:
            stream.flush()

    def text(self, *, awaited: bool = True) -> str:
        """Return the output: earlier unusual lines, then the last `LIMIT` characters from a line's start.

        `awaited`: child processes may have printed, which takes a while to arrive.
        """
        if awaited:
            self.settle()
        else:
            self.flush()
        return self._all()

    def _all(self) -> str:
        return self._unlike() + "".join(self._parts) + self._of_children()

    def so_far(self) -> str:
        """Return the output so far; callable from any thread, while the cell runs."""
        for _ in range(_PAUSES):
            try:
                return self._all()
            except RuntimeError:  # the IO thread has added to it
                continue
        return ""

    def settle(self) -> None:
        """Wait briefly for output of child processes: a thread reads it from a pipe, so it arrives late."""
        self.flush()
        quiet = 0
        for _ in range(_PAUSES if self._hooks else 0):
            size = self._size
            time.sleep(_PAUSE)
            self.flush()
            quiet = 0 if self._size != size or self._is_unread() else quiet + 1
            if quiet == _QUIET:
                break

    def _is_unread(self) -> bool:
        """True if there is output in a pipe through which ipykernel reads from child processes."""
        pipes = [p for p in (getattr(stream, "_fid", None) for stream, _ in self._hooks) if isinstance(p, int)]
        with suppress(OSError, ValueError):
            return bool(select.select(pipes, (), (), 0)[0])
        return False

    def _listen(self, message: Any) -> Any:
        try:
            if message["header"]["msg_type"] == "stream":
                self._add(message["content"]["text"])
        except Exception:  # noqa: S110 - the user's output must continue even if this fails
            pass
        return message

    def _add(self, text: str) -> None:
        if len(text) > LIMIT:  # everything before its end leaves at once
            self._leave("".join(self._parts) + text[:-LIMIT])
            self._parts.clear()
            self._size, text = 0, text[-LIMIT:]
        self._parts.append(text)
        self._size += len(text)
        while self._size - len(self._parts[0]) >= LIMIT:
            gone = self._parts.popleft()
            self._size -= len(gone)
            self._leave(gone)
        self._alarmed = self._alarmed or any(sign in text for sign in _SIGNS)

    def _leave(self, text: str) -> None:
        """Move a part out of the end; its unusual lines are kept."""
        whole, newline, rest = (self._rest + text).rpartition("\n")
        self._rest = rest[-EARLIER:]
        if newline:
            self._earlier.take(f"{whole}\n".encode(errors="replace"))

    def _unlike(self) -> str:
        lines = b"".join(b"%s\n" % row.raw for row in self._earlier.kept).decode(errors="replace")
        return lines + self._rest
