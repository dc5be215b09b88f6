"""Completes the case of a running job by what NCCL's RAS says of it, also of ranks on hosts that were not asked."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec.structs import replace

from dtdebug.live.probe import nccl_ras
from dtdebug.recorded.nccl_ras import RasError, Status, verdict_of
from dtdebug_taxonomy.model.ranks import RankState, Verdict
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.case_json import Case

_PAUSE = 2.0
"""Seconds between two questions, if ranks are behind in the first answer."""


def with_ras(case: Case, states: Sequence[RankState], *, pause: float = _PAUSE) -> Case:
    """Return the case with what RAS says: as its verdict if it names no rank itself, else as one more record."""
    port = nccl_ras.port_of(states)
    if port is None:
        return case
    try:
        seen = _ask(port, pause)
    except RasError as error:
        return replace(case, notes=(*case.notes, str(error)))
    found, _ = verdict_of(seen)
    said = f"NCCL's RAS: {found.summary}" if "RAS" not in found.summary else found.summary
    if not found.culprits or case.verdict.culprits or case.verdict.kind not in ("not_understood", "none"):
        verdict = replace(case.verdict, evidence=(*case.verdict.evidence, said))
        return replace(case, verdict=verdict)
    ranks = _global_ranks(found, seen[-1], states)
    if ranks is None:
        return replace(case, notes=(said, *case.notes))
    late = replace(ranks, evidence=(*ranks.evidence, *case.verdict.evidence), open=ranks.kind == "not_arrived")
    return _judge(replace(case, verdict=late), states)


def _ask(port: int, pause: float) -> list[Status]:
    first = nccl_ras.ask(port)
    if not any(m.what != "status" for c in first.communicators for m in c.mismatches):
        return [first]
    time.sleep(pause)
    return [first, nccl_ras.ask(port)]


def _global_ranks(found: Verdict, status: Status, states: Sequence[RankState]) -> Verdict | None:
    """Return the verdict if ranks of its communicator are ranks of the job: it then has all GPUs; else None."""
    world = max((s.world_size or 0 for s in states), default=0) or status.gpus
    largest = max((c.size or 0 for c in status.communicators), default=0)
    return found if world and largest == world else None


def _judge(case: Case, states: Sequence[RankState]) -> Case:
    from dtdebug.privacy.boundary import diagnose
    from dtdebug_taxonomy.knowledge.loader import load

    snapshot = Snapshot(ranks=tuple(states), verdict=case.verdict, notes=case.notes)
    return replace(case, diagnosis=diagnose(load(), snapshot), next="")
