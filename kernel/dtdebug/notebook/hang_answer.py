"""The short answer to a hang while its cell runs: the lines of both sides, and the fix where the source shows one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtdebug.notebook.failed_cell import hanging_snapshot
from dtdebug.notebook.ranks_seen import RanksSeen
from dtdebug_taxonomy.model.answer import Answer

if TYPE_CHECKING:
    from dtdebug.notebook.live_kernel import Live
    from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
    from dtdebug_taxonomy.model.snapshot import Snapshot


def answer_hang(live: Live, seen: RanksSeen) -> Answer | None:
    """Return the answer to the observed hang; None if it has no verdict."""
    found = diagnose_hang(live, seen)
    if found is None:
        return None
    from dtdebug.presentation.cell_answer import answer_of

    snapshot, diagnosis = found
    return answer_of(diagnosis, snapshot)


def diagnose_hang(live: Live, seen: RanksSeen) -> tuple[Snapshot, Diagnosis] | None:
    """Return the snapshot and diagnosis of the observed hang; None if it has no verdict."""
    if seen.verdict is None or seen.verdict.kind in ("none", "not_understood"):
        return None
    from dtdebug.privacy.boundary import diagnose
    from dtdebug_taxonomy.knowledge.loader import load

    snapshot = hanging_snapshot(live.shell, seen)
    return snapshot, diagnose(load(), snapshot)
