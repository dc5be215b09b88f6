"""Seeds and threads of a rank: sources of differences between ranks or runs that the program does not mention.

Nothing here imports torch or NumPy: each function gets the module that the program has just imported.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from types import ModuleType
from typing import Any

from dtdebug.experiments.isolate.inside.record_writer import PartNotes


def seeds(name: str, function: str) -> Any:
    """Return a patch of a module's seeding function: `random.seed`, `torch.manual_seed`, `numpy.random.seed`."""

    def patch(module: ModuleType, notes: PartNotes) -> None:
        original, process = getattr(module, function), os.getpid()

        @functools.wraps(original)
        def seed(*args: Any, **kwargs: Any) -> Any:
            if os.getpid() != process or "--multiprocessing-fork" in sys.orig_argv:  # a loader worker has its own
                return original(*args, **kwargs)
            given: Any = (*args, *kwargs.values(), None)[0]
            notes.note("saw", f"seed.{name}", given if given is not None else f"of the system {process}")
            if (wanted := notes.change.get("seeds")) is None:
                return original(*args, **kwargs)
            notes.note("set", "seeds", wanted)
            return original(int(wanted))

        setattr(module, function, seed)

    return patch


def restore_seed(torch: ModuleType, notes: PartNotes) -> None:
    """Set torch's generator to its seed in a recorded run; otherwise each process starts with a different one."""
    wanted = notes.change.get("recorded-seed")
    seed = json.loads(wanted or "{}").get(os.environ.get("RANK", ""))
    if seed is not None:
        torch.random.default_generator.manual_seed(seed)
        notes.note("set", "recorded-seed", seed)


def threads(module: ModuleType, notes: PartNotes) -> None:
    """Patch the number of PyTorch's intra-op threads."""
    original = module.set_num_threads

    @functools.wraps(original)
    def set_num_threads(number: int) -> None:
        if number > 1:
            notes.note("saw", "threads", number)
        original(1 if notes.wants("threads") else number)

    module.set_num_threads = set_num_threads  # type: ignore[attr-defined]
    number = os.environ.get("OMP_NUM_THREADS", "all")
    if number != "1" and "RANK" in os.environ:  # launchers set it for the ranks, not for themselves
        notes.note("saw", "threads", number)
    if notes.wants("threads"):
        original(1)
        notes.note("set", "threads")
