"""Notes of ranks on a comparison with the plan, and the verdict on them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from dtdebug.experiments.repeat import notes
from dtdebug.privacy.sanitize import one_line
from dtdebug_taxonomy.model.training import Violation

FOLDER = "contract"
"""Folder of the ranks' notes, below the run's folder."""
_BYTES = 1 << 20


class Departure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """End of a rank's comparison."""

    rank: int
    world: int
    compared: int = 0
    """Calls that were as planned."""
    is_kept: bool = False
    """The rank came to the end of its plan."""
    file: str = ""
    line: int = 0
    begun: str = ""
    """Call that is not planned; empty if the rank ended."""
    expected: tuple[str, ...] = ()
    """Calls that are planned there; none if the plan has ended."""
    expected_line: str = ""
    rounds: str = ""
    last: str = ""
    """Line of the last call that was as planned."""

    def sentence(self) -> str:
        """Return what the rank did, and what is planned."""
        place = f"collective {self.compared + 1}"
        planned = " or ".join(self.expected) or "nothing more"
        where = f" ({self.expected_line}{', ' + self.rounds if self.rounds else ''})" if self.expected_line else ""
        done = f"begins {self.begun}" if self.begun else f"ended after {self.compared} collectives"
        at = f" at {Path(self.file).name}:{self.line}" if self.line else ""
        return f"{done}{at}; the contract has {planned}{where} as its {place}"


_ROWS: msgspec.json.Decoder[Departure] = msgspec.json.Decoder(Departure)


def contract_result(run: Path) -> notes.Noted | None:
    """Return the result from the folder of a run, or None if no plan was given."""
    folder = run / FOLDER
    if not folder.is_dir():
        return None
    rows = notes.read_rows(folder, _ROWS, _BYTES)
    left = sorted((r for r in rows if not r.is_kept), key=lambda r: (r.compared, r.rank))
    if not left:
        count = len({r.rank for r in rows})
        least = min((r.compared for r in rows), default=0)
        said = f"{count} ranks kept it, {least} collectives each at least" if rows else "no rank began a collective"
        return notes.Noted(note=f"contract: {said}")
    first = left[0]  # later ones may follow from it
    alike = [r for r in left if (r.compared, r.begun, r.line) == (first.compared, first.begun, first.line)]
    ranks = tuple(sorted({r.rank for r in alike}))
    if len(ranks) == first.world and first.world > 1:
        said = f"contract: all ranks leave it alike, so none waits for another: each {first.sentence()}"
        return notes.Noted(note=one_line(said, 400))
    return notes.Noted(violations=(notes.shown(_violation(first, ranks)),))


def _violation(first: Departure, ranks: tuple[int, ...]) -> Violation:
    one = len(ranks) == 1
    who = "Rank" if one else "Ranks"
    who += " " + ", ".join(map(str, ranks[:8])) + ", ..." * (len(ranks) > 8)
    planned = " or ".join(first.expected) or "nothing more"
    does = f"begin{'s' * one} {first.begun}" if first.begun else "ended"
    where = f", {first.rounds}" if first.rounds else ""
    return Violation(
        invariant="calls-as-planned",
        ranks=ranks,
        step=1,
        file=first.file,
        line=first.line,
        symptom="D.2.1",
        means=one_line(
            f"After {first.compared} collectives as planned (the last at {first.last or 'an unknown line'}) the next "
            f"one is {first.begun or 'none'}; planned is {planned} ({first.expected_line or 'the end'}{where}).",
            600,
        ),
        cause=f"{who} {does} where the contract has {planned}",
        fix="Let all ranks make the same calls: the others wait for this one, or will.",
    )
