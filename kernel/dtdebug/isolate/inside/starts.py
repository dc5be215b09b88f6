"""How a program starts its own ranks: as copies of itself, or anew."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from dtdebug.isolate.inside.notes import PartNotes
from dtdebug.isolate.inside.parts import bound


def patch(module: ModuleType, notes: PartNotes) -> None:
    """Ranks that are forked: what torch and notebook_launcher start them by. Those of a launcher never are."""
    original = module.start_processes

    @functools.wraps(original)
    def start_processes(*args: Any, **kwargs: Any) -> Any:
        given = bound(original, args, kwargs)
        if given is None or given.arguments.get("start_method") != "fork":
            return original(*args, **kwargs)
        notes.note("saw", "ranks.forked")
        if notes.wants("ranks.start"):
            given.arguments["start_method"] = "spawn"
            notes.note("set", "ranks.start", "spawn")
        return original(*given.args, **given.kwargs)

    module.start_processes = start_processes  # type: ignore[attr-defined]
