"""Observes how a program starts its own ranks: forked or spawned."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from dtdebug.experiments.isolate.inside.record_writer import PartNotes
from dtdebug.experiments.isolate.inside.torch_features import bound


def patch(module: ModuleType, notes: PartNotes) -> None:
    """Patch the function with which torch and notebook_launcher fork ranks; launchers never fork them."""
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
