"""Which rank failed first in a printed log, and whose failure is its echo: what ended each rank, then a verdict.

An exception that the program went on after has not ended it. A rank that raised on its own comes before all that lost
a peer or were ended by the launcher, whatever was printed first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

import msgspec

from dtdebug_taxonomy.claims import Claim, Record, texts
from dtdebug_taxonomy.failure import mismatch, watchdog
from dtdebug_taxonomy.failure.bereaved import called_at, only_lost
from dtdebug_taxonomy.failure.children import in_process
from dtdebug_taxonomy.failure.coordination import coordination_verdict
from dtdebug_taxonomy.failure.exits import LAUNCHER, UNOPENED, Exit
from dtdebug_taxonomy.failure.raised import Raised
from dtdebug_taxonomy.failure.reading import Reading, primary, read_output, role
from dtdebug_taxonomy.failure.roles import reports_child
from dtdebug_taxonomy.failure.stalled import stalled
from dtdebug_taxonomy.frames import own_frame
from dtdebug_taxonomy.ranks import Alternative, CallSite, Verdict, say, spell
from dtdebug_taxonomy.snapshot import Snapshot

_CERTAIN, _LIKELY, _NAMELESS = 0.95, 0.8, 0.6
_WORDS = 300
_SHOWN = 16


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What ended each of those who print."""

    own: tuple[Raised, ...] = ()
    """Terminal exceptions of a rank's own code, in the order of the output; at most one for each rank."""
    echoes: tuple[Raised, ...] = ()
    """Terminal exceptions that say that a peer was lost."""
    handled: tuple[Raised, ...] = ()
    """Exceptions that ended nothing: the rank went on."""
    exits: tuple[Exit, ...] = ()
    """Ends of ranks without any exception that others don't explain."""
    launched: bool = False
    """A launcher of several processes has spoken."""
    doubtful: bool = False
    """The ranks of `own` lost a peer later, and nothing else explains that: they may have gone on until then."""
    interrupted: tuple[Raised, ...] = ()
    """Those whom somebody interrupted by hand."""


def outcome(
    log: Reading,
    outlived: Callable[[Raised], bool] = lambda raised: bool(raised.handled),
    later: Callable[[Exit], bool] = lambda end: False,
) -> Outcome:
    """What ended the ranks of a log, as far as it says so.

    `outlived` says of an exception that its program or the job went on after it; where times are known, by these too.
    `later` says of an end that its rank trained later: it was that of an earlier program, as of a step of Slurm's job.
    """
    raised = [primary(r) for r in log.events.raised if not r.unheeded]
    by_role = {id(r): role(r) for r in raised}
    own = [r for r in raised if by_role[id(r)] == "own"]
    echoes = [r for r in raised if by_role[id(r)] == "peer"]
    launched = bool(log.said.exits) or any(by_role[id(r)] == "launcher" for r in raised)
    interrupted = _interrupted(log, raised)
    past = {id(r) for r in own if outlived(r) or (r.who in interrupted and interrupted[r.who].line < r.begin)}
    followed = past | {id(r) for r in raised if _goes_on(log, r)}
    handled = {_key(r) for r in own if id(r) in followed}
    followed |= {id(r) for r in raised if _printed_on(log, r)}
    ends = [r for r in raised if by_role[id(r)] in ("peer", "launcher") and not reports_child(r.text)]
    survived = _survived(ends)
    spoken: dict[int | None, int] = {
        line.rank: index for index, line in enumerate(log.lines) if line.rank is not None and "Watchdog c" in line.body
    }
    alive = [r for r in own if id(r) not in past]
    ended = [r for r in alive if not survived(r)]
    doubtful = bool(alive) and not ended and not _exits(log, echoes, later)
    ended = alive if doubtful else ended
    standing = [r for r in ended if id(r) not in followed]
    # a watchdog may speak after the exception that ended its rank, for it is a thread: such exceptions yield to others
    lasting = [r for r in standing if _key(r) not in handled]
    standing = [r for r in lasting if spoken.get(r.rank, -1) < r.index] or lasting or standing
    standing = [r for r in standing if not (r.logged and r.rank is None)] or standing
    failed = launched or any(id(r) not in followed for r in echoes)
    if not standing and failed:
        named = any(r.rank is not None for r in raised)
        left = [r for r in ended if spoken.get(r.rank, -1) < r.index and (r.rank is not None or not named)]
        standing = _not_by_signal(log, left)
    terminal = _last_attempt(log, standing)
    mine = _one_each(terminal)
    kept = {id(r) for r in mine}
    gone_on = {id(r) for r in own if id(r) in followed and id(r) not in kept}
    unheeded = [r for r in log.events.raised if r.unheeded]
    mine = _ranked(log, mine, echoes)
    if log.events.processes:  # Ray shows what its processes print in any order
        mine.sort(key=lambda r: r.rank is None)
    return Outcome(
        own=tuple(mine),
        echoes=tuple(_one_each(echoes)),
        handled=(*(r for r in own if id(r) in gone_on), *unheeded),
        exits=() if mine else _exits(log, echoes, later),
        launched=launched,
        doubtful=doubtful,
        interrupted=tuple(interrupted.values()),
    )


