"""Coverage of an answer: ranks that were read and by which source, those that were not and why, and the next command.

If only some of a job's hosts were read, nothing may be said about ranks that were not.
"""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from dtdebug.live.hosts.presence import GONE
from dtdebug.live.job.not_understood import places
from dtdebug.live.probe.ask_all_ranks import world_size
from dtdebug.live.probe.init_verdict import alone
from dtdebug.live.probe.liveness import waits
from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.flight_recorder.ended_ranks import ending
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.logs.exits import signal_name
from dtdebug_taxonomy.model.claims import Claim, Record, Source, texts
from dtdebug_taxonomy.model.hosts import Host
from dtdebug_taxonomy.model.ranks import CollectiveRef, RankState, Verdict, say, spell
from dtdebug_taxonomy.presentation.case_json import Coverage
from dtdebug_taxonomy.stacks.frames import call_sites, own_frame, place_claim

_MOST, _WORDS = 16, 200
_STACKS = {
    "endpoint": "stacks of {ranks} by the agents inside",
    "files": "stacks of {ranks} by the records of the agents",
    "py-spy": "stacks of {ranks} by py-spy",
    "faulthandler": "stacks of {ranks} by faulthandler",
    "dump": "flight-recorder dumps of {ranks}",
    "trace": "flight-recorder traces of {ranks}",
}
"""Source -> description of what it provided."""
JOIN = "dtdebug join REPORT... with the report, the folder or the archive of each host"
_SHOWN = 64
_BY_USER = frozenset((1, 2, 3, 13, 15))
"""SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM: sent by users, terminals and schedulers."""


def coverage(
    states: Sequence[RankState], output: str, missing_dumps: Sequence[int] = (), notes: Sequence[str] = ()
) -> Coverage:
    """Return what was read, and what was not."""
    read = [s for s in states if s.rank is not None and was_read(s)]
    by_road: dict[str, list[int]] = defaultdict(list)
    for s in read:
        for road, said in s.roads.items():
            if said == "ok" and road in _STACKS and s.rank is not None:
                by_road[road].append(s.rank)
    lines = output.count("\n")
    rows = [_STACKS[road].format(ranks=spell(ranks, 8)) for road, ranks in sorted(by_road.items())]
    ended = [s.rank for s in read if s.alive is False and s.rank is not None]
    rows += [f"ends of {spell(ended, 8)}"] if ended else []
    rows += [f"output, {lines} lines"] if lines else []
    dark = [s for s in states if s.rank is not None and not was_read(s)]
    return Coverage(
        ranks=len(read),
        expected=max(world_size(states), len(read)),
        hosts=len({s.host for s in read if s.host}),
        read=tuple(rows),
        unread=tuple([*_silent(dark), *(_dumps(missing_dumps)), *notes][:_MOST]),
    )


def was_read(state: RankState) -> bool:
    """True if anything is known of the rank except that it should exist."""
    return state.alive is False or bool(state.stack or state.pending or state.groups or state.exception)


def following(verdict: Verdict, states: Sequence[RankState], folder: RunFolder | None) -> str:
    """Return the command that would show more about living ranks; "" if there is none."""
    living = [s for s in states if s.alive and s.pid]
    here = [s for s in living if s.host in ("", socket.gethostname())]
    if verdict.kind in ("none", "dead", "left") or not here:
        return ""
    named = {*(verdict.culprits or verdict.waiting)}
    chosen = [s for s in here if s.rank in named] or here
    target = clean(str(folder.path)) if folder is not None else str(chosen[0].parent or chosen[0].pid)
    if lacking := _lacking(chosen, target):
        return lacking
    tried = any(s.native or "py-spy --native" in s.roads for s in chosen)
    return "" if tried else f"dtdebug attach --native {target}"


def _lacking(states: Sequence[RankState], target: str) -> str:
    """Return what would let a look see more that showed no stack; "" if nothing is missing."""
    said = [s.roads.get("py-spy", "") for s in states]
    if any("is not installed" in words for words in said) and not any(s.stack for s in states):
        return f"pip install py-spy, then dtdebug attach {target}: without it ranks can't be looked into from outside"
    if refused := next((words for words in said if "no permission" in words), ""):
        return f"py-spy has {clean(refused).rpartition(' (')[0] or clean(refused)}; then dtdebug attach {target}"
    return ""


def _silent(states: Sequence[RankState]) -> list[str]:
    """Describe the ranks that were not read, grouped by reason."""
    why: dict[str, list[int]] = defaultdict(list)
    for s in states:
        said = "; ".join(f"{road}: {answer}" for road, answer in s.roads.items() if answer != "ok")
        why[clean(said)[:_WORDS] or "no record"].append(s.rank or 0)
    return [f"{spell(ranks, 8)}: {reason}" for reason, ranks in why.items()]


def _dumps(missing: Sequence[int]) -> list[str]:
    return [f"no flight-recorder dump of {spell(missing, 8)}"] if missing else []


def unread(states: Sequence[RankState], hosts: Sequence[Host]) -> tuple[int, ...]:
    """Return the job's unread ranks if it has more hosts than were read; else none."""
    several = (
        any(h.plan.most > 1 for h in hosts)
        or any((s.local_world_size or s.world_size or 0) < (s.world_size or 0) for s in states if not alone(s))
        or len({s.host for s in states if s.host}) > 1
    )
    if not several:
        return ()
    seen = {s.rank for s in states if s.pid is not None or s.alive is not None or s.exception}
    return tuple(rank for rank in range(world_size(states)) if rank not in seen)


