"""Passes a job's output on as it comes, from a separate process; another process keeps a bounded copy.

The relay is a process and not a thread: nothing that collects delays a byte, and if the collector is killed the job
still prints. It touches no file: the process that writes the copy may have to wait for a disk. If the job printed to a
terminal it gets a terminal, if it printed to a pipe or a file it gets a pipe. When our reader has gone we close our
end, so that the job notices it as before.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import select
import signal
import struct
import termios
import threading
import time
from contextlib import suppress
from pathlib import Path

from dtdebug.live.job.output_store import BOTH, Keeper, fork, wait_for_exit

_CHUNK, _PIPE = 256 << 10, 1 << 20
"""Bytes read at once, and the capacity of a pipe to or from us where the system allows it."""
_COUNTER = struct.Struct("=QB")
"""Number of bytes passed on, and the last of them."""
_MOMENT = struct.Struct("=d")
_TOGETHER, _PATIENCE = 0.1, 0.05
"""Maximum seconds between two receipts of a signal to the group, and seconds to wait for the other receipt."""


class RelayedStream:
    """One stream between the job and us."""

    def __init__(self, targets: tuple[int, ...]) -> None:
        self.targets = targets
        """Descriptors of the job that it replaces; we write to the first one."""
        self.mark = BOTH if len(targets) > 1 else b"%d " % targets[0]
        self.terminal = os.isatty(targets[0])
        self.ours, self.theirs = _terminal(targets[0]) if self.terminal else _pipe()

    def resize(self) -> None:
        """Set the job's terminal to the size of ours."""
        with suppress(OSError):
            fcntl.ioctl(self.ours, termios.TIOCSWINSZ, fcntl.ioctl(self.targets[0], termios.TIOCGWINSZ, bytes(8)))


def channels() -> list[RelayedStream]:
    """Return a channel for each of our two streams; one for both if they are the same, which preserves their order."""
    one, two = os.fstat(1), os.fstat(2)
    try:
        os.fstat(0)
    except OSError:  # our pipes must not take its number; the job still finds it closed
        os.open(os.devnull, os.O_RDONLY)
    if (one.st_dev, one.st_ino) == (two.st_dev, two.st_ino):
        return [RelayedStream((1, 2))]
    return [RelayedStream((1,)), RelayedStream((2,))]


def _pipe() -> tuple[int, int]:
    """Open a large pipe, so that a job that prints fast is woken seldom."""
    ours, theirs = os.pipe()
    _widen(ours)
    return ours, theirs


def _widen(pipe: int) -> None:
    with suppress(OSError, AttributeError):  # not a pipe, limited by the system, or no such call
        if fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) < _PIPE:
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)


def _terminal(like: int) -> tuple[int, int]:
    """Open a pseudo-terminal like the given one that changes no byte: the real one does that."""
    ours, theirs = os.openpty()
    mode = termios.tcgetattr(like)
    mode[1] &= ~termios.OPOST
    termios.tcsetattr(theirs, termios.TCSANOW, mode)
    with suppress(OSError):
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, fcntl.ioctl(like, termios.TIOCGWINSZ, bytes(8)))
    return ours, theirs


class Relay:
    """Passes the channels on until no process can write to them."""

    def __init__(self, through: list[RelayedStream], log: Path) -> None:
        self._channels = through
        self._copy = Keeper(log)
        self._counters = mmap.mmap(-1, _COUNTER.size * len(through))
        self._received = mmap.mmap(-1, _MOMENT.size * signal.NSIG)
        self._left = len(through)
        self._lock = threading.Lock()
        self._pid: int | None = None
        self._ended = threading.Event()

    def start(self, job: int) -> None:
        """Start in a child; in threads of this process if there can't be one."""
        for channel in self._channels:
            os.close(channel.theirs)
        self._pid = fork(lambda: self._child(job))
        if self._pid is None:
            self._begin()
        else:
            for channel in self._channels:
                os.close(channel.ours)
        self._copy.start(apart=self._pid is not None)

    def passed_bytes(self) -> int:
        """Return the number of bytes passed on so far."""
        return sum(self._counter(n)[0] for n in range(len(self._channels)))

    def notes(self) -> tuple[str, ...]:
        """Return a note on lost output and the reason; empty if nothing was lost."""
        missing, why = self.passed_bytes() - self._copy.written_bytes(), self._copy.trouble()
        return (f"{missing:,} bytes of what the job printed were not kept: {why}",) if missing > 0 else ()

    def in_line(self) -> bool:
        """True if the job has begun a line on standard error, or on the joint stream, and not ended it."""
        ends = [self._counter(n) for n, channel in enumerate(self._channels) if 2 in channel.targets]
        return any(count and last not in b"\n" for count, last in ends)

    def got(self, number: int) -> bool:
        """True if the relay has just received that signal too: it was sent to our group, so the job has received it."""
        began = time.monotonic()
        while self._pid and time.monotonic() - began < _PATIENCE:
            (moment,) = _MOMENT.unpack_from(self._received, number * _MOMENT.size)
            if abs(began - moment) < _TOGETHER:
                return True
            time.sleep(0.002)
        return False

    def wait(self, seconds: float) -> bool:
        """True if everything is passed on; False if processes that outlive the job still hold the streams by then."""
        return wait_for_exit(self._pid, seconds) if self._pid else self._ended.wait(seconds)

    def wait_for_copy(self, seconds: float) -> bool:
        """True if the copy is as complete as it will be; False if the disk takes longer."""
        return self._copy.wait(seconds)

    def _counter(self, number: int) -> tuple[int, int]:
        count, last = _COUNTER.unpack_from(self._counters, number * _COUNTER.size)
        return count, last

    def _child(self, job: int) -> None:
        """Run the child with the launcher's signals blocked: only the end of the streams ends this process."""
        self._pid = 0
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        self._begin()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        while not self._ended.is_set():
            # The last pump wakes it with the signal that also reports a new window size.
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
        for number, channel in enumerate(self._channels):
            threading.Thread(target=self._pump, args=(number, channel), daemon=True).start()

    def _pump(self, number: int, channel: RelayedStream) -> None:
        passed, chunk = 0, memoryview(bytearray(_CHUNK))
        _widen(channel.targets[0])  # our reader, too, is woken seldom
        try:
            while size := _read(channel.ours, chunk):
                _write(channel.targets[0], chunk[:size])
                passed += size
                _COUNTER.pack_into(self._counters, number * _COUNTER.size, passed, chunk[size - 1])
                self._copy.put(channel.mark, chunk[:size])
        except OSError:
            pass  # the reader has gone
        finally:
            os.close(channel.ours)
            with self._lock:
                self._left -= 1
                if not self._left:
                    self._copy.end()
                    self._ended.set()
                    if self._pid == 0:
                        os.kill(os.getpid(), signal.SIGWINCH)


def _read(source: int, chunk: memoryview) -> int:
    try:
        return os.readv(source, [chunk])
    except OSError:  # the last writer of a terminal has gone
        return 0


def _write(target: int, rest: memoryview) -> None:
    while rest:
        try:
            rest = rest[os.write(target, rest) :]
        except BlockingIOError:  # set by the process that started us
            select.select([], [target], [])
