"""Answers that follow from the records of many ranks and the verdict on them.

Only from the records themselves: a rank or counter that was not read answers nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

from dtdebug_taxonomy.logs.log import read_output
from dtdebug_taxonomy.model.claims import GLOO_ABORTED, LOOP_ENDED, LOOP_LASTS, SHARED_RANK
from dtdebug_taxonomy.model.ranks import Frame, RankState, Verdict, spell
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.model.waiting import Waiting
from dtdebug_taxonomy.stacks.activity import Activity, doing
from dtdebug_taxonomy.stacks.frames import own_frame

Answer = tuple[str, str] | None
"""(value of the observation, reason in words with ranks), or None if the snapshot does not show it."""

_PARTED = {
    "skipped": "did not call a collective that the others call",
    "extra": "called a collective that the others do not",
    "replaced": "called another collective than the others",
}
"""Kinds of verdicts for ranks that ran different calls, with what the named ranks did."""
_HELD = ("lock", "pipe", "stopped")
"""Waits in which a rank is idle, whatever its functions are called."""
_WAITED_FOR = ("not_arrived", "gil_held", "fabric")
"""Verdicts that are given only if ranks hang, or hung until the time was up."""
_SET_UP = ("init_process_group", "new_group", "rendezvous")
_FEW = 6


def manifestation(s: Snapshot) -> Answer:
    """Answer exception or hang: ranks wait and none has ended; diverged ranks may have failed, unless they live."""
    v = s.verdict
    if v is not None and v.kind == "dead":  # the launcher's signals to victims mean nothing
        first = next((c for c in v.claims if c.what == "raised" and set(c.ranks) & set(v.culprits)), None)
        return ("exception", f"{spell(first.ranks, _FEW)} raised it") if first is not None else None
    if v is None or v.kind == "none" or not v.waiting or any(r.alive is False for r in s.ranks):
        return None
    waiting = {*v.waiting}
    live = any(r.rank in waiting and r.pending is not None for r in s.ranks) or any(
        c.what == "unmoved"
        for c in v.claims  # no rank calls a collective: all wait for the store, for example
    )
    return ("hang", f"{spell(v.waiting, _FEW)} waited, no rank has ended") if live or v.kind in _WAITED_FOR else None


def failing_ranks(s: Snapshot) -> Answer:
    """Answer whether one rank failed, some diverged from the others, or all behave alike."""
    v, ranks = s.verdict, [r for r in s.ranks if r.rank is not None]
    if v is not None and v.kind == "fabric":
        return "all", "every rank has arrived in the collective, and it does not end"
    if v is not None and v.culprits:
        if v.kind == "dead" and not _others_are_known(s, v):
            return None
        if v.kind == "dead":
            return ("one" if len(v.culprits) == 1 else "some"), f"{spell(v.culprits, _FEW)} ended first"
        return "some", f"{spell(v.culprits, _FEW)} diverged from the others"
    raised = {r.exception for r in ranks}
    if len(ranks) > 1 and len(raised) == 1 and "" not in raised and _complete(ranks):
        return "all", f"{spell([r.rank or 0 for r in ranks], _FEW)} raised the same"
    return None


def aspect(v: Verdict) -> str:
    """Return the aspect that is more specific than the verdict's kind and replaces it; "" if there is none."""
    ends = (c for c in v.claims if c.what in ("ended", "left") and c.op)
    if v.kind in ("dead", "left") and any(set(c.ranks) & set(v.culprits) for c in ends):
        return "own_exit"
    if v.kind == "wrong_size" and v.collective is None and any(c.words.startswith(GLOO_ABORTED) for c in v.claims):
        return "unlike_bytes"  # which call it was is unknown
    if v.kind != "not_arrived":
        return ""
    if any(c.what == "system" and c.words.startswith(SHARED_RANK) for c in v.claims):
        return "shared_rank"
    if any(c.what == "missing" for c in v.claims) or (v.collective is not None and v.collective.op in _SET_UP):
        return "set_up"
    if not in_circle(v):
        return ""
    held = {c.record.path for c in v.claims if c.what == "waits" and set(c.of) & set(v.culprits)}
    return "lock_circle" if "/proc/locks" in held else "circle"


def in_circle(v: Verdict) -> bool:
    """True if each of the ranks that the verdict names waits for another of them."""
    named = set(v.culprits)
    bound = {rank for c in v.claims if c.what == "waits" and named & set(c.of) for rank in c.ranks}
    return len(named) > 1 and named <= bound


def _others_are_known(s: Snapshot, v: Verdict) -> bool:
    """True if ranks other than the culprits printed or wait: a log often contains only one rank's output."""
    others = {r.rank for r in s.ranks} | ({line.rank for line in read_output(s).lines} if s.output else set())
    return bool(v.waiting) or bool(others - {None, *v.culprits})


