"""The short answer to a hang while its cell runs: the lines of both sides, and the fix where the source shows one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtdebug.notebook.failed_cell import hanging_snapshot
from dtdebug.notebook.ranks_seen import RanksSeen
from dtdebug_taxonomy.model.answer import Answer

if TYPE_CHECKING:
    from dtdebug.notebook.live_kernel import Live


def answer_hang(live: Live, seen: RanksSeen) -> Answer | None:
    """Return the answer to the observed hang; None if it has no verdict."""
    if seen.verdict is None or seen.verdict.kind in ("none", "not_understood"):
        return None
    from dtdebug.presentation.cell_answer import answer_of
    from dtdebug.privacy.boundary import diagnose
    from dtdebug_taxonomy.knowledge.loader import load

    snapshot = hanging_snapshot(live.shell, seen)
    return answer_of(diagnose(load(), snapshot), snapshot)
