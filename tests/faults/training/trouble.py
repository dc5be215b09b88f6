"""The fault of a job: when and where it strikes, and those that need no collective."""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

HOURS = 10_000


class Trouble:
    """One fault on one rank, at the first time that its spot is met in or after its step."""

    def __init__(self, kind: str, spot: str, step: int, me: bool, fired: Path | None) -> None:
        self.kind, self.spot, self.step, self.me = kind, spot, step, me
        self.now = 0
        self._fired = fired
        self._done = False

    def strikes(self, kind: str, spot: str) -> bool:
        """Whether the fault is this one, here, now; true once."""
        if not self.me or self._done or (kind, spot) != (self.kind, self.spot) or self.now < self.step:
            return False
        self._done = True
        self.note()
        return True

    def note(self) -> None:
        """Leaves a mark that the fault has struck."""
        if self._fired is not None:
            self._fired.write_text(f"{time.time()} {self.now}\n")

    def meet(self, spot: str) -> None:
        """What goes wrong in the rank's own code, if it is to go wrong here."""
        if self.me and self.kind == "straggler" and spot == self.spot:
            time.sleep(0.05 + 0.03 * (self.step % 6))
        for kind, act in ACTS.items():
            if self.strikes(kind, spot):
                act()


def compute_forever() -> None:
    """A loop that never converges."""
    sum(1 for _ in itertools.count())  # fault: busy


def wait_for_storage() -> None:
    """A file system that does not answer."""
    time.sleep(HOURS)  # fault: sleep


def call_extension() -> None:
    """A C extension that is holding the GIL."""
    ctypes.PyDLL(None).sleep(HOURS)  # fault: gil


def take_lock() -> None:
    """A lock that its owner never gives back."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()  # fault: lock


def leave() -> None:
    """A script that believes it is done."""
    sys.exit(0)  # fault: exit


def give_up() -> None:
    """A bad batch."""
    raise ValueError("could not decode sample 17")  # fault: raise


def be_killed() -> None:
    """What the kernel does to the largest process."""
    os.kill(os.getpid(), signal.SIGKILL)  # fault: kill


ACTS: dict[str, Callable[[], None]] = {
    "busy": compute_forever,
    "sleep": wait_for_storage,
    "gil": call_extension,
    "lock": take_lock,
    "exit": leave,
    "raise": give_up,
    "kill": be_killed,
}
