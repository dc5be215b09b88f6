"""A notebook's run that met the keys of a failed one: both used the one store that the kernel still serves."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for
from dtdebug_taxonomy.inference.finding import LIKELY, POSSIBLE
from dtdebug_taxonomy.model.snapshot import Snapshot, walk

_REFUSED, _OTHER = 0.9, (POSSIBLE + LIKELY) / 2
"""Probabilities where a rank found no process at an address of the store, and where it failed or waits otherwise."""
_GONE = re.compile(r"Connection refused|timed out connecting|Connect timeout")
_SET_UP = frozenset({"init_process_group", "next_rendezvous", "_create_c10d_store", "rendezvous"})
_PRINTED = re.compile(r"\bin (?:init_process_group|_create_c10d_store)\b|\bconnectFullMesh failed\b")


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the store, if the ranks failed while they looked for each other."""
    snapshot = context.incident.snapshot
    store = snapshot.open_store
    if store is None or not _is_in_set_up(snapshot):
        return
    cell = f"cell [{store.cell}]" if store.cell is not None else "an earlier cell"
    yield explanation_for(
        "B.1",
        f"The ranks met the keys of an earlier run: this kernel still serves the store of {cell} at port {store.port}",
        "The traceback of the failed cell, which IPython keeps for `%debug`, keeps the launcher's store open. The next"
        " launcher in this kernel gets that store again, and its ranks find addresses of processes that have ended.",
        "Run `%dtdebug end`, which closes the store and keeps the kernel's variables, then the cell again.",
        _REFUSED if any(_GONE.search(text) for text in _texts(snapshot)) else _OTHER,
        Reason(
            evidence="store-of-a-failed-run",
            means=f"This process was listening at port {store.port} before the cell ran, and the cell's launcher used"
            " that port.",
            source="measured",
            weight=3.0,
        ),
        pattern="fix communication configuration",
        effort="glance",
        named=False,
    )


def _is_in_set_up(snapshot: Snapshot) -> bool:
    """True if a rank failed in the set-up of the group, or waits there."""
    stacks = [rank.stack for rank in snapshot.ranks] + [info.frames for info in walk(snapshot.exception)]
    if any(frame.function in _SET_UP for stack in stacks for frame in stack):
        return True
    return any(_PRINTED.search(text) for text in _texts(snapshot))


def _texts(snapshot: Snapshot) -> tuple[str, ...]:
    return (snapshot.output, *(info.message for info in walk(snapshot.exception)))
