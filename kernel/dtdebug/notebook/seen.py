"""What was seen of the ranks of a kernel, and what follows from it."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from dtdebug.notebook.cells import Here
from dtdebug_taxonomy.ranks import RankState, Verdict
from dtdebug_taxonomy.snapshot import Gpu
from dtdebug_taxonomy.view import Timeline

Kind = Literal["state", "hang"]


class RanksSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of the ranks of a kernel at one moment."""

    kind: Kind
    here: Here = Here()
    ranks: tuple[RankState, ...] = ()
    verdict: Verdict | None = None
    gpus: tuple[Gpu, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    """How long it took to find out."""
    moved: bool | None = None
    """Something moved between two looks at the ranks; None where they were not compared."""
    resting: float = 0.0
    """Seconds for which no rank has used a processor, where nothing else tells of progress."""
    timeline: Timeline | None = None


class Conclusion(NamedTuple):
    """What follows from states that were seen."""

    verdict: Verdict | None = None
    notes: tuple[str, ...] = ()
    timeline: Timeline | None = None
    """The latest collectives, where ranks have left dumps."""
