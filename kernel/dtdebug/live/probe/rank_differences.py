"""Finds differences between ranks: versions, variables, libraries, amount of data.

Most differences are expected: each rank has its number. An unexpected one explains a hang before any stack does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy.model.ranks import RankState, spell

Suspicion = Literal["wrong", "odd", "expected"]
"""wrong: has to be the same on all ranks (or different, where ranks may not share it) and is not; odd: may differ for
a reason; expected: differs by design.
"""

UNSET = "not set"
_VALUE, _SHOWN = 60, 5
"""Maximum numbers of characters of a value, and of values, that a sentence shows."""

_SAME = re.compile(
    r"(?:WORLD_SIZE|MASTER_(?:ADDR|PORT)|TORCHELASTIC_(?:RUN_ID|RESTART_COUNT|MAX_RESTARTS)|HOROVOD_SIZE"
    r"|OMPI_(?:COMM_WORLD_SIZE|MCA_(?:pml|btl|mtl|coll|osc)\w{0,64})|SLURM_(?:NTASKS|JOB_ID|NNODES|STEP_ID)"
    r"|(?:NCCL|TORCH|GLOO|UCX|FI|ACCELERATE|FSDP|DS|DEEPSPEED|TP)_\w{1,64})\Z"
)
_PER_RANK = re.compile(
    r"(?:(?:GROUP_|ROLE_|NODE_|LOCAL_)?RANK|HOSTNAME|TF_CONFIG|JOB_COMPLETION_INDEX|TORCHELASTIC_ERROR_FILE"
    r"|TORCH_FR_\w{1,64}|(?:OMPI|PMI|PMIX|MV2|SLURM|SLURMD|HOROVOD|RAY|JAX)_\w{1,64})\Z"
)
"""Variables that launchers set for each rank separately; those set for all alike are in `_SAME`."""
_PER_HOST = re.compile(
    r"(?:(?:NCCL|GLOO)_SOCKET_IFNAME|NCCL_HOSTID|NCCL_IB_HCA|NCCL_TOPO_FILE|NCCL_GRAPH_FILE|NCCL_DEBUG_FILE|UCX_NET_DEVICES|FI_\w{0,40}IFACE)\Z"
)
"""Variables that name hardware or files of one machine."""
_DEVICES = re.compile(r"(?:CUDA|HIP|ROCR|NVIDIA)_VISIBLE_DEVICES\Z")
_WORK = re.compile(r"(?i)batch|data.?set|samples|shards|length|steps|epoch|seed|accumul|param")
"""Facts that must agree for the ranks to do the same work."""
_ROADS = frozenset({"endpoint", "worker_server", "faulthandler", "asked", "GIL"})
"""Facts on channels and single observations, which are not properties of the run."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A property that differs between ranks."""

    key: str
    """Name of the variable, package or fact."""
    kind: Literal["variable", "version", "fact"]
    values: tuple[tuple[str, tuple[int, ...]], ...]
    """(value, ranks), the most frequent first."""
    suspicion: Suspicion
    odd: tuple[int, ...] = ()
    """Ranks without the majority's value; empty if no value has a majority."""
    sentence: str


def differences(states: Iterable[RankState]) -> tuple[Difference, ...]:
    """Return all differences, the most suspicious first; ranks with empty records are left out."""
    known = sorted((s for s in states if s.rank is not None), key=lambda s: s.rank or 0)
    found = [*_parts(known, "version"), *_parts(known, "variable"), *_parts(known, "fact"), *_find_collisions(known)]
    order: dict[Suspicion, int] = {"wrong": 0, "odd": 1, "expected": 2}
    return tuple(sorted(found, key=lambda d: (order[d.suspicion], len(d.values), d.key)))


def to_text(found: Sequence[Difference], lines: int = 20) -> str:
    """Format a sentence for each difference that may matter; the expected ones are only counted."""
    telling = [d for d in found if d.suspicion != "expected"]
    text = [f"{'!' if d.suspicion == 'wrong' else '-'} {d.sentence}" for d in telling[:lines]]
    if len(telling) > lines:
        text.append(f"... {len(telling) - lines} more differences")
    by_design = len(found) - len(telling)
    if by_design:
        text.append(f"{by_design} more differ as they should (ranks, hosts, devices)")
    return "\n".join(text) or "nothing differs between the ranks"


def _parts(states: Sequence[RankState], kind: Literal["variable", "version", "fact"]) -> Iterator[Difference]:
    rows = [(s, s.versions if kind == "version" else s.environment if kind == "variable" else s.facts) for s in states]
    rows = [(s, row) for s, row in rows if row]
    if len(rows) < 2:
        return
    for key in sorted({key for _, row in rows for key in row}):
        # A fact that was not recorded, for example because the rank ended early, is not a difference.
        having = [(s, row) for s, row in rows if kind != "fact" or key in row]
        values = [row.get(key, UNSET) for _, row in having]
        if key in _ROADS or all(value == values[0] for value in values):
            continue
        # A package that one rank has not imported yet has no version there: a difference of code, not of the machine.
        if kind == "version" and len({v for v in values if v != UNSET}) < 2:
            continue
        yield _difference(key, kind, [s for s, _ in having], values)


