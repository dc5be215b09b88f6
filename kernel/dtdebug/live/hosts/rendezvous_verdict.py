"""Verdicts on a rendezvous that does not complete: arrived and missing hosts, from the hosts' own reports.

Nothing is assumed about hosts that were not read: if only their absence is known, the verdict gives their numbers, or
how many are missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.hosts import Host, WaitingLauncher
from dtdebug_taxonomy.model.ranks import MOST_RANKS, CollectiveRef, Verdict, spell

_SEEN, _ALONE = 0.9, 0.6
"""Confidence if the hosts themselves report it, and if one host sees only its own side."""
_SHOWN = 8


def is_waiting(hosts: Sequence[Host]) -> bool:
    """True if a launcher of a multi-host job has started no rank."""
    return any(h.meeting is not None and h.plan.most > 1 for h in hosts)


def all_came(hosts: Sequence[Host]) -> bool:
    """True if all expected hosts have arrived, and none has trouble."""
    return rendezvous_verdict(hosts).kind == "not_understood" and len(hosts) >= max(
        (h.plan.least for h in hosts), default=1
    )


def rendezvous_verdict(hosts: Sequence[Host]) -> Verdict:
    """Return the verdict on what keeps the launchers apart; `not_understood` if nothing shows it."""
    waiting = [(h, h.meeting) for h in hosts if h.meeting is not None and h.finished is None]
    claims = [*(_state(h, m) for h, m in waiting), *(c for h, m in waiting for c in _way(h, m))]
    for cause in (_disagreement, _find_misled, _find_held_port, _find_ended):
        found = cause(hosts)
        if found is not None:
            culprits, words, more = found
            return _verdict(culprits, words, [*more, *claims], _SEEN)
    return _count(hosts, waiting, claims)


Found = tuple[Sequence[Host], str, list[Claim]]


def _disagreement(hosts: Sequence[Host]) -> Found | None:
    """Find options that must be equal on all hosts, or different on each, and are not."""
    nodes = [h for h in hosts if h.plan.node is not None and h.finished is None]
    twice = [h for h in nodes if sum(other.plan.node == h.plan.node for other in nodes) > 1]
    if twice:
        number = twice[0].plan.node
        same = [h for h in twice if h.plan.node == number]
        return same, f"{_names(same)} both were started as node {number}", [_plan_claim(h) for h in same]
    for option, values in (
        ("--rdzv-id", {h.place or h.name: h.plan.run_id for h in hosts}),
        ("--nnodes", {h.place or h.name: f"{h.plan.least}:{h.plan.most}" for h in hosts}),
        ("--rdzv-backend", {h.place or h.name: h.plan.backend for h in hosts}),
    ):
        counts = Counter(values.values())
        if len(counts) > 1:
            (most, count), *rest = counts.most_common()
            odd = [h for h in hosts if values[h.place or h.name] != most]
            culprits = odd if count > sum(number for _, number in rest) else ()
            said = ", ".join(f"{h.name} has {values[h.place or h.name].removesuffix(':1') or 'none'}" for h in hosts)
            return culprits, f"{option} differs: {said}", [_plan_claim(h) for h in hosts]
    return None


def _find_misled(hosts: Sequence[Host]) -> Found | None:
    """Find hosts that try a different endpoint from the waiting launcher's, or can't reach it."""
    there = [h for h in hosts if h.meeting is not None and h.meeting.listens]
    there += [h for h in hosts if there and h.meeting is not None and h.meeting.connected and h not in there]
    lost = [h for h in hosts if h.meeting is not None and h.meeting.trouble]
    if not lost:
        return None
    first = lost[0]
    why = first.meeting.trouble if first.meeting else ""
    if there and all(h.plan.endpoint != there[0].plan.endpoint for h in lost):
        words = f"{_names(lost)} look{'s' * (len(lost) == 1)} for it at {first.plan.endpoint}, {why}; {_names(there)} "
        words += f"wait{'s' * (len(there) == 1)} at {there[0].plan.endpoint}"
        return lost, words, [_plan_claim(h) for h in (*lost, *there)]
    if there:
        return lost, f"{_names(lost)} can't get to {there[0].name}: {why}", []
    return None


def _find_held_port(hosts: Sequence[Host]) -> Found | None:
    """Find a host whose rendezvous port another process holds."""
    blocked = next((h for h in hosts if h.meeting is not None and h.meeting.holder), None)
    if blocked is None or blocked.meeting is None:
        return None
    return [blocked], f"on {blocked.name} port {blocked.plan.port} is held by {blocked.meeting.holder}", []


def _find_ended(hosts: Sequence[Host]) -> Found | None:
    """Find hosts whose launcher has ended."""
    gone = [h for h in hosts if h.status]
    if not gone:
        return None
    words = f"the launcher on {_names(gone)} has ended with status {gone[0].status}"
    record = Record(source="exit", words=f"exit status {gone[0].status}")
    return gone, words, [Claim(what="system", ranks=(), hosts=(h.label,), words="the launcher has ended",
                               record=record) for h in gone]  # fmt: skip


def _count(hosts: Sequence[Host], waiting: Sequence[tuple[Host, WaitingLauncher]], claims: list[Claim]) -> Verdict:
    """Return the verdict by counting: hosts that have not arrived are missing."""
    expected = max((h.plan.least for h in hosts), default=1)
    known = {address: h.label for h in hosts for address in h.addresses}
    there = next(((h, m) for h, m in waiting if m.listens), None)
    came = [h.label for h in hosts if there is None or h.meeting is None or not h.meeting.trouble]
    if there is not None:
        came += [known.get(peer, peer) for peer in there[1].peers]
    came = list(dict.fromkeys(came))
    lost = [(h, m) for h, m in waiting if m.trouble]
    endpoint = (there or waiting[0])[0].plan.endpoint if waiting else ""
    if there is None and lost:
        host, meeting = lost[0]
        words = f"{meeting.trouble} (seen on {_names([h for h, _ in lost])}): the launcher that all others wait for "
        words += f"has not come there, or {host.plan.endpoint} is the wrong address"
        place = Claim(what="missing", ranks=(), hosts=(host.plan.address,), words=f"the rendezvous at {endpoint}",
                      record=_record(host))  # fmt: skip
        return _verdict((), words, [place, *claims], _ALONE if len(hosts) < expected else _SEEN)
    if len(came) >= expected or (there is None and len(hosts) < expected):
        return _unknown(hosts, expected, claims)
    nodes = [h.plan.node for h in hosts]
    numbers = sorted(set(range(expected)) - {n for n in nodes if n is not None})
    if None in nodes or len(numbers) != expected - len(came):
        numbers = []
    missing = _nodes(numbers) if numbers else f"{expected - len(came)} of {expected} hosts"
    ranks = _ranks(hosts, numbers)
    one = expected - len(came) == 1
    words = f"{len(came)} of {expected} hosts {'has' if len(came) == 1 else 'have'} come ({', '.join(came[:_SHOWN])}); "
    words += f"{missing} {'has' if one else 'have'} not"
    if ranks:
        words += f" ({spell(ranks, 8)})"
    record = _record(there[0] if there else waiting[0][0])
    said = [
        Claim(what="came", ranks=(), hosts=tuple(came), words=f"the rendezvous at {endpoint}", record=record),
        Claim(what="missing", ranks=(), hosts=(f"of {missing}",), record=record, words=f"the rendezvous at {endpoint}")
        if numbers else Claim(what="system", ranks=(), words=f"{missing} did not come", record=record),
    ]  # fmt: skip
    return _verdict((), words, [*said, *claims], _SEEN, ranks=ranks)


def _unknown(hosts: Sequence[Host], expected: int, claims: list[Claim]) -> Verdict:
    if len(hosts) < expected:
        plan = hosts[0].plan
        words = f"{_names(hosts)} wait{'s' * (len(hosts) == 1)} at {plan.endpoint}; who else has come is known on "
        words += f"{plan.address} alone, of which nothing was read"
    else:
        words = f"all {expected} hosts have come ({', '.join(h.label for h in hosts[:_SHOWN])}), and nothing shows why"
    said = texts(claims)
    return Verdict(
        kind="not_understood",
        summary=f"The rendezvous does not complete: {words}.",
        claims=tuple(claims),
        evidence=said,
    )


def _verdict(
    culprits: Sequence[Host], words: str, claims: Sequence[Claim], confidence: float, *, ranks: tuple[int, ...] = ()
) -> Verdict:
    numbers = [h.plan.node for h in culprits if h.plan.node is not None]
    known = ranks or (_ranks(culprits, numbers) if len(numbers) == len(culprits) else ())
    return Verdict(
        kind="not_arrived",
        culprits=tuple(sorted(set(known))),
        collective=CollectiveRef("rendezvous", None),
        confidence=confidence,
        summary=f"The rendezvous does not complete: {words}.",
        claims=tuple(claims),
        evidence=texts(claims),
    )


def _ranks(hosts: Sequence[Host], nodes: Sequence[int]) -> tuple[int, ...]:
    """Return the ranks of nodes; empty unless each host starts equally many, as torchrun numbers ranks by node."""
    sizes = {h.plan.per_node for h in hosts}
    size = sizes.pop() if len(sizes) == 1 else None
    if not size or not nodes or max(nodes) * size > MOST_RANKS:
        return ()
    return tuple(rank for node in nodes for rank in range(node * size, (node + 1) * size))


def _state(host: Host, meeting: WaitingLauncher) -> Claim:
    place = f"; it is in {meeting.place}" if meeting.place else ""
    return Claim(
        what="system",
        ranks=(),
        hosts=(host.label,),
        words=f"the launcher (process {meeting.pid}) has started no rank{place}",
        seconds=meeting.seconds,
        record=Record(source="stack" if meeting.place else "system", path=f"/proc/{meeting.pid}"),
    )


def _way(host: Host, meeting: WaitingLauncher) -> list[Claim]:
    where = host.plan.endpoint
    words = []
    if meeting.listens:
        words.append(f"it listens at {where}; connected from {', '.join(meeting.peers[:_SHOWN]) or 'nobody'}")
    elif meeting.connected:
        words.append(f"it is connected to {where}")
    if meeting.trouble:
        words.append(meeting.trouble)
    if meeting.holder:
        words.append(f"port {host.plan.port} is held by {meeting.holder}")
    return [Claim(what="system", ranks=(), hosts=(host.label,), words=text, record=_record(host)) for text in words]


def _plan_claim(host: Host) -> Claim:
    plan = host.plan
    words = f"was started for {plan.endpoint}, {plan.least} hosts{f', id {plan.run_id}' if plan.run_id else ''}"
    return Claim(what="system", ranks=(), hosts=(host.label,), words=words,
                 record=Record(source="system", words=" ".join(host.command)[:500]))  # fmt: skip


def _record(host: Host) -> Record:
    pid = host.meeting.pid if host.meeting else 0
    return Record(source="system", path=f"/proc/{pid}/net/tcp")


def _names(hosts: Sequence[Host]) -> str:
    shown = [h.label for h in hosts[:_SHOWN]]
    more = f" and {len(hosts) - _SHOWN} more" if len(hosts) > _SHOWN else ""
    return f"host{'s' * (len(hosts) > 1)} {', '.join(shown)}{more}"


def _nodes(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    return f"node{'s' * (len(numbers) > 1)} {shown}{', ...' if len(numbers) > _SHOWN else ''}"
