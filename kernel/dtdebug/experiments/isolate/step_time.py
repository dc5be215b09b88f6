"""Measures the seconds per step of a run from the ranks' notes of `dtdebug run --watch`; the slowest rank counts."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from dtdebug.experiments.invariants.read_records import read_ranks
from dtdebug.experiments.invariants.record_types import Phases
from dtdebug.experiments.invariants.result import FOLDER, watch_result
from dtdebug.experiments.isolate.failure_identity import FailureIdentity
from dtdebug_taxonomy.model.snapshot import Snapshot

FASTER = 0.67
"""Maximum share of the seconds per step at which a run counts as faster; other work on a host changes less."""
_SECONDS, _STEPS = 12.0, 8
"""Seconds and steps to measure, after the first windows, before a run is ended."""
_LEAST = 0.1
"""Minimum share of a step that counts, however busy the host is."""


class RunPace(NamedTuple):
    """Speed of a run."""

    seconds: float
    of: str
    """`step`, or `run` if no steps were counted."""
    enough: bool = False
    """Enough was measured to end the run."""
    busy: bool = False
    """Other programs took more than half of the time: the remainder is meaningless."""

    @property
    def text(self) -> str:
        """Description of the speed."""
        return f"{'a step' if self.of == 'step' else 'the whole run'} takes {self.seconds:.3g} s"


def pace(run: Path, whole: float | None, others: float = 0.0) -> RunPace | None:
    """Return the pace of a run from its watch folder; `whole`: its total seconds if it succeeded.

    The first window in which a rank counts steps is dropped if others follow: workers start and code is compiled there.
    `others`: share of the processors' work that was not the run's; the same share of the time that ranks waited for a
    processor does not count.
    """
    found, enough, waited = [], True, [0.0]
    for rank in read_ranks(run / FOLDER) if (run / FOLDER).is_dir() else ():
        rows = rank.of(Phases)
        begun = next((n for n, row in enumerate(rows) if row.steps), len(rows))
        rows = rows[begun + 1 :] if len(rows) > begun + 1 else rows[begun:]
        steps, seconds = sum(row.steps for row in rows), sum(row.seconds for row in rows)
        enough = enough and seconds >= _SECONDS and steps >= _STEPS
        if steps:
            found.append(seconds / steps)
            waited.append(sum(row.waited for row in rows) / steps)
    if found:
        slowest = max(found)
        own = slowest - others * max(waited)
        return RunPace(max(own, _LEAST * slowest), "step", enough, busy=own < slowest / 2)
    return RunPace(whole, "run") if whole is not None else None


def failure(found: RunPace, run: Path) -> FailureIdentity:
    """Return slowness as a failure, with the late rank if known."""
    seen = watch_result(run)
    late = next(iter(seen.late), None) if seen is not None else None
    why = f" {late.means}" if late is not None else ""
    return FailureIdentity(
        how="slow",
        type=found.of,
        pace=found.seconds,
        file=Path(late.file).name if late is not None else "",
        line=late.line if late is not None else 0,
        text=f"{found.text[:1].upper()}{found.text[1:]}.{why}",
    )


def is_slow(found: RunPace, reference: FailureIdentity | None, above: float | None) -> bool:
    """True if it is as slow as before, or slower than the user accepts."""
    if above is not None:
        return found.seconds > above
    return reference is None or found.seconds > FASTER * reference.pace


def snapshot(run: Path) -> Snapshot | None:
    """Return the watch's findings about a slow run, or None."""
    seen = watch_result(run)
    return Snapshot(watched=seen.violations, late=seen.late) if seen is not None else None
