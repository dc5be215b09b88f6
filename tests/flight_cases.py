"""What PyTorch's own tests of its flight-recorder analyzer say, as data, with what dtdebug should answer.

The facts are those of test/distributed/flight_recorder/test_fr_analysis.py in pytorch/pytorch; `upstream` is what the
analyzer of torch 2.13 makes of the same entries (`test_flight_analyzer.py` asks it). Upstream compares two events or
two ranks; here four ranks make the call, one of them the odd one, so that a majority exists: each case is there with
the odd one first, because upstream takes the first rank that it reads for right, and once in between.

Where dtdebug should differ, `differs` says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

WORLD = 4
BEGIN = 1_760_000_000_000_000_000
SQUARE = [[4, 4]]
TALL = [[5, 4]]


class Event(NamedTuple):
    """One entry, as far as analyzers look at it."""

    op: str
    inputs: list[list[int]] = SQUARE
    outputs: list[list[int]] = SQUARE
    state: str = "scheduled"
    output_dtype: str = "Float"
    input_dtype: str = "Float"
    group: str = "0"
    seq: int = 1
    backend: str = "nccl"


class Pair(NamedTuple):
    """A call that most ranks make, and what one makes in its place."""

    name: str
    common: Event
    odd: Event
    upstream: str
    kinds: tuple[str, ...]
    """Any of these is right; without a culprit if `blamed` is not set."""
    blamed: bool = False
    stays: str = ""
    """Who never finishes what all have begun: the `odd` rank, or the `others`."""
    differs: str = ""


QUIET = ("none", "fabric")
"""All have called the same and none has finished: a stall, or a dump taken in flight."""

PAIRS = (
    Pair("the same all_reduce", Event("all_reduce"), Event("all_reduce"), "FULLY_MATCHED", QUIET),
    Pair(
        "all_gather for all_reduce",
        Event("all_reduce"),
        Event("all_gather", outputs=[[16 * WORLD]]),
        "COLLECTIVE_TYPE_MISMATCH",
        ("replaced",),
        blamed=True,
    ),
    Pair(
        "all_to_all",
        Event("all_to_all"),
        Event("all_to_all"),
        "UNDECIDED",
        QUIET,
        differs="splits may differ by rank; sums that agree settle it, so nothing is left undecided",
    ),
    Pair(
        "another input size",
        Event("all_reduce"),
        Event("all_reduce", TALL),
        "SIZE_OR_SYNTAX_MISMATCH",
        ("wrong_size",),
        blamed=True,
    ),
    Pair(
        "another output size",
        Event("all_reduce"),
        Event("all_reduce", outputs=TALL),
        "SIZE_OR_SYNTAX_MISMATCH",
        ("wrong_size",),
        blamed=True,
    ),
    Pair(
        "output unlike input on all ranks",
        Event("all_reduce", outputs=TALL),
        Event("all_reduce", outputs=TALL),
        "SIZE_OR_SYNTAX_MISMATCH",
        (*QUIET, "wrong_size"),
        differs="all ranks made the same call, so none of them is the culprit",
    ),
    Pair(
        "finished on one rank only",
        Event("all_reduce"),
        Event("all_reduce", state="completed"),
        "COLLECTIVE_STATE_MISMATCH",
        ("fabric",),
        stays="others",
        differs="all began it: who has finished has done nothing wrong, the devices of those who never do are first",
    ),
    Pair(
        "finished on all ranks but one",
        Event("all_reduce", state="completed"),
        Event("all_reduce"),
        "COLLECTIVE_STATE_MISMATCH",
        ("fabric",),
        stays="odd",
        differs="all began it: who has finished has done nothing wrong, the device of the one who never does is first",
    ),
    Pair(
        "another output type",
        Event("all_reduce"),
        Event("all_reduce", output_dtype="Half", input_dtype="Half"),
        "COLLECTIVE_DTYPE_MISMATCH",
        ("wrong_dtype",),
        blamed=True,
    ),
    Pair(
        "another output type, all finished",
        Event("all_reduce", state="completed"),
        Event("all_reduce", state="completed", output_dtype="Half", input_dtype="Half"),
        "COLLECTIVE_DTYPE_MISMATCH",
        ("none", "wrong_dtype"),
        differs="nothing hangs: at most a remark",
    ),
    Pair(
        "gather: only the root has outputs",
        Event("gather", outputs=[[]], output_dtype="", state="completed"),
        Event("gather", outputs=SQUARE * WORLD, state="completed"),
        "FULLY_MATCHED",
        ("none",),
    ),
    Pair(
        "gather with outputs of one tensor",
        Event("gather", outputs=SQUARE * WORLD, state="completed"),
        Event("gather", outputs=SQUARE, output_dtype="", state="completed"),
        "FULLY_MATCHED",
        ("none", "wrong_root", "wrong_size"),
        differs="upstream does not compare outputs of gather; several roots of one gather are no healthy state",
    ),
)

COLLECTIVES = [
    "broadcast",
    "_broadcast_oop",
    "reduce",
    "_reduce_oop",
    "all_gather",
    "all_gather_single",
    "all_gather_v",
    "all_reduce",
    "_all_gather_base",
    "all_gather_into_tensor_coalesced",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_v",
    "reduce_scatter_tensor_coalesced",
    "_reduce_scatter_base",
    "gather",
    "scatter",
    "all_to_all",
    "all_to_all_single",
    "all_to_all_v_single",
    "all_reduce_barrier",
    "barrier",
    "split",
    "new_window",
    "allreduce_coalesced",
    "ALLGATHER_coalesced",
    "REDUCE_SCATTER_coalesced",
]
"""Names that upstream knows."""


def valid(op: str, rank: int = 0) -> Event:
    """A call of a collective with sizes that fit; rank 0 is the root."""
    if op == "gather" and rank:
        return Event(op, outputs=[[]], output_dtype="")
    if op == "scatter" and rank:
        return Event(op, [[]], input_dtype="")
    if op in ("reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor_coalesced"):
        return Event(op, [[4 * WORLD]], [[4]])
    if op in ("all_gather", "_all_gather_base", "all_gather_into_tensor_coalesced"):
        return Event(op, SQUARE, [[math.prod(SQUARE[0]) * WORLD]])
    return Event(op)


BACKENDS = {"nccl": True, "ncclx": True, "gloo": True, "xccl": True, "hccl": True, "unknown_backend": False}
"""Name -> whether upstream takes it; dtdebug takes any."""


class Run(NamedTuple):
    """Entries of two ranks: first those of rank 0, then those of rank 1."""

    name: str
    ranks: tuple[list[Event], list[Event]]
    upstream: tuple[tuple[str, bool], ...]
    """(operation, whether it passed) of each collective that upstream makes of them."""
    kinds: tuple[str, ...]
    waiting: tuple[str, ...] = ()
    """The kinds when the last collective has not finished; nothing if that is not another case."""
    culprits: tuple[int, ...] = ()
    """Of the one that waits; nothing where two ranks disagree and neither has a majority."""
    differs: str = ""


def done(op: str, sizes: list[list[int]] = SQUARE, group: str = "0", seq: int = 1) -> Event:
    """A collective that has finished."""
    return Event(op, sizes, sizes, "completed", group=group, seq=seq)


OOP, END = done("_reduce_oop"), done("REDUCE_SCATTER_coalesced", [[]])
FIVE = [[5, 5]]

RUNS = (
    Run(
        "one collective of all and one of a group of oneself",
        ([done("all_reduce"), done("all_reduce", FIVE, "1")], [done("all_reduce"), done("all_reduce", FIVE, "1")]),
        (("all_reduce", True), ("all_reduce", True), ("all_reduce", True)),
        ("none",),
        QUIET,
    ),
    Run(
        "a coalesced all_reduce",
        ([done("allreduce_coalesced")], [done("allreduce_coalesced")]),
        (("allreduce_coalesced", True),),
        ("none",),
        QUIET,
    ),
    Run(
        "two broadcasts in one batch",
        ([done("broadcast"), done("broadcast"), done("coalesced", [[]])],) * 2,
        (("coalesced", True),),
        ("none",),
        QUIET,
    ),
    Run(
        "an uneven all_gather that does not fit",
        (
            [done("_broadcast_oop"), done("_broadcast_oop", FIVE), done("ALLGATHER_coalesced", [[]])],
            [done("_broadcast_oop"), done("_broadcast_oop"), done("ALLGATHER_coalesced", [[]])],
        ),
        (("_broadcast_oop", False),),
        ("none", "wrong_size"),
        ("wrong_size",),
        differs="two ranks that disagree: the size is named, neither rank is called the culprit for sure",
    ),
    Run(
        "an uneven reduce_scatter",
        ([OOP, OOP, END],) * 2,
        (("REDUCE_SCATTER_coalesced", True),),
        ("none",),
        QUIET,
    ),
    Run(
        "a rank that never begins the batch",
        (
            [done("all_reduce")],
            [done("all_reduce"), OOP._replace(seq=2), OOP._replace(seq=2), END._replace(seq=2)],
        ),
        (("all_reduce", True), ("_reduce_oop", True)),
        ("not_understood",),
        ("not_arrived",),
        (0,),
        differs="upstream prints the missing rank but lets the collective pass; a rank that waits is no pass",
    ),
)


def entry(event: Event, number: int, *, texts: bool = False) -> dict[str, Any]:
    """An event as the recorder writes it; with sequence numbers as text, as some writers do, if asked for."""
    finished = event.state == "completed"
    return {
        "record_id": number,
        "pg_id": int(event.group),
        "process_group": (event.group, "default_pg" if event.group == "0" else "sub_pg"),
        "collective_seq_id": str(event.seq) if texts else event.seq,
        "p2p_seq_id": "0" if texts else 0,
        "op_id": number + 1,
        "profiling_name": f"{event.backend}:{event.op}",
        "time_created_ns": BEGIN + number * 1_000_000,
        "input_sizes": event.inputs,
        "output_sizes": event.outputs,
        "input_dtypes": [event.input_dtype] * len(event.inputs),
        "output_dtypes": [event.output_dtype] * len(event.outputs),
        "state": event.state,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": BEGIN + number * 1_000_000 + 500_000 if finished else None,
        "retired": finished,
        "is_p2p": False,
        "frames": [],
    }


def dump(rank: int, events: list[Event], world: int = WORLD, *, texts: bool = False) -> dict[str, Any]:
    """What one rank leaves: besides the default group it is alone in a group that is called alike on all ranks."""
    everyone = ", ".join(map(str, range(world)))
    return {
        "version": "2.10",
        "pg_config": {
            "0": {"name": "0", "desc": "default_pg", "ranks": f"[{everyone}]"},
            "1": {"name": "1", "desc": "sub_pg", "ranks": f"[{rank}]"},
        },
        "pg_status": {},
        "entries": [entry(event, number, texts=texts) for number, event in enumerate(events)],
    }


def of_pair(pair: Pair, odd_rank: int, *, texts: bool = False) -> dict[int, dict[str, Any]]:
    """The dumps of four ranks: a healthy collective, then the one in question."""
    first = done("all_reduce")
    return {
        rank: dump(rank, [first, (pair.odd if rank == odd_rank else pair.common)._replace(seq=2)], texts=texts)
        for rank in range(WORLD)
    }


def of_run(run: Run, *, waiting: bool = False) -> dict[int, dict[str, Any]]:
    """The dumps of two ranks, in the second form with the last collective (or batch) still to finish."""
    dumps = {}
    for rank, events in enumerate(run.ranks):
        last = max(event.seq for ranks in run.ranks for event in ranks)
        shown = [e._replace(state="scheduled") if waiting and e.seq == last else e for e in events]
        dumps[rank] = dump(rank, shown, 2)
    return dumps


def all_pairs() -> Iterator[tuple[str, Pair, int]]:
    """Each pair with the odd rank first and in between."""
    for pair in PAIRS:
        for odd in (0, 2):
            yield f"{pair.name}, rank {odd}", pair, odd
