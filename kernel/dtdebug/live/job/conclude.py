"""Builds a case from one observation of a run's ranks: verdict, diagnosis and coverage."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence

import msgspec

from dtdebug.experiments.call_plan.notes import contract_result
from dtdebug.experiments.invariants.result import WatchResult, watch_result
from dtdebug.experiments.nonfinite.result import nonfinite_result
from dtdebug.experiments.parity.result import parity_result
from dtdebug.live.job import first_death
from dtdebug.live.job.coverage import (
    add_host_coverage,
    blame_launcher,
    coverage,
    following,
    limit_verdict,
    next_host,
    unread,
)
from dtdebug.live.job.judge import Basis, judge
from dtdebug.live.job.observe import LiveRanks, last
from dtdebug.live.job.output_store import read_copy
from dtdebug.live.job.rank_accounts import accounts_of, add_crash_stacks, parting_of, standing_accounts
from dtdebug.live.job.restarts import attempts, verdict_without_ranks
from dtdebug.live.probe.liveness import Death
from dtdebug.privacy.sanitize import plain
from dtdebug.recorded.flight_recorder.source_branches import exclusive
from dtdebug.storage import state_dir as files
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.checks import load
from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
from dtdebug_taxonomy.inference.lines_apart import step_of_lines_apart, tell_lines_apart
from dtdebug_taxonomy.inference.ranks_apart import with_partings
from dtdebug_taxonomy.model.claims import Claim, Record, distinct, texts
from dtdebug_taxonomy.model.hosts import Host
from dtdebug_taxonomy.model.ranks import Frame, RankState, Verdict
from dtdebug_taxonomy.model.snapshot import Snapshot, SourceFinding
from dtdebug_taxonomy.model.training import Violation
from dtdebug_taxonomy.presentation.case_json import Case
from dtdebug_taxonomy.verdicts.from_log import verdict_of_log

_ACCOUNTS_SAVED = 8
"""Maximum number of accounts in a case."""
_FOUND_LIMIT = 256 << 20
"""Maximum size in bytes of a saved verdict with its ranks."""
_RESTS = 0.4
"""Confidence up to which the rank that is waited for was at work; that it rests now is news."""
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
    curves: Sequence[str] = (),
    standing: Case | None = None,
    keep: bool = True,
) -> Case:
    """Return the verdict and the diagnosis on observed states, with everything in the run's folder.

    `moving`: True if the ranks still moved then, None if not watched. `hosts`: what the job's hosts report about
    themselves. `curves`: notes on what it printed of its training. `standing`: the case of these ranks while they
    stood, which is the answer if their ends add nothing. `keep`: save this case in the folder as the result of the run.
    """
    output, first_lines, notes = _output(folder)
    tried = attempts(seen.states)
    seen = msgspec.structs.replace(seen, states=tried.last, notes=(*seen.notes, *tried.notes))
    ended_before = {s.pid for s in tried.earlier}
    deaths = [death for death in deaths if death.pid not in ended_before]
    silent = [s.pid for s in seen.states if s.pid and s.alive is False and _is_silent(folder, s)]
    basis = Basis(
        output=tried.of_last(output),
        earlier=seen.verdict,
        measured=seen.measured,
        moving=moving,
        progress=seen.progress,
        seconds=seen.seconds,
        deaths=deaths,
        starved=starved,
        starvations=starvations,
        silent=silent,
        since=tried.since,
    )
    verdict, ended, missing, more, *_ = judge(folder, add_crash_stacks(folder, seen.states), basis)
    verdict = limit_verdict(verdict, ended.states, unread(ended.states, hosts))
    verdict = blame_launcher(verdict, ended.states, hosts)
    if not any(now in ("busy", "slow") for now in seen.progress.values()):
        verdict = tell_lines_apart(verdict, ended.states)
    said = [*seen.notes, *ended.notes, *first_death.correction(ended.named, verdict.culprits, ended.states)]
    if standing is not None and essence(verdict) == essence(standing.verdict):
        found = msgspec.structs.replace(
            standing,
            ranks=tuple(msgspec.structs.replace(s, accounts=(), branches=()) for s in ended.states),
            coverage=add_host_coverage(coverage(ended.states, output, missing, (*notes, *more)), ended.states, hosts),
            notes=tuple(dict.fromkeys((*standing.notes, *notes, *said, *more, *curves))),
            next="",
        )
        if folder is not None and keep:
            _save(folder, found)
        return found
    told = accounts_of(ended.states, verdict)
    parting = parting_of(ended.states, verdict)
    ranks = [msgspec.structs.replace(s, accounts=(), branches=()) for s in ended.states]
    if (seen.printed is not None or seen.measured) and verdict.kind not in ("none", "dead", "left"):
        ranks = [first_death.standing(state) for state in ranks]  # their ends are the user's doing
    watch = _watch_findings(folder)
    snapshot = Snapshot(
        output=plain(output if seen.printed is None else seen.printed),
        source=str(folder.output) if folder else "",
        first_lines=first_lines if seen.printed is None else (),
        ranks=tuple(ranks),
        accounts=told,
        parting=parting,
        versions=next((s.versions for s in ended.states if s.versions), {}),
        environment=next((s.environment for s in ended.states if s.environment), {}),
        verdict=verdict,
        watched=watch.violations if watch is not None else (),
        late=watch.late if watch is not None else (),
        notes=tuple(said),
    )
    run = folder.load_run() if folder is not None else None
    if seen.printed is None and not seen.measured:
        of_last = msgspec.structs.replace(snapshot, output=tried.of_last(snapshot.output))
        verdict = _by_output(verdict, ended.states, of_last)
    verdict = verdict_without_ranks(verdict, ended.states, snapshot, run)
    snapshot = msgspec.structs.replace(snapshot, accounts=(*told, *standing_accounts(verdict, ended.states, told)))
    snapshot = _add_source_findings(msgspec.structs.replace(snapshot, verdict=verdict))
    snapshot = msgspec.structs.replace(snapshot, accounts=with_partings(snapshot.accounts, verdict))
    apart = step_of_lines_apart(verdict, ended.states) if parting is None else ""
    found = Case(
        verdict=snapshot.verdict or verdict,
        diagnosis=_diagnosis(snapshot, folder),
        ranks=tuple(msgspec.structs.replace(s, accounts=(), branches=()) for s in ended.states),
        hosts=tuple(hosts),
        accounts=snapshot.accounts[:_ACCOUNTS_SAVED],
        parting=parting,
        progress=seen.progress,
        coverage=add_host_coverage(coverage(ended.states, output, missing, (*notes, *more)), ended.states, hosts),
        missing_dumps=missing,
        notes=tuple(dict.fromkeys((*notes, *said, *more, *curves))),
        next=next_host(verdict, ended.states, hosts)
        or apart
        or ("" if seen.printed is not None else following(verdict, ended.states, folder)),  # the user has ended it
    )
    found = _with(found, watch)
    if folder is not None and keep:
        _save(folder, found)
    return found


def essence(verdict: Verdict) -> tuple[object, ...]:
    """Return what a user has to be told again if it changes."""
    return verdict.kind, verdict.culprits, verdict.collective, verdict.open, verdict.confidence > _RESTS


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


def success_case(folder: RunFolder) -> Case:
    """Return the case of a job that has ended with exit status 0."""
    states = last(folder).states
    claim = Claim(what="left", ranks=tuple(sorted({s.rank for s in states if s.rank is not None})), record=_SUCCESS)
    said = (claim,) if claim.ranks else ()
    seen = move_to_causes(_watch_findings(folder))
    number = len(seen.violations) if seen is not None else 0
    summary = "The job finished."
    if number:
        summary = f"The job finished, but broke {number} training invariant{'s' * (number > 1)}."
    verdict = Verdict(kind="none", confidence=1.0, summary=summary, claims=said, evidence=texts(said))
    found = Case(verdict=verdict, coverage=coverage(states, printed_output(folder)), ranks=states)
    if seen is None:
        return found
    found = _with(found, seen)
    if seen.violations or seen.late:
        snapshot = Snapshot(ranks=states, watched=seen.violations, late=seen.late, source=str(folder.output))
        found = msgspec.structs.replace(found, diagnosis=_diagnosis(snapshot, folder))
    return found


_RESULTS = (
    ("contract", contract_result), ("nan", nonfinite_result), ("parity", parity_result), ("watch", watch_result),
)  # fmt: skip
"""Readers of the notes of ranks, the most certain first."""


def _watch_findings(folder: RunFolder | None) -> WatchResult | None:
    """Return what was seen of the training, measured steps first; a defect in one of these loses only its findings."""
    found: WatchResult | None = None
    for name, read in _RESULTS:
        try:
            seen = read(folder.path) if folder is not None else None
        except Exception as error:
            seen = WatchResult(notes=(f"{name}: its notes could not be judged ({type(error).__name__}: {error})",))
        if seen is None:
            continue
        if not isinstance(seen, WatchResult):
            seen = WatchResult(violations=seen.violations, notes=(seen.note,) if seen.note else ())
        found = seen if found is None else _join(found, seen)
    return found


def move_to_causes(seen: WatchResult | None) -> WatchResult | None:
    """Return the findings with the line and the diff of what a check finds, if it is the only such fault in that file.

    A finding that names its cause keeps its own line.
    """
    if seen is None:
        return None
    faults = {
        name: {c.id for c in load().values() if name in c.measured} for name in {v.invariant for v in seen.violations}
    }
    stack = tuple(Frame(v.file, v.line, "") for v in seen.violations if faults[v.invariant] and v.file)
    if not stack:
        return seen
    found = _add_source_findings(Snapshot(ranks=(RankState(rank=0, stack=stack),))).source_findings
    return msgspec.structs.replace(
        seen,
        violations=tuple(_at_fault(v, [f for f in found if f.check in faults[v.invariant]]) for v in seen.violations),
    )


def _at_fault(seen: Violation, found: Sequence[SourceFinding]) -> Violation:
    at = {f.line: f.diff for f in found if f.file == seen.file}
    if len(at) != 1:
        return seen
    line, diff = next(iter(at.items()))
    return msgspec.structs.replace(seen, line=seen.line if seen.cause else line, diff=seen.diff or diff)


def _join(first: WatchResult, second: WatchResult) -> WatchResult:
    return WatchResult(
        violations=first.violations + second.violations,
        pace=first.pace + second.pace,
        late=first.late + second.late,
        notes=first.notes + second.notes,
    )


def _with(found: Case, seen: WatchResult | None) -> Case:
    if seen is None:
        return found
    return msgspec.structs.replace(
        found, watch=seen.violations, pace=seen.pace, late=seen.late, notes=(*seen.notes, *found.notes)
    )


def _add_source_findings(snapshot: Snapshot) -> Snapshot:
    """Add what the files on the stacks tell; a defect in a check loses only that."""
    from dtdebug.account.printed import with_program

    try:
        return with_program(snapshot)
    except Exception as error:
        note = f"the source could not be checked ({type(error).__name__}: {error})"
        return msgspec.structs.replace(snapshot, notes=(*snapshot.notes, note))


def _is_silent(folder: RunFolder | None, state: RankState) -> bool:
    """True if the rank's agent wrote records, but no final one."""
    record = folder.record(state.pid or 0, state.host) if folder else None
    return record is not None and record.alive is not False


