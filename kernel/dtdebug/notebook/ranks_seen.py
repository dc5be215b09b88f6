"""Types of an observation of a kernel's ranks and of the conclusion from it."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from dtdebug.notebook.cells import RunningCell
from dtdebug_taxonomy.model.ranks import RankState, Verdict
from dtdebug_taxonomy.model.ranks_view import Timeline
from dtdebug_taxonomy.model.snapshot import Gpu

Kind = Literal["state", "hang"]


class RanksSeen(msgspec.Struct, frozen=True, kw_only=True):
    """Observation of a kernel's ranks at one moment."""

    kind: Kind
    here: RunningCell = RunningCell()
    ranks: tuple[RankState, ...] = ()
    verdict: Verdict | None = None
    gpus: tuple[Gpu, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    """Duration of the observation."""
    moved: bool | None = None
    """True if something moved between two looks at the ranks; None if they were not compared."""
    resting: float = 0.0
    """Seconds for which no rank has used a CPU, if there is no other sign of progress."""
    timeline: Timeline | None = None


class Conclusion(NamedTuple):
    """Conclusion from observed states."""

    verdict: Verdict | None = None
    notes: tuple[str, ...] = ()
    timeline: Timeline | None = None
    """Latest collectives, if ranks have left dumps."""
    is_earlier: bool = False
    """True if the verdict is the one that was measured before the ranks ended."""
