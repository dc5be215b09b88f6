"""Announces violated invariants while the job runs: one line each, as soon as the ranks' notes show it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path, PurePath

from dtdebug.experiments.invariants.read_records import read_ranks
from dtdebug.experiments.invariants.record_types import Step
from dtdebug.experiments.invariants.result import FOLDER, found_in
from dtdebug_taxonomy.model.rank_ranges import spell
from dtdebug_taxonomy.model.training import Violation

_PAUSE, _SHARE = 1.0, 0.02
"""Seconds between two polls of the notes, and the maximum share of a core for them."""
_REVOCABLE = frozenset((
    "not-reduced", "never-reduced", "gradients-differ", "groups-train-apart", "parameters-outside-ddp",
    "parameters-unknown-to-ddp", "parameters-outside-plan", "partly-reduced", "replicas-differ", "buffers-differ",
    "batches-differ", "weights-unchanged", "gathered-without-gradient",
))  # fmt: skip
"""Invariants whose violation a later step may excuse: weight exchange as in local SGD, or a late loss."""
_LATER = 32
"""Steps after which these are announced, marked "so far"."""


class Announcer:
    """Poller of a run's notes."""

    def __init__(self, run: Path, say: Callable[[str], None]) -> None:
        self._folder, self._say = run / FOLDER, say
        self._next = 0.0
        self._size = -1
        self._before: set[str] = set()
        self._said: set[str] = set()

    def tick(self, now: float) -> None:
        """Announce violations found in two consecutive polls: their cause may be noted after them."""
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
    """Return the violation in one line."""
    v = violation
    place = f", {PurePath(v.file).name}:{v.line}" if v.file else ""
    said = f"{v.cause}. {v.means}" if v.cause else v.means
    far = " so far" if v.invariant in _REVOCABLE else ""
    said = f"{said} {v.fix}" if v.fix and not v.cause else said
    return f"watch: {v.invariant}{far}: {spell(v.ranks, 8)}, step {v.step}{place}: {said}"