def limit_verdict(verdict: Verdict, states: Sequence[RankState], missing: Sequence[int]) -> Verdict:
    """Return the verdict, unless it depends on what unread ranks did."""
    if not missing or (verdict.kind == "not_arrived" and not states):
        return verdict
    if verdict.culprits and not set(verdict.culprits) & set(missing):
        return verdict
    ended = [s for s in states if s.rank is not None and (s.exception or s.exit_code or s.signal)]
    if verdict.kind == "none" and not ended and not any(map(_waits, states)):
        return verdict
    known = [s for s in states if s.rank is not None and s.rank not in missing]
    claims = [*map(ending, ended[:_SHOWN]), *_waiting(known)] or places(known)[:_SHOWN]
    waiting = tuple(sorted(s.rank for s in known if s.rank is not None and _waits(s)))
    here = claims[0].text.rstrip(".") if claims else f"{say([s.rank or 0 for s in known], 'are')} here"
    return Verdict(
        kind="not_understood",
        waiting=waiting,
        group=verdict.group,
        collective=verdict.collective or _collective(known),
        sites=call_sites(s for s in known if s.rank in waiting),
        summary=f"{here}; {_on_other_hosts(missing)}, of which nothing was read.",
        claims=tuple(claims),
        evidence=texts(claims),
        open=verdict.open,
    )


def blame_launcher(verdict: Verdict, states: Sequence[RankState], hosts: Sequence[Host]) -> Verdict:
    """Return how a host's launcher ended if the verdict names no cause: ranks can't explain that end."""
    killed = [h for h in hosts if h.status is not None and h.status < 0 and -h.status not in _BY_USER]
    killed = killed or [h for h in hosts if h.status and not states]
    if verdict.kind not in ("none", "not_understood") or not killed or not any(h.plan.most > 1 for h in hosts):
        return verdict
    claims = []
    for host in killed[:_SHOWN]:
        status = host.status or 0
        how = f"was ended by {signal_name(-status)}" if status < 0 else f"ended with exit code {status}"
        record = Record(source="exit", words=f"exit status {host.status}")
        words = f"the launcher (process {host.pid}) {how}"
        claims.append(Claim(what="system", ranks=(), hosts=(host.label,), words=words, record=record))
    left = tuple(s.rank for s in states if s.rank is not None and s.alive and s.host in {h.name for h in killed})
    more = f"; {say(left, 'run')} on without it" if left else "" if states else " before it started a rank"
    return msgspec.structs.replace(
        verdict,
        kind="not_understood",
        confidence=0.0,
        summary=f"{claims[0].text.rstrip('.')}{more}; nothing shows why.",
        claims=tuple(claims),
        evidence=texts(claims),
    )


def next_host(verdict: Verdict, states: Sequence[RankState], hosts: Sequence[Host]) -> str:
    """Return the next step if hosts were not read; "" if all were."""
    known = {s.rank for s in states if s.rank is not None and was_read(s)}
    if known and known >= {*range(world_size(states))}:
        return ""
    alone = verdict.kind == "not_understood" and len(hosts) < max((h.plan.least for h in hosts), default=0)
    return JOIN if alone or unread(states, hosts) else ""


def add_host_coverage(coverage: Coverage, states: Sequence[RankState], hosts: Sequence[Host]) -> Coverage:
    """Add the coverage of hosts."""
    missing = unread(states, hosts)
    names = {h.name for h in hosts} | {s.host for s in states if s.host and s.alive is not None}
    expected = max((h.plan.least for h in hosts), default=1)
    more = []
    if len(hosts) < expected and expected > len(names):
        named = f": {', '.join(sorted(names)[:8])}" if names else ""
        more.append(f"of {expected} expected hosts {len(names)} wrote something{named}")
    more += [
        f"host {h.label}: nothing written for {h.silent:.0f} s" for h in hosts if h.silent > GONE and h.finished is None
    ][:_SHOWN]
    if missing:
        more.append(f"{_on_other_hosts(missing)}: nothing was read there")
    more += [f"host {h.label}: {h.meeting.unread}" for h in hosts if h.meeting is not None and h.meeting.unread][:8]
    return msgspec.structs.replace(
        coverage,
        ranks=coverage.ranks or len({s.rank for s in states if s.rank is not None and s.rank not in missing}),
        expected=coverage.expected or world_size(states),
        hosts=len(names),
        unread=tuple(dict.fromkeys((*coverage.unread, *more))),
    )


def _on_other_hosts(ranks: Sequence[int]) -> str:
    return f"{say(ranks, 'are')} on {'another host' if len(ranks) == 1 else 'other hosts'}"


def _waits(state: RankState) -> bool:
    return state.alive is not False and waits(state)


def _waiting(states: Sequence[RankState]) -> list[Claim]:
    """Return one claim for each set of ranks that wait in the same call at the same place."""
    classes: dict[tuple[object, ...], Claim] = {}
    for s in states:
        if s.pending is not None and s.alive is not False and s.rank is not None:
            frame = own_frame(s.stack)
            key = (s.pending.op, s.pending.group, s.pending.seq, frame and (frame.file, frame.line))
            source: Source = "agent" if s.roads.get("endpoint") == "ok" or s.facts else "stack"
            record = Record(source=source, rank=s.rank)
            claim = Claim(what="waits", ranks=(), op=s.pending.op, seq=s.pending.seq, record=record)
            same = classes.setdefault(key, place_claim(claim, frame))
            classes[key] = msgspec.structs.replace(same, ranks=tuple(sorted((*same.ranks, s.rank))))
    return [*classes.values()][:_SHOWN]


def _collective(states: Sequence[RankState]) -> CollectiveRef | None:
    pending = next((s.pending for s in states if s.pending is not None and s.alive is not False), None)
    return CollectiveRef(pending.op, pending.seq) if pending else None
