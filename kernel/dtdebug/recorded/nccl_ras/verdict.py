"""Derives the verdict from one status of NCCL's RAS, or from two of them some seconds apart."""

from __future__ import annotations

from collections.abc import Sequence

from dtdebug.recorded.nccl_ras.status import Communicator, Counted, Member, Mismatch, Status
from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.ranks import CollectiveRef, Verdict, say, spell

_NEXT = (
    "Ask once more: ncclras -v. Counts that do not rise name who is behind; in a healthy job they differ for moments."
)
_COMPARE = "Correct on those ranks what the lines name, and ask once more: ncclras -D"
_FEW = 8


def verdict_of(statuses: Sequence[Status]) -> tuple[Verdict, str]:
    """Return the verdict on the latest status, and the next step in words.

    A rank that is behind in one status is no culprit: NCCL runs ahead of its own counting. If the counts of two
    statuses are equal, the others wait for it. With a status that is not wholly read, no rank is cleared.
    """
    found, step = _verdict_of(statuses)
    if found.kind != "none" or not statuses[-1].unread:
        return found, step
    said = f"Whether NCCL's RAS reports a fault is not known: {statuses[-1].unread}."
    return Verdict(kind="not_understood", summary=said), _NEXT


def _verdict_of(statuses: Sequence[Status]) -> tuple[Verdict, str]:
    now = statuses[-1]
    before = statuses[-2] if len(statuses) > 1 else None
    if now.dead_number:
        return _unreachable(now, now.dead, now.dead_number, dead=True), ""
    if now.silent_number or any(c.missing_number for c in now.communicators):
        return _unreachable(now, now.silent, now.silent_number, dead=False), ""
    if failed := next((c for c in now.communicators if c.errors), None):
        return _failure(now, failed), ""
    rows = [(c, m) for c in now.communicators for m in c.mismatches if m.what != "status"]
    rows.sort(key=lambda row: -(row[0].size or sum(g.number for g in row[1].groups)))
    if not rows:
        return _even(now)
    comm, mismatch = rows[0]
    return _behind(now, comm, mismatch, _has_moved(before, comm, mismatch) if before is not None else None)


def _even(now: Status) -> tuple[Verdict, str]:
    """Return the verdict on a status that names no rank."""
    blind = "It does not see whether operations end."
    if now.issues:
        first, *more = now.issues
        same = f"{first.partition(': ')[0]}: "
        said = f"NCCL's diagnostics report {'; '.join((first, *(line.removeprefix(same) for line in more[:2])))}."
        return Verdict(kind="not_understood", summary=said, evidence=now.issues[:_FEW]), _COMPARE
    if now.passed:
        checks = ", ".join(dict.fromkeys(now.passed))
        return Verdict(
            kind="none", confidence=0.5, summary=f"NCCL's diagnostics report no issue ({checks}). {blind}"
        ), ""
    if now.watched:
        said = f"NCCL's RAS reports no dead process in what was watched. {blind}"
        return Verdict(kind="not_understood", summary=said), _NEXT
    starting = next((c for c in now.communicators for m in c.mismatches if m.what == "status"), None)
    number = now.number or len(now.communicators)
    many = f"{number} communicator{'s' * (number != 1)}" if number else "No communicator"
    of = f" of {now.gpus} GPUs" if now.gpus else ""
    if not number and now.unread:
        said = f"Which communicators NCCL's RAS sees is not known: {now.unread}."
        return Verdict(kind="not_understood", summary=said), _NEXT
    if not number:
        return Verdict(kind="not_understood", summary="NCCL's RAS answers, and no communicator exists yet."), _NEXT
    if starting is not None:
        said = f"Ranks of communicator {starting.name} are in different states: it is set up or taken down."
        return Verdict(kind="not_understood", summary=said), _NEXT
    if now.flags:
        flags = " and ".join(dict.fromkeys(now.flags))
        said = f"NCCL's RAS reports {flags}, and the list of the ranks is not in this text."
        return Verdict(kind="not_understood", summary=said), _NEXT
    if now.timeouts:
        said = f"NCCL's RAS had {now.timeouts} time-outs while it asked the job's processes, and names none of them."
        return Verdict(kind="not_understood", summary=said), _NEXT
    said = f"NCCL's RAS sees {many}{of}: no rank is missing, dead or behind. {blind}"
    return Verdict(kind="none", confidence=0.5, summary=said), ""


def _unreachable(now: Status, processes: Sequence[Member], number: int, *, dead: bool) -> Verdict:
    """Return the verdict on processes that RAS can't reach."""
    comm = max(now.communicators, key=lambda c: (bool(c.missing), c.size or 0), default=None)
    missing = comm.missing if comm is not None else ()
    ranks = tuple(sorted({m.rank for m in missing if m.rank is not None}))
    where = _processes([m for m in (processes or missing) if m.pid is not None])
    who = spell(ranks, _FEW) if ranks else f"{number} process{'es' * (number != 1)}"
    count = f"{who[:1].upper()}{who[1:]}{f' ({where})' if where else ''}"
    several = len(ranks or processes) > 1 or number > 1
    said = (
        f"{count} {'are' if several else 'is'} considered dead by NCCL's RAS: not reached for 60 s."
        if dead
        else f"{count} {'do' if several else 'does'} not answer NCCL's RAS: stopped, hung or gone."
    )
    record = Record(source="output", words=f"{comm.name if comm else ''} INCOMPLETE".strip())
    claim = Claim(
        what="ended" if dead else "silent",
        ranks=ranks,
        hosts=tuple(dict.fromkeys(m.host for m in processes)),
        record=record,
    )
    waiting = _others(comm, ranks)
    return Verdict(
        kind="dead" if dead else "not_arrived",
        culprits=ranks,
        waiting=waiting,
        confidence=0.8 if ranks else 0.5,
        summary=said,
        claims=(claim,) if ranks else (),
        evidence=texts((claim,)) if ranks else (said,),
    )


