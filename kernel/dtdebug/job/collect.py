"""Builds a case from one observation of a run's ranks: verdict, diagnosis and coverage."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

import msgspec

from dtdebug import state as files
from dtdebug.clean import plain
from dtdebug.flight.source import exclusive
from dtdebug.job import ends
from dtdebug.job.coverage import bereft, coverage, covered, following, limited, next_host, unread
from dtdebug.job.judgement import Basis, judge
from dtdebug.job.looking import LiveRanks, last
from dtdebug.job.output import kept
from dtdebug.job.starts import attempts, unstarted
from dtdebug.probe.watch import Death
from dtdebug.records.folder import RunFolder
from dtdebug.watch.result import Watched, watched
from dtdebug_taxonomy.case import Case
from dtdebug_taxonomy.claims import Claim, Record, distinct, texts
from dtdebug_taxonomy.diagnosis import Diagnosis
from dtdebug_taxonomy.failure.attribution import verdict_of_log
from dtdebug_taxonomy.frames import before_agent
from dtdebug_taxonomy.hosts import Host
from dtdebug_taxonomy.ranks import RankState, Verdict
from dtdebug_taxonomy.snapshot import Snapshot

_STACK_LIMIT = 1 << 20
_FOUND_LIMIT = 256 << 20
"""Maximum size in bytes of a saved verdict with its ranks."""
_SUCCESS = Record(source="exit", words="exit status 0 of the job")


def conclude(
    folder: RunFolder | None,
    seen: LiveRanks,
    *,
    deaths: Sequence[Death] = (),
    starved: Collection[int] = (),
    starvations: int = 0,
    moving: bool | None = None,
    hosts: Sequence[Host] = (),
    keep: bool = True,
) -> Case:
    """Return the verdict and the diagnosis on observed states, with everything in the run's folder.

    `moving`: True if the ranks still moved then, None if not watched. `hosts`: what the job's hosts report about
    themselves. `keep`: save this case in the folder as the result of the run.
    """
    output, first_lines, notes = _output(folder)
    tried = attempts(seen.states)
    seen = msgspec.structs.replace(seen, states=tried.last, notes=(*seen.notes, *tried.notes))
    ended_before = {s.pid for s in tried.earlier}
    deaths = [death for death in deaths if death.pid not in ended_before]
    silent = [s.pid for s in seen.states if s.pid and s.alive is False and _is_silent(folder, s)]
    basis = Basis(
        output=output,
        earlier=seen.verdict,
        measured=seen.measured,
        moving=moving,
        progress=seen.progress,
        seconds=seen.seconds,
        deaths=deaths,
        starved=starved,
        starvations=starvations,
        silent=silent,
    )
    verdict, ended, missing, more, _ = judge(folder, _placed(folder, seen.states), basis)
    verdict = limited(verdict, ended.states, unread(ended.states, hosts))
    verdict = bereft(verdict, ended.states, hosts)
    said = [*seen.notes, *ended.notes, *ends.correction(ended.named, verdict.culprits, ended.states)]
    ranks = ended.states
    if (seen.printed is not None or seen.measured) and verdict.kind not in ("none", "dead", "left"):
        ranks = [ends.standing(state) for state in ranks]  # their ends are the user's doing
    watch = _seen(folder)
    snapshot = Snapshot(
        output=plain(output if seen.printed is None else seen.printed),
        source=str(folder.output) if folder else "",
        first_lines=first_lines if seen.printed is None else (),
        ranks=tuple(ranks),
        versions=next((s.versions for s in ended.states if s.versions), {}),
        environment=next((s.environment for s in ended.states if s.environment), {}),
        verdict=verdict,
        watched=watch.violations if watch is not None else (),
        late=watch.late if watch is not None else (),
        notes=tuple(said),
    )
    run = folder.load_run() if folder is not None else None
    if seen.printed is None and not seen.measured:
        verdict = _by_output(verdict, ended.states, snapshot)
    verdict = unstarted(verdict, ended.states, snapshot, run)
    snapshot = _sourced(msgspec.structs.replace(snapshot, verdict=verdict))
    found = Case(
        verdict=snapshot.verdict or verdict,
        diagnosis=_diagnosis(snapshot, folder),
        ranks=tuple(ended.states),
        hosts=tuple(hosts),
        progress=seen.progress,
        coverage=covered(coverage(ended.states, output, missing, (*notes, *more)), ended.states, hosts),
        missing_dumps=missing,
        notes=tuple(dict.fromkeys((*notes, *said, *more))),
        next=next_host(verdict, ended.states, hosts)
        or ("" if seen.printed is not None else following(verdict, ended.states, folder)),  # the user has ended it
    )
    found = _with(found, watch)
    if folder is not None and keep:
        _save(folder, found)
    return found


def _by_output(verdict: Verdict, states: Sequence[RankState], snapshot: Snapshot) -> Verdict:
    """Return the printed verdict if all ranks have ended and their records explain nothing; else `verdict`."""
    if verdict.kind != "not_understood" or not states or any(s.alive is not False for s in states):
        return verdict
    printed = verdict_of_log(snapshot, exclusive)
    if printed is None or not printed.culprits:
        return verdict
    mute = {c.ranks for c in printed.claims if c.what == "ended"}
    if any(s.exception and (s.rank,) in mute for s in states):  # the launcher printed less than the rank raised
        return verdict
    claims = distinct((*printed.claims, *verdict.claims))
    return msgspec.structs.replace(printed, claims=claims, evidence=texts(claims))


def succeeded(folder: RunFolder) -> Case:
    """Return the case of a job that has ended with exit status 0."""
    states = last(folder).states
    claim = Claim(what="left", ranks=tuple(sorted({s.rank for s in states if s.rank is not None})), record=_SUCCESS)
    said = (claim,) if claim.ranks else ()
    seen = _seen(folder)
    number = len(seen.violations) if seen is not None else 0
    summary = "The job has succeeded."
    if number:
        summary = (
            f"The job has ended with success, and {number} thing{'s' * (number > 1)} did not hold while it trained."
        )
    verdict = Verdict(kind="none", confidence=1.0, summary=summary, claims=said, evidence=texts(said))
    found = Case(verdict=verdict, coverage=coverage(states, printed_output(folder)), ranks=states)
    if seen is None:
        return found
    found = _with(found, seen)
    if seen.violations or seen.late:
        snapshot = Snapshot(ranks=states, watched=seen.violations, late=seen.late, source=str(folder.output))
        found = msgspec.structs.replace(found, diagnosis=_diagnosis(snapshot, folder))
    return found


def _seen(folder: RunFolder | None) -> Watched | None:
    """Return the watch's findings; a defect in the watch loses only these."""
    try:
        return watched(folder.path) if folder is not None else None
    except Exception as error:
        return Watched(notes=(f"watch: its notes could not be judged ({type(error).__name__}: {error})",))


