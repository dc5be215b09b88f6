"""Flight-recorder dumps shaped like those of NCCL jobs, made without a GPU.

A job is a program (a list of calls) for each rank; a fault changes the program of the culprits; `run` plays the
programs as NCCL would: kernels of a rank run in the order of its calls, a call ends when all that take part have
made the same one, and the CPU of a rank that is stuck has enqueued some calls more. `dump` writes what the flight
recorder of a rank would then hold, in one of the formats that torch has had.

What real dumps of NCCL do, and these therefore too:

* without `TORCH_NCCL_ENABLE_TIMING` (the default) there are no start events: a call is `scheduled`, then `completed`;
  nothing is ever `started`, and `last_started_collective` stays -1;
* the sends and receives inside a batch keep the state `scheduled` and are never retired: only the `nccl:coalesced`
  entry after them, without sizes, tells the state of the batch;
* ranks in `nccl:send 1->2` count within the group; `p2p_seq_id` of the same transfer differs between its two sides;
* what autograd starts from C++ has no frames; Megatron switches frames and completed entries off altogether;
* `pg_config` of a rank names the groups of that rank only; before 2.0 it went by a number that each rank gives itself.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from flight_jobs import UNDEFINED, Call, Job

SCRIPT = "/job/train.py"
BEGIN = 1_760_000_000_000_000_000  # when jobs begin, in nanoseconds since the epoch
PACE = 5_000_000  # between two calls
FORMATS = ("2.10", "2.9", "2.0", "1.4", "list", "json", "active")


@dataclasses.dataclass
class Fault:
    """What goes wrong: at the first call after `after` of the program of each culprit that `want` accepts."""

    kind: str
    culprits: tuple[int, ...] = ()
    after: float = 0.5
    count: int = 1
    """How many calls are left out."""
    want: Callable[[Call], bool] = lambda call: call.op == "all_reduce" and not call.batch
    replacement: Callable[[Call], Call] | None = None


class Played(NamedTuple):
    """How far each rank came."""

    completed: dict[int, int]
    """rank -> number of its calls that have ended."""
    enqueued: dict[int, int]
    """rank -> number of its calls that the CPU has made."""
    started: dict[int, int]


def changed(call: Call, kind: str, rank: int) -> Call:
    """The call as the culprit makes it."""
    match kind:
        case "replaced":
            return call._replace(op="broadcast" if call.op != "broadcast" else "all_reduce", line=call.line + 200)
        case "wrong_size":
            return call._replace(inputs=((777,),), outputs=((777,),))
        case "wrong_dtype":
            return call._replace(dtype="BFloat16" if call.dtype == "Float" else "Float")
        case "wrong_root":
            return call._replace(peer=rank, outputs=call.inputs * 8)
        case _:
            return call


def strike(job: Job, fault: Fault) -> tuple[dict[int, int], dict[int, Call]]:
    """Change the programs of the culprits; where, and the call that was meant, for each."""
    places, meant = {}, {}
    for rank in fault.culprits:
        calls = job.programs[rank]
        place = next(i for i in range(int(len(calls) * fault.after), len(calls)) if fault.want(calls[i]))
        call = calls[place]
        places[rank], meant[rank] = place, call
        match fault.kind:
            case "skipped":
                del calls[place : place + fault.count]
            case "extra":
                odd = call._replace(op="broadcast", line=call.line + 200, inputs=((3,),), outputs=((3,),), peer=rank)
                calls.insert(place, fault.replacement(call) if fault.replacement else odd)
            case "not_arrived" | "dead":
                del calls[place:]
            case "fabric" | "device" | "none":
                pass
            case kind:
                calls[place] = fault.replacement(call) if fault.replacement else changed(call, kind, rank)
    return places, meant


def tokens(job: Job, rank: int, call: Call) -> Iterator[tuple[tuple[Any, ...], tuple[int, ...], Any]]:
    """What a call takes part in, without its number: key, the ranks that must come, what must be equal."""
    for part in call.batch or (call,):
        if part.op in ("send", "recv"):
            ends = (rank, part.peer) if part.op == "send" else (part.peer, rank)
            yield (part.group, *ends), ends, (part.inputs, part.dtype)
        else:
            yield (part.group,), job.groups[part.group][1], part.signature


def play(
    job: Job, *, ahead: int, stuck: tuple[str, int] | None, seed: int, held: tuple[int, ...] | None = None
) -> Played:
    """Let each rank come as far as it can; `stuck` is a collective (group, sequence number) that never ends.

    It never ends for any member, or for those that are `held` while the others finish it.
    """
    draw = random.Random(seed)
    counts: dict[int, dict[Any, int]] = {rank: defaultdict(int) for rank in job.ranks}
    posted: dict[Any, dict[int, Any]] = defaultdict(dict)
    waits: dict[int, list[tuple[Any, tuple[int, ...]]]] = {}
    done = dict.fromkeys(job.ranks, 0)
    moved = True
    while moved:
        moved = False
        for rank in job.ranks:
            while done[rank] < len(job.programs[rank]):
                if rank not in waits:
                    waits[rank] = []
                    for key, needed, equal in tokens(job, rank, job.programs[rank][done[rank]]):
                        counts[rank][key] += 1
                        token = (*key, counts[rank][key])
                        posted[token][rank] = equal
                        waits[rank].append((token, needed))
                    moved = True
                if not all(
                    ready(posted[token], needed) and (token != stuck or (held is not None and rank not in held))
                    for token, needed in waits[rank]
                ):
                    break
                del waits[rank]
                done[rank] += 1
                moved = True
    enqueued, started = {}, {}
    for rank in job.ranks:
        more = draw.randrange(1, ahead + 1) if rank in waits and ahead else 0
        started[rank] = done[rank] + (rank in waits)
        enqueued[rank] = min(started[rank] + more, len(job.programs[rank]))
    return Played(done, enqueued, started)


def ready(posted: dict[int, Any], needed: tuple[int, ...]) -> bool:
    """All have come, and with the same."""
    return posted.keys() >= set(needed) and len(set(map(repr, posted.values()))) == 1


def frames(call: Call) -> list[dict[str, Any]]:
    """The stack of a call, innermost first; nothing for what autograd starts."""
    if not call.line:
        return []
    torch = "/venv/lib/python3.11/site-packages/torch"
    name = call.batch[0].op if call.batch else call.op
    stack = [
        (name, f"{torch}/distributed/distributed_c10d.py", 2951),
        ("wrapper", f"{torch}/distributed/c10d_logger.py", 83),
        (call.function, SCRIPT, call.line),
        ("main", SCRIPT, 140),
        ("<module>", SCRIPT, 150),
    ]
    return [{"name": n, "filename": f, "line": line} for n, f, line in stack]


def records(job: Job, rank: int, played: Played, *, timing: bool, skew: int) -> list[dict[str, Any]]:
    """The entries of one rank, as version 2.10 writes them."""
    uids = [uid for uid, (_, ranks) in job.groups.items() if rank in ranks]
    seq: dict[str, int] = defaultdict(int)
    p2p: dict[str, int] = defaultdict(int)
    ops: dict[str, int] = defaultdict(int)
    entries: list[dict[str, Any]] = []
    for index, call in enumerate(job.programs[rank][: played.enqueued[rank]]):
        members = job.groups[call.group][1]
        is_p2p = call.op in ("send", "recv", "coalesced")
        (p2p if is_p2p else seq)[call.group] += 1
        completed, started = index < played.completed[rank], index < played.started[rank]
        created = BEGIN + skew + PACE * index + 1000 * rank
        for part in (*call.batch, call):
            ops[call.group] += not (call.batch and part is call)
            inside = bool(call.batch) and part is not call
            state = "completed" if completed else "started" if started and timing else "scheduled"
            name = part.op
            if part.op in ("send", "recv"):
                ends = members.index(rank), members.index(part.peer or 0)
                name = f"send {ends[0]}->{ends[1]}" if part.op == "send" else f"recv {ends[0]}<-{ends[1]}"
            entries.append(
                {
                    "frames": frames(call),
                    "record_id": len(entries),
                    "pg_id": uids.index(call.group),
                    "process_group": (call.group, job.groups[call.group][0]),
                    "thread_name": "python3" if call.line else "pt_autograd_0",
                    "thread_id": "139899661376384" if call.line else "139897654321664",
                    "collective_seq_id": seq[call.group],
                    "p2p_seq_id": p2p[call.group],
                    "op_id": ops[call.group],
                    "profiling_name": f"nccl:{name}",
                    "time_created_ns": created,
                    **({"duration_ms": 0.75} if timing and completed and not inside else {}),
                    "input_sizes": [list(shape) for shape in part.inputs],
                    "input_dtypes": [part.dtype] * len(part.inputs),
                    "output_sizes": [list(shape) for shape in part.outputs],
                    "output_dtypes": ["Undefined" if part.outputs == UNDEFINED else part.dtype] * len(part.outputs),
                    "state": "scheduled" if inside else state,
                    "time_discovered_started_ns": created + 40_000 if timing and started and not inside else None,
                    "time_discovered_completed_ns": created + 900_000 if completed and not inside else None,
                    "retired": completed and not inside,
                    "timeout_ms": 600_000,
                    "is_p2p": is_p2p,
                }
            )
    return entries


def status(entries: list[dict[str, Any]], *, timing: bool) -> dict[str, dict[str, int]]:
    """The counters of each group of a rank."""
    found: dict[str, dict[str, int]] = {}
    for entry in entries:
        number = entry["p2p_seq_id" if entry["is_p2p"] else "collective_seq_id"]
        row = found.setdefault(
            str(entry["pg_id"]),
            {f"last_{state}_collective": -1 for state in ("enqueued", "started", "completed")},
        )
        row["last_enqueued_collective"] = number
        if timing and entry["state"] != "scheduled":
            row["last_started_collective"] = number
        if entry["state"] == "completed":
            row["last_completed_collective"] = number
    return found


OLD = {  # keys that entries did not have yet
    "2.0": {"thread_name", "thread_id", "timeout_ms"},
    "1.4": {"thread_name", "thread_id", "timeout_ms", "process_group", "is_p2p", "input_dtypes", "output_dtypes"},
}
OLD["list"] = OLD["1.4"] | {"record_id", "op_id", "time_discovered_started_ns", "time_discovered_completed_ns"}


def downgrade(entry: dict[str, Any], form: str) -> dict[str, Any]:
    """The entry as an older version wrote it."""
    old = {key: value for key, value in entry.items() if key not in OLD[form]}
    if form in ("1.4", "list"):
        old["seq_id"] = old.pop("collective_seq_id")
        del old["p2p_seq_id"]
    if form == "list":
        old["time_created_us"] = old.pop("time_created_ns") // 1000
    return old


def dump(job: Job, rank: int, entries: list[dict[str, Any]], form: str, *, timing: bool = False) -> Any:
    """What one rank leaves."""
    mine = {uid: group for uid, group in job.groups.items() if rank in group[1]}
    config: dict[Any, Any] = {
        uid: {"name": uid, "desc": desc, "ranks": f"[{', '.join(map(str, ranks))}]"}
        for uid, (desc, ranks) in mine.items()
    }
    counters = status(entries, timing=timing)
    if form in OLD:
        old = [downgrade(entry, form) for entry in entries]
        if form == "list":
            return old
        if form == "1.4":
            config = {number: list(ranks) for number, (_, ranks) in enumerate(mine.values())}
        return {"entries": old, "version": form, "pg_config": config}
    if form == "active":
        hidden = {"frames"}
        entries = [
            {key: value for key, value in entry.items() if key not in hidden}
            for entry in entries
            if entry["time_discovered_completed_ns"] is None
        ]
    library = "nccl_version" if form == "2.9" else "comm_lib_version"
    content: dict[str, Any] = {
        "version": "2.9" if form == "2.9" else "2.10",
        library: "2.27.5",
        "pg_config": config,
        "pg_status": counters,
        "entries": entries,
    }
    if form == "2.10":
        content["nccl_comm_state"] = {
            f"0x{int(uid) + 77:x}": {"rank": str(ranks.index(rank)), "nRanks": str(len(ranks)), "pg": f'"{desc}"'}
            for uid, (desc, ranks) in mine.items()
        }
    if form == "json":
        content["pg_status"] = {pg: {k: str(v) for k, v in row.items()} for pg, row in counters.items()}
        content["entries"] = [
            {k: 0 if v is None else v for k, v in entry.items() if k != "frames"} for entry in entries
        ]
        if not entries:
            del content["entries"]
    return content


def encode(content: Any, form: str) -> bytes:
    """The bytes of a dump."""
    return json.dumps(content).encode() if form == "json" else pickle.dumps(content, 2)


def make(
    job: Job,
    fault: Fault | None = None,
    form: str = "2.10",
    *,
    timing: bool = False,
    ahead: int = 4,
    skew: int = 0,
    keep: int | None = None,
    in_flight: bool = False,
    seed: int = 0,
) -> tuple[dict[int, Any], dict[str, Any]]:
    """The dumps of a job by rank, and the truth about it.

    `keep` is the size of the ring buffer, `skew` the largest difference between the clocks of two ranks; `in_flight`
    dumps a job that runs well, a moment after its last calls.
    """
    fault = fault or Fault("none")
    draw = random.Random(seed)
    places, meant = strike(job, fault)
    stuck = None
    if fault.kind in ("fabric", "device"):
        rank, place = next(iter(places.items()))
        group = meant[rank].group
        stuck = (group, sum(c.group == group and not c.batch for c in job.programs[rank][: place + 1]))
    held = fault.culprits if fault.kind == "device" else None
    played = play(job, ahead=ahead, stuck=stuck, seed=seed, held=held)
    if in_flight:
        done = {rank: played.completed[rank] - 2 - rank % 2 for rank in job.ranks}
        played = Played(done, played.enqueued, {rank: count + 1 for rank, count in done.items()})
    dumps = {}
    for rank in job.ranks:
        entries = records(job, rank, played, timing=timing, skew=draw.randrange(skew) if skew else 0)
        if not (fault.kind == "dead" and rank in fault.culprits):
            dumps[rank] = dump(job, rank, entries[-keep:] if keep else entries, form, timing=timing)
    return dumps, truth(job, fault, played, places, meant, form, in_flight=in_flight)


def truth(
    job: Job,
    fault: Fault,
    played: Played,
    places: dict[int, int],
    meant: dict[int, Call],
    form: str,
    *,
    in_flight: bool = False,
) -> dict[str, Any]:
    """What an analyzer should say: kind (or one of kinds), culprits, and where those are."""
    also = {"dead": ["not_arrived"], "device": ["fabric"]}
    if form == "active":  # the calls before are not there, so what came in place of which is not to be seen
        also |= {"skipped": ["replaced"], "extra": ["replaced"]}
    where = {}
    for rank, call in meant.items():
        head = played.completed[rank]
        now = job.programs[rank][head].line if head < played.started[rank] else None
        instead = job.programs[rank][places[rank]].line if places[rank] < played.enqueued[rank] else None
        lines = {call.line, now, instead, call.line + 200 if fault.kind in ("replaced", "extra") else None} - {0, None}
        if form not in ("active", "json") and fault.kind not in ("fabric", "device", "dead", "not_arrived"):
            where[str(rank)] = {"file": SCRIPT, "lines": sorted(lines)}
    return {
        "kind": fault.kind,
        "kinds": ["not_understood"] if in_flight else [fault.kind, *also.get(fault.kind, [])],
        "culprits": [] if fault.kind in ("fabric", "none") else list(fault.culprits),
        "where": where,
        "group": sorted({call.group for call in meant.values()}),
        "op": sorted({call.op for call in meant.values()}),
    }


def write(folder: Path, dumps: dict[int, Any], form: str = "2.10", prefix: str = "rank_", age: float = 600.0) -> Path:
    """Write the dumps as files, written `age` seconds after the last call that is in them."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank, content in dumps.items():
        path = folder / f"{prefix}{rank}"
        path.write_bytes(encode(content, form))
        when = BEGIN / 1e9 + 1 + age
        os.utime(path, (when, when))
    return folder


def records_of(content: Any) -> list[dict[str, Any]]:
    """The entries of a dump in any format."""
    return content if isinstance(content, list) else content.get("entries", [])
