"""Bounded copy of a job's output: a process that keeps it, and functions that read it.

A separate process keeps it and takes pieces from memory shared with the relay. A slow, full or missing disk delays only
that process: pieces that it can't write in time are overwritten, and counted.
"""

from __future__ import annotations

import errno
import io
import mmap
import os
import re
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dtdebug.live.job.ring_buffer import Ring
from dtdebug.recorded.log_files.line_shapes import Shapes
from dtdebug.storage import state_dir

HEAD, TAIL = 256 << 10, 1 << 20
"""Bytes of the output that are kept: of the beginning always, of the end up to twice as much."""
MIDDLE = 256 << 10
"""Bytes kept of the lines between them that differ from the others."""
BOTH = b"* "
"""Mark of a line if both streams are one; `1 ` and `2 ` are standard output and standard error."""
_LEFT_OUT = b"~ "
"""Mark of our own remark."""
_MARKS = (b"1 ", b"2 ", BOTH)
_MARK = re.compile(rb"(?m)^[12*~] ")
_REMARK = re.compile(rb"(?m)^~ \[dtdebug: about (\d{1,18}) bytes[^\n]{0,80}\n?")
_LINE = 64 << 10
"""Maximum number of bytes of a line without an end."""
_RING = 4 << 20
"""Bytes that may wait for the disk."""
_BATCH, _PAUSE, _SHARE = 1 << 20, 0.02, 0.1
"""Bytes written at once, seconds between two writes, and the share of a core that the copy may take."""
_WRITTEN, _ERROR = 0, 1
"""Words shared with the launcher: number of bytes processed, and the error that ended the copy."""


class Keeper:
    """Writes the copy in a child process; in a thread if there can't be one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ring = Ring(HEAD, _RING)
        self._words = memoryview(mmap.mmap(-1, 16)).cast("Q")
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._pid: int | None = None
        self._ended = threading.Event()

    def put(self, mark: bytes, piece: memoryview) -> None:
        """Pass on a piece of one stream; never blocks."""
        self._ring.put(_MARKS.index(mark), piece)
        with suppress(OSError):  # it is awake, or gone
            os.write(self._waker, b".")

    def end(self) -> None:
        """Signal the end of the output; called in the process that puts pieces."""
        os.close(self._waker)

    def start(self, *, apart: bool) -> None:
        """Start writing. `apart`: another process puts the pieces, and the pipe shows its end."""
        if apart:
            os.close(self._waker)
            self._pid = fork(self._child)
        if self._pid is None:
            threading.Thread(target=self._follow, name="dtdebug-copy", daemon=True).start()
        else:
            os.close(self._wake)

    def written_bytes(self) -> int:
        """Return the number of bytes in the copy, or left out of it by its bound."""
        return self._words[_WRITTEN]

    def trouble(self) -> str:
        """Return why bytes are not kept."""
        error = self._words[_ERROR]
        return os.strerror(error) if error else "they came faster than they could be written"

    def wait(self, seconds: float) -> bool:
        """True if the copy is as complete as it will be within that time."""
        return wait_for_exit(self._pid, seconds) if self._pid else self._ended.wait(seconds)

    def _child(self) -> None:
        """Run the child without the job's streams: their readers must see the end even if this process still waits."""
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        self._follow()

    def _follow(self) -> None:
        try:
            copy = Copy(self._path)
            over = select.poll()
            over.register(self._wake, 0)  # only to see the end
            empty = open_ = True
            while open_ or not empty:
                if empty:
                    open_ = bool(os.read(self._wake, 1 << 16))
                began = time.thread_time()
                empty = self._take(copy)
                if open_:  # leave the cores to the job
                    spent = time.thread_time() - began
                    over.poll(1000 * max(_PAUSE, spent / _SHARE))
            copy.finish()
            self._words[_ERROR] = copy.error
        finally:
            self._ended.set()

    def _take(self, copy: Copy) -> bool:
        """Write the available pieces, up to a bound; True if that was all."""
        size, lost = 0, self._ring.lost
        while size < _BATCH and (found := self._ring.take()):
            if self._ring.lost > lost:
                copy.lose(self._ring.lost - lost)
                lost = self._ring.lost
            mark, piece = found
            copy.add(_MARKS[mark], piece)
            size += len(piece)
        copy.flush()
        self._words[_ERROR] = copy.error
        if not copy.error:
            self._words[_WRITTEN] += size
        return size < _BATCH