def verdict_of_log(
    snapshot: Snapshot,
    exclusive: Callable[[str, int, int], bool | None] = lambda file, one, other: None,
    outlived: Callable[[Raised], bool] = lambda raised: bool(raised.handled),
    later: Callable[[Exit], bool] = lambda end: False,
) -> Verdict | None:
    """The verdict that a printed log allows, or None.

    `exclusive` says of two lines of a file that no rank comes to both: it needs the source, which is not ours to read.
    `outlived` and `later` are as in `outcome`.
    """
    if not snapshot.output:
        return None
    log = read_output(snapshot)
    found = outcome(log, outlived, later)
    compared = mismatch.mismatch_verdict(log, found.own, exclusive)
    if compared is not None:
        return compared
    own = found.own
    if found.exits:
        return _ended(found, log.said.unopened)
    waited = watchdog.watchdog_verdict(log) or coordination_verdict(log)
    if own and (found.launched or any(r.rank is not None for r in own) or found.echoes or waited):
        return _raised(log, found, () if waited is None else waited.claims)
    if waited is not None or own:
        return waited
    if (behind := stalled(log)) is not None:
        return behind
    echoes = found.echoes
    return only_lost(echoes, [_claim(r) for r in echoes[:_SHOWN]], [*_sites(echoes)], log.said.exits)


def _interrupted(log: Reading, raised: Iterable[Raised]) -> dict[tuple[object, ...], Raised]:
    """Who -> where it was interrupted by hand; what its threads raise below follows from that."""
    return {r.who: r for r in raised if r.type == "KeyboardInterrupt" and not r.thread and not _goes_on(log, r)}


def _goes_on(log: Reading, raised: Raised) -> bool:
    """Whoever printed the exception printed progress of training after it."""
    steps = log.events.steps.get(raised.who, ())
    return bisect_right(steps, raised.index) < len(steps)


def _printed_on(log: Reading, raised: Raised) -> bool:
    """A process of Ray's that is not known as a rank printed other lines after it: it had only logged it."""
    return bool(raised.actor and raised.who[2]) and log.events.spoke.get(raised.who, -1) > raised.index


def _survived(others: Iterable[Raised]) -> Callable[[Raised], bool]:
    """Whether a rank's main thread raised once more later, for a lost peer or a signal: it had gone on until then."""
    last: dict[int, int] = {}
    for r in others:
        if r.rank is not None and not r.before and not r.thread:
            last[r.rank] = max(last.get(r.rank, 0), r.begin)
    return lambda raised: raised.rank is not None and last.get(raised.rank, 0) > raised.line


def _not_by_signal(log: Reading, own: Iterable[Raised]) -> list[Raised]:
    """Those of ranks that no signal ended: an exception does not end a process by one."""
    signals = {e.rank for e in log.said.exits if e.signal and e.signal not in LAUNCHER and e.rank is not None}
    return [r for r in own if r.rank not in signals]


def _last_attempt(log: Reading, raised: Sequence[Raised]) -> list[Raised]:
    """Those after the last restart; where that attempt has none, those of the one before."""
    for begin in reversed((0, *log.first)):
        later = [r for r in raised if r.index >= begin]
        if later:
            return later
    return []


