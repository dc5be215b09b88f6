"""What a job prints goes on as it comes, from a process of its own; a bounded copy is kept.

The relay is a process and not a thread: nothing that collects delays a byte, and if the collector is killed the job
still prints. Where the job printed to a terminal it gets a terminal, where it printed to a pipe or a file it gets a
pipe. When our reader has gone we close our end, so that the job learns of it as it did before.
"""

from __future__ import annotations

import fcntl
import io
import mmap
import os
import re
import select
import signal
import struct
import termios
import threading
import time
from contextlib import suppress
from pathlib import Path

from dtdebug import state

HEAD, TAIL = 256 << 10, 1 << 20
"""Bytes of the output that are kept: of the beginning always, of the end up to twice as much."""
_CHUNK = 64 << 10
_BOTH, _LEFT_OUT = b"* ", b"~ "
"""Marks of a line: `1 ` standard output, `2 ` standard error, both in one, and our own remark."""
_MARK = re.compile(rb"(?m)^[12*~] ")
_COUNTER = struct.Struct("=QB")
"""Bytes passed on, and the last of them."""
_MOMENT = struct.Struct("=d")
_TOGETHER, _PATIENCE = 0.1, 0.05
"""Seconds between two receipts of what was sent to a group, and that the other one is waited for."""


class Channel:
    """One stream between the job and us."""

    def __init__(self, targets: tuple[int, ...]) -> None:
        self.targets = targets
        """Descriptors of the job that it stands for; the first is ours to write to."""
        self.mark = _BOTH if len(targets) > 1 else b"%d " % targets[0]
        self.terminal = os.isatty(targets[0])
        self.ours, self.theirs = _terminal(targets[0]) if self.terminal else os.pipe()

    def resize(self) -> None:
        """Gives the job's terminal the size of ours."""
        with suppress(OSError):
            fcntl.ioctl(self.ours, termios.TIOCSWINSZ, fcntl.ioctl(self.targets[0], termios.TIOCGWINSZ, bytes(8)))


def channels() -> list[Channel]:
    """A channel for each of our two streams; one for both where they are the same, so that their order stays."""
    one, two = os.fstat(1), os.fstat(2)
    try:
        os.fstat(0)
    except OSError:  # our pipes must not take its number; the job finds it closed as ever
        os.open(os.devnull, os.O_RDONLY)
    if (one.st_dev, one.st_ino) == (two.st_dev, two.st_ino):
        return [Channel((1, 2))]
    return [Channel((1,)), Channel((2,))]


def _terminal(like: int) -> tuple[int, int]:
    """A pseudo-terminal as the given one, but that changes no byte: the real one does that."""
    ours, theirs = os.openpty()
    mode = termios.tcgetattr(like)
    mode[1] &= ~termios.OPOST
    termios.tcsetattr(theirs, termios.TCSANOW, mode)
    with suppress(OSError):
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, fcntl.ioctl(like, termios.TIOCGWINSZ, bytes(8)))
    return ours, theirs