def _failure(now: Status, comm: Communicator) -> Verdict:
    ranks = tuple(sorted({m.rank for m in comm.failed if m.rank is not None}))
    return Verdict(
        kind="not_understood",
        waiting=ranks,
        summary=f"NCCL reports errors in communicator {comm.name}: {'; '.join(comm.errors[:3])}.",
        evidence=comm.errors[:_FEW],
    )


def _behind(now: Status, comm: Communicator, mismatch: Mismatch, moved: bool | None) -> tuple[Verdict, str]:
    """Return the verdict on unequal numbers of launched operations."""
    groups = sorted(mismatch.groups, key=lambda g: int(g.value))
    low, high = groups[0], groups[-1]
    ranks = _ranks(comm, low, groups)
    ahead = _ranks(comm, high, groups)
    op = mismatch.what or "collective"
    who = say(ranks, "have") if ranks else f"{low.number} ranks have"
    others = say(ahead, "have") if ahead else f"{high.number} ranks have"
    of = f" of communicator {comm.name}" if now.gpus and comm.size and comm.size != now.gpus else ""
    where = _processes(low.members)
    done = f"not launched any {op}" if low.value == "0" else f"launched {op} up to #{low.value}"
    facts = f"{who[:1].upper()}{who[1:]} {done}{of}, {others} #{high.value}{f' ({where})' if where else ''}"
    claims = tuple(
        Claim(
            what="last",
            ranks=r,
            op=op,
            seq=int(g.value),
            record=Record(source="output", words=f"{comm.name} MISMATCH"),
        )
        for r, g in ((ranks, low), (ahead, high))
        if r
    )
    if moved is None:
        said = f"{facts}; read once: in a healthy job that lasts for moments."
        return Verdict(kind="not_understood", summary=said, claims=claims, evidence=texts(claims)), _NEXT
    if moved:
        said = f"The counts rise between two queries: the job moves. {facts}."
        return Verdict(kind="none", confidence=0.7, summary=said, claims=claims, evidence=texts(claims)), ""
    verdict = Verdict(
        kind="not_arrived",
        culprits=ranks,
        waiting=ahead,
        collective=CollectiveRef(_snake(op), int(low.value) + 1),
        confidence=0.8 if len(ranks) * 2 <= (comm.size or len(ranks) * 2) else 0.5,
        summary=f"{facts}; the counts did not change between two queries: the others wait for that.",
        claims=claims,
        evidence=texts(claims),
    )
    return verdict, ""


def _has_moved(before: Status, comm: Communicator, mismatch: Mismatch) -> bool:
    """True if an earlier status has other counts for a communicator."""
    then = next((c for c in before.communicators if c.name == comm.name), None)
    old = next((m for m in then.mismatches if m.what == mismatch.what), None) if then is not None else None
    return old is None or {(g.value, g.number) for g in old.groups} != {(g.value, g.number) for g in mismatch.groups}


def _ranks(comm: Communicator, group: Counted, groups: Sequence[Counted]) -> tuple[int, ...]:
    """Return the ranks of a group: those named, else all that no other group names, if these are all named."""
    named = tuple(sorted({m.rank for m in group.members if m.rank is not None}))
    rest = [g for g in groups if g is not group]
    if len(named) == group.number:
        return named
    if comm.size is None or any(len(g.members) != g.number for g in rest):
        return named
    taken = {m.rank for g in rest for m in g.members}
    found = tuple(rank for rank in range(min(comm.size, 1 << 18)) if rank not in taken)
    return found if len(found) == group.number else named


def _others(comm: Communicator | None, ranks: Sequence[int]) -> tuple[int, ...]:
    if comm is None or comm.size is None or not ranks:
        return ()
    return tuple(rank for rank in range(min(comm.size, 1 << 18)) if rank not in set(ranks))


def _processes(members: Sequence[Member]) -> str:
    """Return where a few ranks run: `process 12 on node 10.0.0.1, GPU 3`."""
    shown = [
        f"process {m.pid} on node {m.host}{f', GPU {m.gpu}' if m.gpu else ''}" for m in members if m.pid is not None
    ]
    return "; ".join(shown[:2]) + (f" and {len(shown) - 2} more" if len(shown) > 2 else "")


def _snake(op: str) -> str:
    """Return NCCL's name of an operation as PyTorch spells it: `AllReduce` is `all_reduce`."""
    return "".join(f"_{c.lower()}" if c.isupper() and n else c.lower() for n, c in enumerate(op))
