"""Jobs with tensor, context, expert, data and pipeline parallelism together, drawn from a seed, and faults in them.

The ranks of a world are counted as Megatron-LM counts them: tensor parallel innermost, then context, then data (with
experts inside of it), then pipeline.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import flight_data as fr
from flight_jobs import Call, Job, collective

PAIR = 2
SIZES = (1, 1, 2, 2, 4)
FORMS = ("active", "active", "active", "2.10", "2.9", "json")
KINDS = (
    "device",
    "device",
    "fabric",
    "not_arrived",
    "dead",
    "skipped",
    "replaced",
    "wrong_size",
    "wrong_dtype",
    "none",
)


class Drawn(NamedTuple):
    """A job with a fault, as dumps and as the truth about them."""

    name: str
    form: str
    dumps: dict[int, Any]
    truth: dict[str, Any]
    groups: dict[str, tuple[str, tuple[int, ...]]]


def megatron(tp: int, cp: int, dp: int, pp: int, ep: int, *, steps: int, layers: int, draw: random.Random) -> Job:
    """All groups of such a job, and what each rank calls in some steps."""
    world = tp * cp * dp * pp
    groups: dict[str, tuple[str, tuple[int, ...]]] = {"0": ("default_pg", tuple(range(world)))}
    mine: dict[tuple[str, int], str] = {}

    def place(rank: int) -> tuple[int, int, int, int]:
        return rank % tp, rank // tp % cp, rank // (tp * cp) % dp, rank // (tp * cp * dp)

    def make(name: str, key: Callable[[tuple[int, int, int, int]], object], most: int = 1) -> None:
        rows: dict[object, list[int]] = {}
        for rank in range(world):
            rows.setdefault(key(place(rank)), []).append(rank)
        if max(map(len, rows.values())) <= most:
            return
        for ranks in rows.values():
            uid = str(len(groups))
            groups[uid] = (name, tuple(ranks))
            mine.update({(name, rank): uid for rank in ranks})

    make("DATA_PARALLEL_GROUP_WITH_CP", lambda p: (p[0], p[3]))
    make("CONTEXT_PARALLEL_GROUP", lambda p: (p[0], p[2], p[3]))
    make("TENSOR_MODEL_PARALLEL_GROUP", lambda p: (p[1], p[2], p[3]))
    make("PIPELINE_MODEL_PARALLEL_GROUP", lambda p: (p[0], p[1], p[2]))
    if ep > 1:
        make("EXPERT_MODEL_PARALLEL_GROUP", lambda p: (p[0], p[1], p[2] // ep, p[3]))
    seq, hidden = draw.choice((64, 128)), draw.choice((256, 512))
    splits = [[draw.randrange(1, 90) for _ in range(world)] for _ in range(world)]
    programs: dict[int, list[Call]] = {}
    for rank in range(world):
        stage, calls = place(rank)[3], []

        def on(name: str, op: str, line: int, size: int, dtype: str = "BFloat16", rank: int = rank) -> list[Call]:
            uid = mine.get((name, rank))
            return [collective(op, uid, line, size, len(groups[uid][1]), dtype=dtype)] if uid else []

        def passing(op: str, there: int, line: int, rank: int = rank) -> list[Call]:
            uid = mine.get(("PIPELINE_MODEL_PARALLEL_GROUP", rank))
            peer = rank + there * tp * cp * dp
            if uid is None or not 0 <= peer < world:
                return []
            one = Call(op, uid, line, ((seq, 1, hidden),), ((seq, 1, hidden),), "BFloat16", peer, function="schedule")
            return [Call("coalesced", uid, line, (), (), batch=(one,), function="schedule")]

        def layer(line: int, rank: int = rank) -> list[Call]:
            found = on("CONTEXT_PARALLEL_GROUP", "_all_gather_base", line, seq * 8)
            found += on("TENSOR_MODEL_PARALLEL_GROUP", "all_reduce", line + 1, seq * hidden)
            uid = mine.get(("EXPERT_MODEL_PARALLEL_GROUP", rank))
            if uid:
                members = groups[uid][1]
                sent, got = sum(splits[rank][m] for m in members), sum(splits[m][rank] for m in members)
                found.append(Call("all_to_all", uid, line + 2, ((sent, hidden),), ((got, hidden),), "BFloat16"))
            return found + on("TENSOR_MODEL_PARALLEL_GROUP", "all_reduce", line + 3, seq * hidden * 4)

        for _ in range(steps):
            for _ in range(2):
                calls += passing("recv", -1, 81)
                calls += [call for _ in range(layers) for call in layer(40)]
                calls += passing("send", 1, 84)
            for _ in range(2):
                calls += passing("recv", 1, 88)
                calls += [call for _ in range(layers) for call in layer(50)]
                calls += passing("send", -1, 91)
            calls += on("DATA_PARALLEL_GROUP_WITH_CP", "_reduce_scatter_base", 95, 4096 + stage, "Float")
            calls.append(collective("all_reduce", "0", 97, 1, dtype="Float"))
            calls += on("DATA_PARALLEL_GROUP_WITH_CP", "_all_gather_base", 99, 4096 + stage)
        programs[rank] = calls
    return Job(groups, programs)


def drawn(seed: int, *, pair: bool = False) -> Drawn:
    """One job; `pair`: what goes wrong does so in a group of two, where no majority says who is right."""
    draw = random.Random(seed)
    while True:
        tp, cp, dp, pp = (draw.choice(SIZES) for _ in range(4))
        if 2 <= tp * cp * dp * pp <= 32:
            break
    ep = draw.choice([n for n in (1, 2, 4) if dp % n == 0])
    job = megatron(tp, cp, dp, pp, ep, steps=draw.randrange(2, 5), layers=draw.randrange(1, 4), draw=draw)
    kind, form = draw.choice(KINDS), draw.choice(FORMS)
    fault = _fault(job, kind, draw, pair=pair)
    timing = form != "active" and draw.random() < 0.3
    dumps, truth = fr.make(job, fault, form, seed=seed, ahead=draw.choice((0, 1, 4)), timing=timing)
    if form == "active" and kind == "skipped":  # the last call of a program, left out, is one that was never reached
        truth["kinds"].append("not_arrived")
    name = f"{seed}: tp{tp} cp{cp} dp{dp} pp{pp} ep{ep} {kind} {form}{' timing' if timing else ''}"
    return Drawn(name, form, dumps, truth | {"fault": kind}, job.groups)


def of(op: str, group: str) -> Callable[[Call], bool]:
    """Chooses the calls of an operation on a group."""
    return lambda call: (call.op, call.group) == (op, group)


def _fault(job: Job, kind: str, draw: random.Random, *, pair: bool) -> fr.Fault:
    """A fault that strikes a collective: in a group of three or more where a majority has to say who is wrong."""
    if kind == "none":
        return fr.Fault("none")
    world = len(job.programs)
    after = draw.uniform(0.2, 0.8)
    least = 2 if pair or kind in ("device", "fabric", "not_arrived", "dead") else 3
    for _ in range(100):
        rank = draw.randrange(world)
        calls = job.programs[rank]
        chosen = [c for c in calls[int(len(calls) * after) :] if not c.batch and len(job.groups[c.group][1]) >= least]
        if kind in ("skipped", "replaced", "wrong_size", "wrong_dtype"):
            chosen = [c for c in chosen if c.op in ("all_reduce", "_all_gather_base")]
        if pair:
            chosen = [c for c in chosen if len(job.groups[c.group][1]) == PAIR]
        if not chosen:
            continue
        call = draw.choice(chosen)
        culprits = [rank]
        members = job.groups[call.group][1]
        if kind == "device" and len(members) > 3 and draw.random() < 0.5:
            culprits.append(draw.choice([m for m in members if m != rank]))
        return fr.Fault(kind, tuple(sorted(culprits)), after, want=of(call.op, call.group))
    return fr.Fault("none")