def _one_each(raised: Iterable[Raised]) -> list[Raised]:
    """The last of each rank: what ended it. Of those without a rank the first, for each may be of another."""
    found: dict[object, Raised] = {}
    for r in raised:
        key: object = r.rank if r.rank is not None else r.who
        if r.rank is None and key in found:
            continue
        found.pop(key, None)
        found[key] = r
    return sorted(found.values(), key=lambda r: r.index)


def _ranked(log: Reading, own: list[Raised], echoes: Sequence[Raised]) -> list[Raised]:
    """Gives the one exception without a rank that of the one rank whose exit status it explains."""
    nameless = [r for r in own if r.rank is None]
    if len(nameless) != 1 or len(own) != 1:
        return own
    spoken = {r.rank for r in echoes}
    failed = {e.rank for e in log.said.exits if e.rank is not None and e.code and e.rank not in spoken}
    if len(failed) != 1 or len([r for r in echoes if r.rank is None]) > 0:
        return own
    return [msgspec.structs.replace(own[0], rank=min(failed))]


def _exits(log: Reading, echoes: Sequence[Raised], later: Callable[[Exit], bool]) -> tuple[Exit, ...]:
    """Ends of ranks that raised nothing: by their program (`os._exit`, `sys.exit`) or by a signal of nobody's."""
    spoken = {r.rank for r in echoes}
    last = {e.rank: e for e in log.said.exits if e.rank is not None and e.rank not in spoken and not later(e)}
    aborted: set[int | None] = {*log.said.enforced} or ({*last} if log.said.enforce else set())
    # A watchdog aborts its own process, which waited too long; one of nobody knows which process may be any's.
    timed_out = {line.rank for line in log.lines if "Watchdog c" in line.body}
    aborted |= {*last} if None in timed_out else timed_out
    signalled = [e for e in last.values() if e.signal and e.signal not in LAUNCHER and not log.said.forced(e)]
    taken_down: set[int | None] = {r for r, words in log.said.watchdogs.items() if not words.startswith("CUDA error")}
    explained = {"SIGABRT": aborted | taken_down, "SIGSEGV": taken_down}
    violent = [e for e in signalled if e.rank not in explained.get(e.signal, ())]
    if timed_out:  # of a killed rank and those that abort, the killed one is what the watchdogs waited for
        violent = [e for e in violent if e.signal != "SIGABRT"] or violent
    coded = [e for e in last.values() if e.code]
    outside = [e for e in last.values() if e.rank in log.said.signalled_from_outside]
    return tuple(sorted(violent or coded or outside, key=lambda e: e.rank or 0))


def _raised(log: Reading, found: Outcome, waited: tuple[Claim, ...]) -> Verdict:
    """The verdict on ranks that raised on their own; `waited` is what watchdogs say of others."""
    first = found.own[0]
    alike = [r for r in found.own if _key(r) == _key(first)]
    others = [r for r in found.own if _key(r) != _key(first)]
    apart = [r for r in others if trained_between(log, first, r)]
    """Training went on before they failed: a failure of their own, or of another run."""
    culprits = tuple(sorted({r.rank for r in alike if r.rank is not None}))
    failed = (*found.echoes, *(r for r in others if r not in apart))
    victims = tuple(sorted({r.rank for r in failed if r.rank is not None} - set(culprits)))
    place = _place(first)
    where = called_at(place)
    who = spell(culprits, 8) if culprits else _process(log, first) or "a rank"
    later = f"; {say(victims, 'fail')} as a consequence" if victims else ""
    if victims and not culprits:  # one of them may be it
        unsaid = "" if who != "a rank" else "which one is not printed, and "
        later = f"; {unsaid}{say(victims, 'fail')} in communication after it"
        victims = ()
    if not culprits and log.said.named is not None:
        later += f"; torchrun saw rank {log.said.named} end first"
    if apart:
        name = "a rank" if apart[0].rank is None else f"rank {apart[0].rank}"
        later += f"; later, after more training, {name} raised {apart[0].text[:160]} (line {apart[0].line})"
    text = in_process(first)
    summary = f"{who[:1].upper()}{who[1:]} raised {text}{where}{later}."
    claims = (
        *(_claim(r, _process(log, r)) for r in (*alike[:_SHOWN], *others[:_SHOWN], *found.echoes[:_SHOWN])),
        *waited[:_SHOWN],
    )
    single = not others and not found.doubtful
    return Verdict(
        kind="dead",
        culprits=culprits,
        waiting=victims,
        sites=tuple(_sites((*alike, *others, *found.echoes))),
        confidence=(_CERTAIN if single else _LIKELY) if culprits else _NAMELESS,
        summary=summary,
        claims=claims,
        evidence=texts(claims),
        alternatives=tuple(
            Alternative(
                kind="dead",
                culprits=(r.rank,),
                because=f"rank {r.rank} raised {r.text[:120]}, which was printed later",
                refute="times of both errors by one clock",
            )
            for r in others[:3]
            if r.rank is not None
        ),
    )