def _with(found: Case, seen: Watched | None) -> Case:
    if seen is None:
        return found
    return msgspec.structs.replace(
        found, watch=seen.violations, pace=seen.pace, late=seen.late, notes=(*seen.notes, *found.notes)
    )


def _sourced(snapshot: Snapshot) -> Snapshot:
    """Add the findings of checks in the files on the stacks; a defect in a check loses only these."""
    from dtdebug.check.culprits import sourced_snapshot

    try:
        return sourced_snapshot(snapshot)
    except Exception as error:
        note = f"the source could not be checked ({type(error).__name__}: {error})"
        return msgspec.structs.replace(snapshot, notes=(*snapshot.notes, note))


def _is_silent(folder: RunFolder | None, state: RankState) -> bool:
    """True if the rank's agent wrote records, but no final one."""
    record = folder.record(state.pid or 0, state.host) if folder else None
    return record is not None and record.alive is not False


def _placed(folder: RunFolder | None, states: Iterable[RankState]) -> list[RankState]:
    """Add the stack that C code wrote when a signal ended a rank."""
    from dtdebug.probe.roads import parse_traceback

    result = []
    for state in states:
        file = folder.announced_stack(state) if folder is not None else None
        if file is not None and state.alive is False and not state.exception:
            with suppress(OSError, ValueError):  # later than any observation
                written = parse_traceback(files.read_start(file, _STACK_LIMIT).decode(errors="replace"))
                stack = before_agent(written) or state.stack
                state = msgspec.structs.replace(state, stack=stack)  # noqa: PLW2901 - the same rank, completed
        result.append(state)
    return result


def printed_output(folder: RunFolder) -> str:
    """Return the kept part of the job's output so far."""
    return _output(folder)[0]


def _output(folder: RunFolder | None) -> tuple[str, tuple[tuple[int, int], ...], list[str]]:
    from dtdebug.logs import reader

    raw = b"\n".join(filter(None, map(kept, folder.outputs()))) if folder else b""
    if not raw:
        return "", (), []
    try:
        excerpt = reader.read_excerpt(io.BytesIO(raw), "the job's output")
    except reader.LogError as error:
        return "", (), [str(error)]
    return excerpt.text, excerpt.first_lines, []


def _diagnosis(snapshot: Snapshot, folder: RunFolder | None) -> Diagnosis | None:
    from dtdebug import examined, handoff
    from dtdebug.border import diagnose
    from dtdebug.last import Last
    from dtdebug_taxonomy.knowledge import load

    run = folder.load_run() if folder is not None else None
    if run is not None:
        measured = examined.of_run(run.command)
        snapshot = msgspec.structs.replace(snapshot, command=run.command, examined=measured)
    diagnosis = diagnose(load(), _as_printed(snapshot))
    Last(snapshot=snapshot, diagnosis=diagnosis).save()
    if run is not None and run.command:
        handoff.keep_failure(snapshot, diagnosis, handoff.job_of(run.command))
    return diagnosis


def _as_printed(snapshot: Snapshot) -> Snapshot:
    """Drop ranks and source findings if the ranks were at work: then only printed text can show a failure."""
    if snapshot.verdict is None or snapshot.verdict.kind != "none":
        return snapshot
    return msgspec.structs.replace(snapshot, ranks=(), source_findings=())


def concluded(folder: RunFolder) -> Case | None:
    """Return the case saved while the run was watched to its end, if any: its ranks are gone and would show less."""
    run = folder.load_run()
    if run is None or run.finished is None or not run.status:
        return None
    try:
        return msgspec.json.decode(files.read_start(folder.verdict, _FOUND_LIMIT), type=Case)
    except (OSError, ValueError):
        return None


def _save(folder: RunFolder, found: Case) -> None:
    files.write(folder.verdict, msgspec.json.encode(found))