def _difference(
    key: str, kind: Literal["variable", "version", "fact"], states: Sequence[RankState], values: Sequence[str]
) -> Difference:
    groups: dict[str, list[int]] = {}
    for state, value in zip(states, values, strict=True):
        groups.setdefault(value, []).append(state.rank or 0)
    ordered = tuple(
        (_shorten_value(v), tuple(r)) for v, r in sorted(groups.items(), key=lambda vr: (-len(vr[1]), vr[1]))
    )
    by_host = len({(s.host, v) for s, v in zip(states, values, strict=True)}) == len({s.host for s in states})
    suspicion = _suspicion(key, kind, states, values, by_host=by_host)
    majority = len(ordered[0][1]) * 2 > len(states)
    odd = tuple(sorted(r for _, ranks in ordered[1:] for r in ranks)) if majority and suspicion != "expected" else ()
    words = _values(ordered, most=majority, states=states, by_host=by_host)
    return Difference(
        key=clean(key)[:_VALUE],
        kind=kind,
        values=ordered,
        suspicion=suspicion,
        odd=odd,
        sentence=f"{_NAMES[kind].format(clean(key)[:_VALUE])} {words}{_VERDICTS[suspicion]}",
    )


_NAMES = {"variable": "{}", "version": "the version of {}", "fact": "{}"}
_VERDICTS: dict[Suspicion, str] = {
    "wrong": ": it must be the same on all ranks.",
    "odd": ".",
    "expected": ", as it should.",
}


def _suspicion(key: str, kind: str, states: Sequence[RankState], values: Sequence[str], *, by_host: bool) -> Suspicion:
    if kind == "version":
        return "wrong"
    if kind == "fact":
        return "wrong" if _WORK.search(key) else "odd"
    if _PER_RANK.match(key) and (key.startswith("TORCH_FR_") or not _SAME.match(key)):
        return "expected"
    if _DEVICES.match(key):
        return "expected" if _regular(states, values) else "odd"
    if (by_host or key == "NCCL_HOSTID") and _PER_HOST.match(key):  # NCCL_HOSTID defines which ranks share a host
        return "odd"
    return "wrong" if _SAME.match(key) else "odd"


def _regular(states: Sequence[RankState], values: Sequence[str]) -> bool:
    """True if ranks with the same local rank see the same devices, whatever the host."""
    locals_ = {(s.local_rank, v) for s, v in zip(states, values, strict=True)}
    return None not in {s.local_rank for s in states} and len(locals_) == len({s.local_rank for s in states})


def _values(
    groups: Sequence[tuple[str, tuple[int, ...]]], *, most: bool, states: Sequence[RankState], by_host: bool
) -> str:
    hosts = {s.rank: s.host for s in states}
    several = by_host and len(set(hosts.values())) > 1

    def place(ranks: tuple[int, ...]) -> str:
        named = {hosts[r] for r in ranks}
        host = f" (host {clean(named.pop())[:_VALUE]})" if several and len(named) == 1 else ""
        return f"on {spell(ranks, 8)}{host}"

    shown = [f"{_quote_value(value)} {place(ranks)}" for value, ranks in groups[:_SHOWN]]
    if most:  # the odd ones first
        value, ranks = groups[0]
        shown = [*shown[1:], f"{_quote_value(value)} on the other {len(ranks)}"]
    rest = len(groups) - _SHOWN
    return "is " + ", ".join((*shown, *([f"and {rest} more values"] if rest > 0 else [])))


def _shorten_value(value: str) -> str:
    text = " ".join(clean(value[:2_000]).split())
    return text if len(text) <= _VALUE else f"{text[: _VALUE // 2 - 2]}...{text[-_VALUE // 2 + 1 :]}"


def _quote_value(value: str) -> str:
    return value if value == UNSET or re.fullmatch(r"[\w.,:/+-]+", value) else f'"{value}"'


def _find_collisions(states: Sequence[RankState]) -> Iterator[Difference]:
    """Yield what two living processes share and must not: a rank, a place on the host, a device."""
    living = [s for s in states if s.alive is not False]
    names = Counter(s.rank for s in living)
    for rank in [r for r, n in names.items() if n > 1 and r is not None]:
        pids = sorted({f"{s.host}:{s.pid}" for s in living if s.rank == rank})
        if len(pids) > 1:
            yield _collision("RANK", str(rank), (rank,), f"{len(pids)} processes ({', '.join(pids[:_SHOWN])}) call")
    for (key, host, value), ranks in _places(living).items():
        if len(ranks) > 1:
            yield _collision(key, value, tuple(sorted(ranks)), f"{spell(ranks, 8)} on host {clean(host)} share")


def _places(states: Sequence[RankState]) -> dict[tuple[str, str, str], set[int]]:
    """Return (variable, host, value) -> ranks, for variables that each rank of a host should have to itself."""
    found: dict[tuple[str, str, str], set[int]] = {}
    for s in states:
        rank = s.rank or 0
        if s.local_rank is not None:
            found.setdefault(("LOCAL_RANK", s.host, str(s.local_rank)), set()).add(rank)
        for name, value in s.environment.items():
            if _DEVICES.match(name) and value and "," not in value and value not in ("all", "void", "none", "-1"):
                found.setdefault((name, s.host, value), set()).add(rank)
    return found


def _collision(key: str, value: str, ranks: tuple[int, ...], who: str) -> Difference:
    what = "themselves rank" if key == "RANK" else f"{key}"
    return Difference(
        key=key,
        kind="variable",
        values=((value, ranks),),
        suspicion="wrong",
        odd=ranks,
        sentence=f"{who} {what} {clean(value)[:_VALUE]}: each needs its own.",
    )
