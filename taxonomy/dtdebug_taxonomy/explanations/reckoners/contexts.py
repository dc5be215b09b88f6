"""Processes of a pasted table that hold memory on devices of others. Unit: processes on devices.

Rule: a process opens a context on the current device, which is device 0 until one is set (PyTorch, "CUDA semantics",
https://docs.pytorch.org/docs/stable/notes/cuda.html).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for
from dtdebug_taxonomy.inference.device_tables import device_usage
from dtdebug_taxonomy.inference.finding import LIKELY

_CAUSES = {"extra_contexts": "something-opens-first-gpu", "all_ranks_on_one": "process-not-bound-to-its-gpu"}


def explain(context: Context) -> Iterator[Explanation]:
    """Yield how the processes of a table are placed, if not each on a device of its own."""
    found = device_usage(context.incident.snapshot)
    if found is None:
        return
    value, what = found
    _, cause = context.knowledge.causes[_CAUSES[value]]
    shown = Reason(evidence="device_usage", means=f"{what}.", source="printed", weight=2.0)
    title = f"{what[:1].upper()}{what[1:]}"
    pattern = context.knowledge.patterns[cause.pattern].name
    made = explanation_for("D.2.2", title, cause.why, cause.fix, LIKELY, shown, pattern=pattern)
    yield msgspec.structs.replace(made, cause=cause.id)
