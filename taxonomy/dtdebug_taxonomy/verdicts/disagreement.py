"""Verdict on ranks that are in different calls: the call of each, and the wrong side if it is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dtdebug_taxonomy.model.claims import Claim, texts
from dtdebug_taxonomy.model.ranks import Alternative, CallSite, CollectiveRef, Kind, Verdict

_SOURCE = "the source says what all of them should call here"
_SHOWN = 4


class Side(NamedTuple):
    """Ranks that are in one call."""

    ranks: tuple[int, ...]
    words: str
    """`ranks 0-2 are in all_reduce #7 (train.py:88)`."""


def disagreement(
    kind: Kind,
    sides: Sequence[Side],
    collective: CollectiveRef,
    where: Mapping[int, CallSite],
    claims: tuple[Claim, ...],
    *,
    culprits: tuple[int, ...] = (),
) -> Verdict:
    """Return the verdict; without `culprits` it states that the wrong side is unknown."""
    everyone = sorted(rank for side in sides for rank in side.ranks)
    waiting = tuple(rank for rank in everyone if rank not in culprits)
    unknown = "" if culprits else "; it is not known which of them is wrong"
    return Verdict(
        kind=kind,
        culprits=culprits,
        waiting=waiting,
        collective=collective,
        sites=tuple(where[rank] for rank in (*culprits, *waiting) if rank in where),
        confidence=0.7 if culprits else 0.5,
        summary=f"The ranks disagree: {', '.join(side.words for side in sides[:_SHOWN])}{unknown}.",
        claims=claims,
        evidence=texts(claims),
        alternatives=tuple(
            Alternative(kind=kind, culprits=side.ranks, because=side.words, refute=_SOURCE) for side in sides[:2]
        ),
    )