def printed_output(folder: RunFolder) -> str:
    """Return the kept part of the job's output so far."""
    return _output(folder)[0]


def _output(folder: RunFolder | None) -> tuple[str, tuple[tuple[int, int], ...], list[str]]:
    from dtdebug.recorded.log_files import excerpt as log_excerpt

    raw = b"\n".join(filter(None, map(read_copy, folder.outputs()))) if folder else b""
    if not raw:
        return "", (), []
    try:
        excerpt = log_excerpt.read_excerpt(io.BytesIO(raw), "the job's output")
    except log_excerpt.LogError as error:
        return "", (), [str(error)]
    return excerpt.text, excerpt.first_lines, []


def _diagnosis(snapshot: Snapshot, folder: RunFolder | None) -> Diagnosis | None:
    from dtdebug.privacy.boundary import diagnose
    from dtdebug.storage import doctor_result, editor_marks
    from dtdebug.storage.last_failure import LastFailure
    from dtdebug_taxonomy.knowledge.loader import load as knowledge

    run = folder.load_run() if folder is not None else None
    if run is not None:
        measured = doctor_result.of_run(run.command)
        snapshot = msgspec.structs.replace(snapshot, command=run.command, examined=measured)
    diagnosis = diagnose(knowledge(), _as_printed(snapshot))
    LastFailure(snapshot=snapshot, diagnosis=diagnosis).save()
    if run is not None and run.command:
        editor_marks.keep_failure(snapshot, diagnosis, editor_marks.job_of(run.command))
    return diagnosis


def _as_printed(snapshot: Snapshot) -> Snapshot:
    """Drop ranks and source findings if the ranks were at work: then only printed text can show a failure."""
    if snapshot.verdict is None or snapshot.verdict.kind != "none":
        return snapshot
    return msgspec.structs.replace(snapshot, ranks=(), source_findings=(), source_read=False)


def load_saved_case(folder: RunFolder) -> Case | None:
    """Return the case saved while the run was watched to its end, if any: its ranks are gone and would show less."""
    run = folder.load_run()
    if run is None or run.finished is None or not run.status:
        return None
    return load_case(folder)


def load_case(folder: RunFolder) -> Case | None:
    """Return the case in `verdict.json`, if it is there and can be read."""
    try:
        return msgspec.json.decode(files.read_start(folder.verdict, _FOUND_LIMIT), type=Case)
    except (OSError, ValueError):
        return None


def _save(folder: RunFolder, found: Case) -> None:
    from dtdebug.privacy.boundary import mask_record

    files.write(folder.verdict, msgspec.json.encode(mask_record(found)))