def equal_work_per_rank(s: Snapshot) -> Answer:
    """Answer by the batches that the ranks count, else by the collectives of the verdict."""
    v = s.verdict
    if words := uneven(s.ranks):
        return "no", words
    if v is not None and loop_ended(v):
        return "no", f"{spell(v.culprits, _FEW)} had more or fewer rounds of a loop to make than the others"
    if v is not None and v.kind in _PARTED and v.culprits:
        return "no", f"{spell(v.culprits, _FEW)} {_PARTED[v.kind]}"
    if v is not None and v.kind == "fabric":
        return "yes", "every rank is in the same collective"
    return None


def rank_conditional_code(s: Snapshot) -> Answer:
    """Answer yes if ranks ran different calls: they took different branches. Fewer iterations mostly mean less data."""
    v = s.verdict
    if v is None or v.kind not in _PARTED or not v.culprits or uneven(s.ranks) or loop_ended(v):
        return None
    where = next((f" ({site.function}, line {site.line})" for site in v.sites if site.rank in v.culprits), "")
    return "yes", f"{spell(v.culprits, _FEW)} ran other calls than the rest{where}"


def versions_match_across_nodes(s: Snapshot) -> Answer:
    """Compare packages that several ranks have imported; equality on one host says nothing about hosts."""
    known = [r for r in s.ranks if r.versions and r.rank is not None]
    for key in sorted({key for r in known for key in r.versions}):
        values = _values(known, [r.versions.get(key, "") for r in known])
        values.pop("", None)
        if len(values) > 1:
            rows = sorted(values.items(), key=lambda vr: len(vr[1]))
            return "no", f"{key} " + ", ".join(f"{v} on {spell(r, _FEW)}" for v, r in rows[:3])
    hosts = {r.host for r in known if r.host}
    return ("yes", f"the same on {len(hosts)} hosts") if len(hosts) > 1 and len(known) == len(s.ranks) else None


def device_usage(s: Snapshot) -> Answer:
    """Answer by the processes that NVML lists, else by the devices visible to each rank."""
    pids = {r.pid: r.rank for r in s.ranks if r.pid is not None and r.rank is not None}
    held: dict[int, set[int]] = {}
    for gpu in s.gpus:
        for pid, _ in gpu.processes:
            if pid in pids:
                held.setdefault(pids[pid], set()).add(gpu.index)
    if len(held) > 1 and len(held) == len(pids):
        used = set.union(*held.values())
        if len(used) == 1:
            return "all_ranks_on_one", f"{spell(held, _FEW)} on GPU {min(used)}"
        if extra := [rank for rank, gpus in held.items() if len(gpus) > 1]:
            return "extra_contexts", f"{spell(extra, _FEW)} on more than one GPU"
        if len(used) == len(held):
            return "as_expected", f"{len(held)} ranks, each on its own GPU"
    seen = Counter((r.host, r.environment.get("CUDA_VISIBLE_DEVICES", "")) for r in s.ranks if r.alive is not False)
    for (host, devices), number in seen.items():
        if number > 1 and devices.isdigit():
            return "all_ranks_on_one", f"{number} ranks of host {host} see GPU {devices} only"
    return None


def activity(s: Snapshot) -> Answer:
    """Answer by the functions that the verdict's ranks run: library functions, and names in the user's code.

    Reading data after a step belongs to the next step, not to preparation before training.
    """
    found = _activity(s)
    trained = found is not None and found[0] == "preparing_data" and (any_step_completed(s) or ("",))[0] == "yes"
    return None if trained else found


def _activity(s: Snapshot) -> Answer:
    v = s.verdict
    by_rank = {r.rank: r for r in s.ranks if r.rank is not None and r.alive is not False}
    held = {rank for rank, r in by_rank.items() if r.waiting is not None and _is_held(r.waiting)}
    chosen = [by_rank[rank] for rank in v.culprits if rank in by_rank] if v is not None else []
    for states in ([r for r in chosen if r.rank not in held], [r for r in by_rank.values() if r.rank not in held]):
        told = {r.rank or 0: what for r in states if (what := _observation_value(doing(r.stack)))}
        if told:
            value, number = Counter(told.values()).most_common(1)[0]
            if number * 2 > len(told):
                return value, f"by the stack of {spell([r for r, what in told.items() if what == value], _FEW)}"
    culprits = [site for site in v.sites if site.rank in v.culprits and site.rank not in held] if v is not None else []
    for site in culprits:  # where it was while the others waited, if it has ended since
        if what := _observation_value(doing([Frame(site.file, site.line, site.function)])):
            return what, f"rank {site.rank} was in {site.function}"
    return None


def _is_held(waiting: Waiting) -> bool:
    """True if it is idle, also if the process that it waits for waits for the rank."""
    return waiting.kind in _HELD or "the rank itself" in waiting.words


def _observation_value(what: Activity | Literal[""]) -> str:
    """Return the value of the observation; "" for compilation, which happens at every stage."""
    return {"compiling": "", "downloading": "preparing_data"}.get(what, what)