def fork(work: Callable[[], object]) -> int | None:
    """Start a child that does the work and ends; None if there can't be one."""
    try:
        pid = os.fork()
    except OSError:
        return None
    if pid:
        return pid
    try:
        work()
    finally:
        os._exit(0)


def wait_for_exit(pid: int, seconds: float) -> bool:
    """True if the child ends within that time."""
    end = time.monotonic() + seconds
    try:
        while not os.waitpid(pid, os.WNOHANG)[0]:
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
    except ChildProcessError:  # its end was seen before
        pass
    return True


class Copy:
    """The bounded copy of the output, each line marked with its stream; an error only ends the copy."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: io.FileIO | None = None
        self._rest: dict[bytes, bytes] = {}
        self._ready: list[bytes] = []
        """Lines to be written."""
        self._size = self._head = 0
        self._shapes = Shapes(most=MIDDLE)
        self._unlike = b""
        """Middle part of the file, after the head."""
        self.error = 0
        """Number of the error that ended it."""
        with self._until_error():
            self._open()

    def _open(self) -> None:
        self._file = io.FileIO(state_dir.append(self._path), "a")

    def add(self, mark: bytes, chunk: bytes) -> None:
        """Add a piece of one stream; whole lines become ready to be written."""
        whole, newline, rest = chunk.rpartition(b"\n")
        before = self._rest.pop(mark, b"")
        if newline:
            whole = before + whole
        else:
            rest = before + rest
        if len(rest) > _LINE:  # keep only the visible end of a progress bar
            rest = rest[rest.rfind(b"\r") + 1 :]
        if len(rest) > _LINE:
            whole, newline, rest = whole + newline + rest, b"\n", b""
        self._rest[mark] = rest
        if newline:
            self._ready.append(mark + whole.replace(b"\n", b"\n" + mark) + b"\n")

    def lose(self, count: int) -> None:
        """Note in place that `count` bytes arrived faster than they could be written."""
        self._end_lines()
        self._ready.append(_remark(count))

    def flush(self) -> None:
        """Write the lines that are ready."""
        text = b"".join(self._ready)
        self._ready.clear()
        if self._file is None or not text:
            return
        with self._until_error():
            rest = memoryview(text)
            while rest:
                rest = rest[self._file.write(rest) :]
            self._size += len(text)
            if self._size > HEAD + 2 * TAIL:
                self._shorten()

    def finish(self) -> None:
        """Write the rest at the end of the output: the last line of a stream may be incomplete."""
        self._end_lines()
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _end_lines(self) -> None:
        self._ready += (mark + rest + b"\n" for mark, rest in self._rest.items() if rest)
        self._rest.clear()

    @contextmanager
    def _until_error(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.error = error.errno or errno.EIO
            if self._file is not None:
                self._file.close()
                self._file = None

    def _shorten(self) -> None:
        whole = self._path.read_bytes()
        if not self._head:
            self._head = whole.rfind(b"\n", 0, HEAD) + 1
            self._shapes.take(whole[: self._head])
            self._shapes.kept.clear()  # they are in the head
        begin = whole.find(b"\n", len(whole) - TAIL) + 1
        head, middle, tail = whole[: self._head], whole[self._head + len(self._unlike) : begin], whole[begin:]
        before = sum(int(count) for count in _REMARK.findall(middle))
        middle = _REMARK.sub(b"", middle)
        self._shapes.take(middle)
        unlike = b"".join(b"%s\n" % row.raw for row in self._shapes.kept)
        remark = _remark(before + max(len(self._unlike) + len(middle) - len(unlike), 0))
        self._unlike = unlike
        state_dir.write(self._path, head + unlike + remark + tail)
        if self._file is not None:
            self._file.close()
        self._open()
        self._size = len(head) + len(unlike) + len(remark) + len(tail)


def _remark(count: int) -> bytes:
    return _LEFT_OUT + b"[dtdebug: about %d bytes are left out here]\n" % count


def read_copy(path: Path) -> bytes:
    """Return the copy without its marks; empty if there is none."""
    try:
        return _MARK.sub(b"", state_dir.read_start(path, HEAD + 3 * TAIL))
    except OSError:
        return b""
