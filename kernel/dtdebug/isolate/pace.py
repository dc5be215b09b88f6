"""How long a step of a run takes, as its ranks note it while `dtdebug run --watch` looks: the slowest rank counts."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from dtdebug.isolate.identity import FailureIdentity
from dtdebug.watch.notes import read_ranks
from dtdebug.watch.result import FOLDER, watched
from dtdebug.watch.rows import Phases
from dtdebug_taxonomy.snapshot import Snapshot

FASTER = 0.67
"""Share of the seconds of a step up to which a run is called faster; hosts with other work vary by less."""
_SECONDS, _STEPS = 12.0, 8
"""What is measured of a run before it is ended, after its first windows."""
_LEAST = 0.1
"""Share of a step that counts at least, however busy the host is."""


class RunPace(NamedTuple):
    """How fast a run is."""

    seconds: float
    of: str
    """`step`, or `run` where no steps were counted."""
    enough: bool = False
    """No more need be measured."""
    busy: bool = False
    """Other programs took more than half of the time: what is left says nothing."""

    @property
    def text(self) -> str:
        """In words."""
        return f"{'a step' if self.of == 'step' else 'the whole run'} takes {self.seconds:.3g} s"


def pace(run: Path, whole: float | None, others: float = 0.0) -> RunPace | None:
    """The pace of a run by the folder that watches it; `whole`: the seconds that it took, if it has ended well.

    The first window in which a rank counts steps is left out where others follow: there workers start, and code is
    compiled. `others`: the share of the processors' work that was not the run's; as much of the time for which the
    ranks waited for a processor does not count.
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
    """Slowness as a failure: who is late, if the ranks have told."""
    seen = watched(run)
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
    """Whether it is as slow as before, or slower than the user accepts."""
    if above is not None:
        return found.seconds > above
    return reference is None or found.seconds > FASTER * reference.pace


def snapshot(run: Path) -> Snapshot | None:
    """What was seen of a run that was slow."""
    seen = watched(run)
    return Snapshot(watched=seen.violations, late=seen.late) if seen is not None else None