def any_step_completed(s: Snapshot) -> Answer:
    """Answer by the ranks' step, else by collectives: without one, no step of several ranks can end."""
    steps = {r.rank: r.step for r in s.ranks if r.step is not None and r.rank is not None}
    if steps and max(steps.values()) > 0:
        most = max(steps, key=lambda rank: steps[rank])
        return "yes", f"rank {most} is in step {steps[most]}"
    groups = [g for r in s.ranks for g in r.groups if len(g.ranks) != 1]
    finished = [g.completed for g in groups]
    if finished and _complete(s.ranks) and all(number == 0 for number in finished):
        return "no", "no collective has finished on any rank"
    if groups and _first_stands(s) and all((g.enqueued or 0) <= 1 for g in groups):
        return "no", "the first collective of all ranks does not finish"
    return None


def _first_stands(s: Snapshot) -> bool:
    """True if the verdict is on the first collective of a group, which counts as completed there if it failed."""
    v = s.verdict
    return v is not None and v.collective is not None and v.collective.seq == 1 and bool(v.waiting)


def nodes(s: Snapshot) -> Answer:
    """Answer a single host if every rank of the run is known to be there."""
    hosts = {r.host for r in s.ranks}
    if len(s.ranks) > 1 and _complete(s.ranks) and len(hosts) == 1 and "" not in hosts:
        return "single", f"all {len(s.ranks)} ranks are on one host"
    return None


def backend(s: Snapshot) -> Answer:
    """Answer by the backend of the group in which ranks wait, else of any group, as in `cpu:gloo,cuda:nccl`."""
    pending = {r.pending.group for r in s.ranks if r.pending is not None}
    groups = [(r.rank, g) for r in s.ranks for g in r.groups]
    for rank, g in sorted(groups, key=lambda row: row[1].name not in pending):
        found = [name for name in ("nccl", "gloo", "mpi") if name in g.backend]
        if len(found) == 1:
            return found[0], f"group {g.desc or g.name} of rank {rank}"
    return None


def data_loader_workers(s: Snapshot) -> Answer:
    """Answer by the loader's setting, else by functions of PyTorch's loader: with workers it waits for them."""
    for r in s.ranks:
        if (number := r.facts.get("loader workers", "")).isdigit():
            return ("several" if int(number) else "zero"), f"the loader of rank {r.rank} has {int(number)}"
        for frame in r.stack:
            file = frame.file.replace("\\", "/")
            if file.endswith("torch/utils/data/dataloader.py") and frame.function in ("_try_get_data", "_get_data"):
                return "several", f"rank {r.rank} waits for a worker of its loader"
            if file.endswith("torch/utils/data/_utils/fetch.py"):
                return "zero", f"rank {r.rank} itself fetches a batch"
    return None


def error_text_on_some_rank(s: Snapshot) -> Answer:
    """Answer yes if a rank ended by an exception, which it has printed."""
    raised = [r.rank for r in s.ranks if r.exception and r.rank is not None]
    return ("yes", f"{spell(raised, _FEW)} raised an exception") if raised else None


SIGNALS: dict[str, Callable[[Snapshot], Answer]] = {
    f.__name__: f
    for f in (
        manifestation, failing_ranks, equal_work_per_rank, rank_conditional_code, versions_match_across_nodes,
        device_usage, activity, any_step_completed, nodes, backend, data_loader_workers, error_text_on_some_rank,
    )
}  # fmt: skip
"""Observation -> its signal."""


def _complete(states: Sequence[RankState]) -> bool:
    """True if every rank of the run is among the states."""
    world = max((r.world_size or 0 for r in states), default=0)
    return world > 0 and {r.rank for r in states} >= set(range(world))


def loop_ended(v: Verdict) -> bool:
    """True if the source shows that the culprit had fewer or more iterations to make than the waiting ranks."""
    return any(c.what == "compared" and c.words.startswith((LOOP_ENDED, LOOP_LASTS)) for c in v.claims)


def uneven(states: Sequence[RankState]) -> str:
    """Return the ranks with a different number of batches; only loaders of one loop or data set are compared.

    A rank that evaluates uses a different loader from those that train.
    """
    for key in ("batches", "samples"):
        known = [r for r in states if key in r.facts and r.rank is not None]
        for alike in (_loop, lambda r: r.facts.get("dataset length", "")):
            crowd, _ = Counter(map(alike, known)).most_common(1)[0] if known else ("", 0)
            same = [r for r in known if crowd and alike(r) == crowd]
            values = _values(same, [r.facts[key] for r in same])
            if len(values) > 1:
                rows = sorted(values.items(), key=lambda vr: (len(vr[1]), vr[1]))
                return f"{key}: " + ", ".join(f"{v} on {spell(ranks, _FEW)}" for v, ranks in rows[:3])
    return ""


def _loop(r: RankState) -> str:
    frame = own_frame(r.stack)
    return f"{frame.file}:{frame.function}" if frame else ""


def _values(states: Sequence[RankState], values: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for state, value in zip(states, values, strict=True):
        found.setdefault(value, []).append(state.rank or 0)
    return found
