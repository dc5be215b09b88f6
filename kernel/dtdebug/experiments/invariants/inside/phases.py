"""Samples the activity of the main thread: loading, forward, backward, communication, and so on.

A sample is a Python stack; its phase follows from its innermost telling frame. One rank's shares mean little: a rank
that waits for a slow one shows a long backward pass. `judge` compares them.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter

from dtdebug.experiments.invariants.inside.record_writer import WatchNotes
from dtdebug.experiments.invariants.inside.steps import Steps
from dtdebug.process.thread_frames import frames_of
from dtdebug_taxonomy.stacks.frames import is_library

_PERIOD, _WINDOW = 0.025, 2.0
"""Seconds between two samples, and of a window whose shares are noted; windows get longer in a long run."""
_LINES, _DEPTH = 6, 200
_TELLS = (
    ("/torch/utils/data/", "loader"),
    ("/torch/distributed/distributed_c10d.py", "communication"),
    ("/torch/distributed/checkpoint/", "save"),
    ("/torch/serialization.py", "save"),
    ("/torch/optim/", "optimizer"),
    ("/torch/autograd/", "backward"),
    ("/torch/nn/modules/module.py", "forward"),
)
"""(part of a file's path, phase); the innermost frame with a match decides."""


class PhaseSampler:
    """Sampler of this process: a daemon thread."""

    def __init__(self, notes: WatchNotes, steps: Steps) -> None:
        self._notes, self._steps = notes, steps
        self._main = threading.main_thread().ident or 0
        self._pid = os.getpid()
        self._kinds: dict[str, str] = {}
        self._waited = _runqueue_seconds()

    def start(self) -> None:
        """Start the sampling thread."""
        threading.Thread(target=self._run, name="dtdebug-phases", daemon=True).start()

    def _run(self) -> None:
        window, begun = _WINDOW, time.monotonic()
        counts: Counter[str] = Counter()
        lines: Counter[tuple[str, str, int]] = Counter()
        first = self._steps.now
        while not self._notes.dead and os.getpid() == self._pid:
            time.sleep(_PERIOD)
            try:
                phase, place = self._look()
                counts[phase] += 1
                if place is not None:
                    lines[(phase, *place)] += 1
                now = time.monotonic()
                if now - begun < window:
                    continue
                self._note(counts, lines, now - begun, self._steps.now - first)
            except Exception as error:
                self._notes.fails(error, "phases")
                return
            first, begun = self._steps.now, now
            window = min(60.0, window * 1.1)
            counts.clear()
            lines.clear()

    def _note(self, counts: Counter[str], lines: Counter[tuple[str, str, int]], seconds: float, steps: int) -> None:
        rows = [[phase, file[:300], line, number] for (phase, file, line), number in lines.most_common(_LINES)]
        waited, self._waited = _runqueue_seconds() - self._waited, _runqueue_seconds()
        self._notes.put(
            "phases", t=round(time.time(), 2), seconds=round(seconds, 3), steps=steps, counts=dict(counts), lines=rows,
            waited=round(waited, 3),
        )  # fmt: skip

    def _look(self) -> tuple[str, tuple[str, int] | None]:
        phase, place = "", None
        for frame in frames_of(self._main, _DEPTH):
            file = frame.f_code.co_filename
            if not phase:
                phase = self._kind(file)
            if place is None and not is_library(file):
                place = (file, frame.f_lineno or 0)
            if phase and place is not None:
                break
        return phase or "other", place

    def _kind(self, file: str) -> str:
        found = self._kinds.get(file)
        if found is None:
            path = file.replace("\\", "/")
            found = self._kinds[file] = next((phase for part, phase in _TELLS if part in path), "")
        return found


def _runqueue_seconds() -> float:
    """Return the seconds that the main thread was runnable without a processor; 0 if the kernel does not count them.

    The second number of schedstat: https://docs.kernel.org/scheduler/sched-stats.html
    """
    try:
        with open("/proc/self/schedstat", encoding="ascii") as file:  # noqa: PTH123 - a rank imports little
            return int(file.read(200).split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