class Relay:
    """Passes the channels on until nobody can write to them any more."""

    def __init__(self, through: list[Channel], log: Path) -> None:
        self._channels = through
        self._log = log
        self._counters = mmap.mmap(-1, _COUNTER.size * len(through))
        self._received = mmap.mmap(-1, _MOMENT.size * signal.NSIG)
        self._left = len(through)
        self._lock = threading.Lock()
        self._pid: int | None = None
        self._ended = threading.Event()

    def start(self, job: int) -> None:
        """Begins, in a child; in threads of this process where there can be no child."""
        for channel in self._channels:
            os.close(channel.theirs)
        try:
            self._pid = os.fork()
        except OSError:
            self._begin()
            return
        if self._pid:
            for channel in self._channels:
                os.close(channel.ours)
            return
        try:
            self._child(job)
        finally:
            os._exit(0)

    def passed(self) -> int:
        """Bytes that went through so far."""
        return sum(self._counter(n)[0] for n in range(len(self._channels)))

    def in_line(self) -> bool:
        """The job has begun a line on standard error (or on what is both) and not ended it."""
        ends = [self._counter(n) for n, channel in enumerate(self._channels) if 2 in channel.targets]
        return any(count and last not in b"\n" for count, last in ends)

    def got(self, number: int) -> bool:
        """The relay, too, has just received that signal: it was sent to our group, and the job has it already."""
        began = time.monotonic()
        while self._pid and time.monotonic() - began < _PATIENCE:
            (moment,) = _MOMENT.unpack_from(self._received, number * _MOMENT.size)
            if abs(began - moment) < _TOGETHER:
                return True
            time.sleep(0.002)
        return False

    def wait(self, seconds: float) -> bool:
        """All is passed on; False where processes that outlive the job still hold the streams after that time."""
        if self._pid is None:
            return self._ended.wait(seconds)
        end = time.monotonic() + seconds
        while not os.waitpid(self._pid, os.WNOHANG)[0]:
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
        return True

    def _counter(self, number: int) -> tuple[int, int]:
        count, last = _COUNTER.unpack_from(self._counters, number * _COUNTER.size)
        return count, last

    def _child(self, job: int) -> None:
        """The signals of the launcher are blocked here, too: only the end of the streams ends this process."""
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        self._begin()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        while not self._ended.is_set():
            # Woken by the last pump with the signal that also tells of a new size of the window.
            number = signal.sigwait(blocked)
            if self._ended.is_set():
                return
            if number != signal.SIGWINCH:
                _MOMENT.pack_into(self._received, number * _MOMENT.size, time.monotonic())
                continue
            for channel in filter(lambda c: c.terminal, self._channels):
                channel.resize()
                with suppress(OSError):  # it may have read the old size before we set the new one
                    os.kill(job, signal.SIGWINCH)

    def _begin(self) -> None:
        copy = Copy(self._log)
        for number, channel in enumerate(self._channels):
            threading.Thread(target=self._pump, args=(number, channel, copy), daemon=True).start()

    def _pump(self, number: int, channel: Channel, copy: Copy) -> None:
        passed = 0
        try:
            while chunk := _read(channel.ours):
                _write(channel.targets[0], chunk)
                passed += len(chunk)
                _COUNTER.pack_into(self._counters, number * _COUNTER.size, passed, chunk[-1])
                copy.add(channel.mark, chunk)
        except OSError:
            pass  # the reader has gone
        finally:
            os.close(channel.ours)
            copy.end(channel.mark)
            with self._lock:
                self._left -= 1
                if not self._left:
                    copy.close()
                    self._ended.set()
                    if self._pid == 0:
                        os.kill(os.getpid(), signal.SIGWINCH)


def _read(source: int) -> bytes:
    try:
        return os.read(source, _CHUNK)
    except OSError:  # the last writer of a terminal has gone
        return b""


def _write(target: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        try:
            rest = rest[os.write(target, rest) :]
        except BlockingIOError:  # whoever started us made the stream so
            select.select([], [target], [])


class Copy:
    """The bounded copy of the output, each line marked with its stream; a full disk only ends the copy."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: io.FileIO | None = None
        self._rest: dict[bytes, bytes] = {}
        self._lock = threading.Lock()
        self._size = self._head = self._left_out = 0
        with suppress(OSError):
            self._open()

    def _open(self) -> None:
        self._file = io.FileIO(state.append(self._path), "a")

    def add(self, mark: bytes, chunk: bytes) -> None:
        """Takes a piece of one stream; whole lines are written."""
        with self._lock:
            whole, newline, rest = (self._rest.pop(mark, b"") + chunk).rpartition(b"\n")
            if len(rest) > _CHUNK:  # of a progress bar only what is seen last
                rest = rest[rest.rfind(b"\r") + 1 :]
            if len(rest) > _CHUNK:
                whole, newline, rest = whole + newline + rest, b"\n", b""
            self._rest[mark] = rest
            if newline:
                self._save(mark + whole.replace(b"\n", b"\n" + mark) + b"\n")

    def end(self, mark: bytes) -> None:
        """The stream has ended: its last line may have no end."""
        with self._lock:
            if rest := self._rest.pop(mark, b""):
                self._save(mark + rest + b"\n")

    def close(self) -> None:
        """Nothing comes any more."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _save(self, text: bytes) -> None:
        if self._file is None:
            return
        try:
            self._file.write(text)
            self._size += len(text)
            if self._size > HEAD + 2 * TAIL:
                self._shorten()
        except OSError:
            self.close()

    def _shorten(self) -> None:
        whole = self._path.read_bytes()
        self._head = self._head or whole.rfind(b"\n", 0, HEAD) + 1
        head = whole[: self._head]
        tail = whole[whole.find(b"\n", len(whole) - TAIL) + 1 :]
        self._left_out += len(whole) - len(head) - len(tail)
        remark = _LEFT_OUT + b"[dtdebug: about %d bytes are left out here]\n" % self._left_out
        state.write(self._path, head + remark + tail)
        if self._file is not None:
            self._file.close()
        self._open()
        self._size = len(head) + len(remark) + len(tail)


def kept(path: Path) -> bytes:
    """The copy without its marks; empty if there is none."""
    try:
        return _MARK.sub(b"", state.read(path, HEAD + 3 * TAIL))
    except OSError:
        return b""