def _process(log: Reading, raised: Raised) -> str:
    """The process that raised it, where it is known without the number of a rank; else empty.

    Where the processes of ranks are listed, who prints without a number is the driver.
    """
    if raised.rank is not None:
        return ""
    return raised.actor or ("the driver" if log.events.processes and not raised.who[2] else "")


def trained_between(log: Reading, first: Raised, other: Raised) -> bool:
    """Whether somebody trained after the one was printed and before the other."""
    return any(
        (place := bisect_right(steps, first.index)) < len(steps) and steps[place] < other.index
        for steps in log.events.steps.values()
    )


def _ended(found: Outcome, unopened: str) -> Verdict:
    """The verdict on ranks that ended without an exception; `unopened` as in `Said`."""
    culprits = tuple(sorted({e.rank for e in found.exits if e.rank is not None}))
    victims = tuple(sorted({r.rank for r in found.echoes if r.rank is not None} - set(culprits)))
    how = list(dict.fromkeys(_how(e) for e in found.exits))
    later = f"; {say(victims, 'fail')} as a consequence" if victims else ""
    who = spell(culprits, 8)
    # a program ends with a code by an exception as well, which is printed elsewhere then
    signalled = all(e.signal for e in found.exits)
    unsaid = ", without an exception" if signalled else "; no exception that would say why is printed here"
    if unopened and all(e.code == UNOPENED for e in found.exits):
        unsaid = f": {unopened}"
    ends = tuple(
        Claim(
            what="ended",
            ranks=(e.rank,),
            words=f"was ended by {e.signal}" if e.signal else f"ended with {_how(e)}",
            record=Record(source="output", line=e.line, rank=e.rank, words=_how(e)),
        )
        for e in found.exits[:_SHOWN]
        if e.rank is not None
    )
    claims = (*ends, *(_claim(r) for r in found.echoes[:_SHOWN]))
    return Verdict(
        kind="dead",
        culprits=culprits,
        waiting=victims,
        sites=tuple(_sites(found.echoes)),
        confidence=_CERTAIN if len(culprits) == 1 else _LIKELY,
        summary=f"{who[:1].upper()}{who[1:]} ended: {' or '.join(how[:3])}{unsaid}{later}.",
        claims=claims,
        evidence=texts(claims),
    )


def _how(end: Exit) -> str:
    return "killed for memory (SIGKILL)" if end.memory else end.signal or f"exit code {end.code}"


def _key(raised: Raised) -> tuple[str, str, int]:
    place = _place(raised)
    return raised.type, place.file, place.line


def _place(raised: Raised) -> CallSite:
    """The innermost line of the program's own, else the innermost line; empty where nothing is known."""
    frame = own_frame(raised.frames) or (raised.frames[-1] if raised.frames else None)
    rank = -1 if raised.rank is None else raised.rank
    return CallSite(rank, frame.file, frame.line, frame.function) if frame else CallSite(rank, "", 0, "")


def _sites(raised: Iterable[Raised]) -> Iterable[CallSite]:
    seen: set[int] = set()
    for r in raised:
        place = _place(r)
        if place.file and place.rank >= 0 and place.rank not in seen:
            seen.add(place.rank)
            yield place


def _claim(raised: Raised, process: str = "") -> Claim:
    place = _place(raised)
    return Claim(
        what="raised",
        ranks=() if raised.rank is None else (raised.rank,),
        process=process,
        file=place.file,
        line=place.line,
        function=place.function,
        words=in_process(raised),
        record=Record(source="output", line=raised.line, rank=raised.rank, words=raised.text[:_WORDS]),
    )
