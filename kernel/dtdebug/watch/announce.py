"""Says while the job runs what does not hold: a line for each invariant, as soon as the notes of the ranks show it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path, PurePath

from dtdebug.watch.notes import read_ranks
from dtdebug.watch.result import FOLDER, found_in
from dtdebug.watch.rows import Step
from dtdebug_taxonomy.spelling import spell
from dtdebug_taxonomy.watched import Violation

_PAUSE, _SHARE = 1.0, 0.02
"""Seconds between two looks at the notes, and the share of a core that they may take."""
_REVOCABLE = frozenset((
    "not-reduced", "never-reduced", "gradients-differ", "groups-train-apart", "parameters-outside-ddp",
    "parameters-unknown-to-ddp", "parameters-outside-plan", "partly-reduced", "replicas-differ", "buffers-differ",
    "batches-differ", "weights-unchanged", "gathered-without-gradient",
))  # fmt: skip
"""What a later step may show to be meant, by an exchange of weights as in local SGD or a loss that comes late."""
_LATER = 32
"""Steps after which those are said, as what holds so far."""


class Announcer:
    """Looks at the notes of a run from time to time."""

    def __init__(self, run: Path, say: Callable[[str], None]) -> None:
        self._folder, self._say = run / FOLDER, say
        self._next = 0.0
        self._size = -1
        self._before: set[str] = set()
        self._said: set[str] = set()

    def tick(self, now: float) -> None:
        """Says what two looks in a row have shown: what explains another violation may be noted after it."""
        if now < self._next or not self._folder.is_dir():
            return
        size = sum(path.stat().st_size for path in self._folder.glob("*.jsonl"))
        if size != self._size or self._before - self._said:
            self._size = size
            self._look()
        self._next = now + max(_PAUSE, (time.monotonic() - now) / _SHARE)

    def _look(self) -> None:
        ranks = read_ranks(self._folder)
        steps = max((row.s for rank in ranks for row in rank.of(Step)[-1:]), default=0)
        seen = [v for v in found_in(ranks) if v.invariant not in _REVOCABLE or steps >= v.step + _LATER]
        for violation in seen:
            if violation.invariant in self._before and violation.invariant not in self._said:
                self._said.add(violation.invariant)
                self._say(violation_line(violation))
        self._before = {v.invariant for v in seen}


def violation_line(violation: Violation) -> str:
    """The violation in one line."""
    v = violation
    place = f", {PurePath(v.file).name}:{v.line}" if v.file else ""
    far = " so far" if v.invariant in _REVOCABLE else ""
    return f"watch: {v.invariant}{far}: {spell(v.ranks, 8)}, step {v.step}{place}: {v.means}"
