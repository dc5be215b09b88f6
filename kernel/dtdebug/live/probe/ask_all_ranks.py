"""Asks every rank of a job where it is, through all channels, within one deadline.

In this order: the endpoint of its agent (milliseconds) and the record that the agent writes into the run's folder
(both need the interpreter); then the worker server, which answers while the GIL is held; then py-spy; and
last faulthandler, whose signal can end a system call. One slow rank delays no other.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future

import msgspec

from dtdebug.live.probe.ask_rank import Inquiry
from dtdebug.live.probe.channels import Request
from dtdebug.live.probe.deadline_threads import begin, until
from dtdebug.live.probe.processes import RankProcess, describe, find_ranks
from dtdebug.storage.run_folder import RunFolder
from dtdebug.storage.untrusted import tidy
from dtdebug_taxonomy.model.ranks import MOST_RANKS, TWICE, RankState

TIMEOUT = 3.0
"""Maximum seconds for gathering."""
_GRACE = 0.05
"""Seconds after the deadline in which inquiries may still record that they were late."""


def gather(
    target: RunFolder | None,
    pids: Sequence[int] = (),
    timeout: float = TIMEOUT,
    *,
    dumps: bool = True,
    native: bool = False,
    addresses: Callable[[], dict[int, str]] | None = None,
    stop: threading.Event | None = None,
) -> list[RankState]:
    """Return the states of all ranks, by rank; missing ranks have `alive=None`.

    `pids` are ranks or processes above them (a launcher, a kernel). With `dumps`, waits for the flight-recorder dumps
    that the agents write on demand; if none comes, writes the worker server's trace instead. `native` also asks py-spy
    for native frames. `addresses` returns more endpoints by rank, as of the job's store, and runs in parallel.
    An interrupt (Ctrl-C) ends the waiting: the states so far are returned, written files stay in the folder, and `stop`
    is set.
    """
    request = Request(target, timeout, dumps=dumps, native=native)
    more = begin([addresses], request.deadline)[0] if addresses else None
    inquiries = [Inquiry(request, found, record) for found, record in _find_processes(target, pids)]
    interrupted = _ask(inquiries, request.deadline)
    if interrupted and stop is not None:
        stop.set()
    states = [state for inquiry in inquiries if (state := inquiry.state()) is not None]
    roads = {"files" if target else "processes": f"nothing of it was there after {timeout:g} s"}
    if more is not None and not interrupted:
        further, roads["store"] = _ask_addresses(request, more, states)
        states += further
    if target is not None:
        seen = {(state.host, state.pid) for state in states}
        states += [record for record in target.records() if (record.host, record.pid) not in seen]
    states = one_each(map(tidy, states))
    states += [RankState(rank=rank, alive=None, roads=roads) for rank in _missing(states)]
    return sorted(states, key=lambda state: (state.rank is None, state.rank or 0, state.pid or 0))


def _find_processes(target: RunFolder | None, pids: Sequence[int]) -> list[tuple[RankProcess, RankState | None]]:
    """Return the processes to ask, with their records from before."""
    here = socket.gethostname()
    records = [record for record in target.records() if record.pid] if target else []
    recorded = {record.pid for record in records if record.host in ("", here)}
    known: list[tuple[RankProcess, RankState | None]] = [
        (RankProcess(pid=r.pid or 0, parent=r.parent, rank=r.rank, world_size=r.world_size), r) for r in records
    ]
    found: dict[int, RankProcess] = {}
    tops = list(pids)
    run = target.load_run() if target and not pids else None
    if run and run.pid and run.host == here and run.status is None:
        tops.append(run.pid)
    for pid in tops:
        below = find_ranks(pid)
        found |= {each.pid: each for each in below if each.pid not in recorded}
        if not below and pid in pids and pid not in recorded | found.keys():
            found[pid] = describe(pid)
    return known + [(each, None) for each in found.values()]


def _ask(inquiries: Sequence[Inquiry], deadline: float) -> bool:
    """Ask all in parallel; True if the user interrupted it."""
    try:
        until(begin([inquiry.run for inquiry in inquiries], deadline), deadline + _GRACE)
    except KeyboardInterrupt:
        return True
    return False


def _ask_addresses(
    request: Request, more: Future[dict[int, str]], states: Sequence[RankState]
) -> tuple[list[RankState], str]:
    """Return the ranks known only by the additional addresses, and how reading these went."""
    here = {state.rank for state in states}
    try:
        found = {rank: where for rank, where in more.result(timeout=request.seconds_left()).items() if rank not in here}
    except KeyboardInterrupt:
        return [], "interrupted"
    except TimeoutError:
        return [], "no answer until the deadline"
    except Exception as error:
        return [], str(error) or type(error).__name__
    inquiries = [
        Inquiry(request, None, RankState(rank=rank, facts={"endpoint": where})) for rank, where in found.items()
    ]
    _ask(inquiries, request.deadline)
    return [state for inquiry in inquiries if (state := inquiry.state()) is not None], "ok"


def one_each(states: Iterable[RankState]) -> list[RankState]:
    """Return one state per rank: a living process before earlier attempts, the newest of these.

    Of two living ones, take the one in a process group: the other is a wrapper that started it.
    """
    kept: dict[object, RankState] = {}
    for state in states:
        key = ("pid", state.host, state.pid) if state.rank is None else state.rank
        other = kept.get(key)
        if other is None or _weight(state) > _weight(other):
            kept[key] = _note_duplicate(state, other)
        else:
            kept[key] = _note_duplicate(other, state)
    return list(kept.values())


def _note_duplicate(state: RankState, other: RankState | None) -> RankState:
    """Note another living process with the same rank that is not its wrapper or wrapped process."""
    if other is None or not (state.alive and other.alive) or state.initialized != other.initialized:
        return state
    if state.pid in (None, other.pid, other.parent) or other.pid in (None, state.parent):
        return state
    named = filter(None, (state.facts.get(TWICE, ""), other.facts.get(TWICE, ""), f"{other.pid} on {other.host}"))
    return msgspec.structs.replace(state, facts={**state.facts, TWICE: ", ".join(named)[:200]})


def _weight(state: RankState) -> tuple[bool, bool, float]:
    living = state.alive is True
    return living, living and state.initialized, state.time or 0.0


def _missing(states: Sequence[RankState]) -> list[int]:
    """Return the ranks of the world that have no state."""
    return sorted(set(range(world_size(states))) - {state.rank for state in states})


def world_size(states: Sequence[RankState]) -> int:
    """Return the job's number of ranks by majority; 0 if unknown."""
    sizes = Counter(state.world_size for state in states if state.world_size and state.world_size <= MOST_RANKS)
    return sizes.most_common(1)[0][0] if sizes else 0  # a single wrong rank is outvoted
