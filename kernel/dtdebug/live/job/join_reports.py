"""Joins the reports of several hosts: merges their states, dumps and output, and analyses the job again."""

from __future__ import annotations

import shutil
import stat
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dtdebug.live.hosts import presence, rendezvous_verdict
from dtdebug.live.job.conclude import conclude, load_case
from dtdebug.live.job.observe import LiveRanks, last, merge_states
from dtdebug.live.job.saved_case import without_commands
from dtdebug.live.probe.ask_all_ranks import world_size
from dtdebug.privacy.sanitize import clean, one_line
from dtdebug.storage import budget, safe_open
from dtdebug.storage import state_dir as files
from dtdebug.storage.run_archive import UnpackError, unpack
from dtdebug.storage.run_folder import RunFolder
from dtdebug.storage.untrusted import clean_struct, drop_impossible
from dtdebug_taxonomy.model.hosts import Host
from dtdebug_taxonomy.model.ranks import RankState, Verdict, say
from dtdebug_taxonomy.presentation.case_json import Case

_REPORT = 128 << 20
"""Maximum size in bytes of a report."""
_RANKS = 1 << 16
"""Maximum number of states of ranks in a report."""
_FILES = 4096
_OF_JOB = ("SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "MASTER_PORT")
_GZIP = b"\x1f\x8b"


class JoinError(ValueError):
    """A report can't be used; the text is the one line that the user sees."""


class ReportPart(NamedTuple):
    """Contents of one report."""

    name: str
    case: Case | None = None
    """States of the ranks and hosts."""
    concluded: Case | None = None
    """Conclusion drawn on that host, from all that was there."""
    folder: RunFolder | None = None
    notes: tuple[str, ...] = ()


def join(paths: Sequence[Path]) -> Case:
    """Return one case from the reports of the hosts of one job.

    Raises:
        JoinError: a report can't be read, or belongs to a different job from the first.

    """
    with tempfile.TemporaryDirectory(prefix="dtdebug-join-") as scratch:
        parts = [read_report(path, Path(scratch) / f"part-{number}") for number, path in enumerate(paths)]
        _same_job(parts)
        folder = _merge_folders(parts, Path(scratch) / "all")
        states, progress = _states(parts)
        known = _hosts(parts, states)
        met = _meeting(known, states)
        seen = LiveRanks(states=states, progress=progress, verdict=met)
        if not states and met is None:
            raise JoinError(f"{parts[0].name}: holds nothing of a rank, nor do the others")
        moving = None if not progress or set(progress.values()) & {"slow", "busy"} else False
        found = _fullest(conclude(folder, seen, moving=moving, hosts=known, keep=False), parts)
        if str(folder.path) in found.next:  # it is deleted now
            found = msgspec.structs.replace(found, next="")
    read_ = tuple(f"{part.name}: {_holds(part)}" for part in parts)
    notes = tuple(note for part in parts for note in part.notes)
    return msgspec.structs.replace(
        found,
        coverage=msgspec.structs.replace(found.coverage, read=(*found.coverage.read, *read_)),
        notes=tuple(dict.fromkeys((*found.notes, *notes))),
    )


def _fullest(joined: Case, parts: Sequence[ReportPart]) -> Case:
    """Return the joined case, or that of the host that concluded more, from dumps that are not in its archive."""
    lacking = [part for part in parts if part.concluded is not None and _lacks_dumps(part.concluded, part.folder)]
    if not lacking:
        return joined
    blames = [part.concluded for part in lacking if part.concluded is not None and part.concluded.verdict.culprits]
    best = max(blames, key=lambda case: case.verdict.confidence, default=joined)
    sure = joined.verdict.confidence if joined.verdict.culprits else 0.0
    note = f"{lacking[0].name}: without its dumps; `dtdebug report --dumps RUN` packs them"
    found = best if best.verdict.confidence > sure else joined
    return msgspec.structs.replace(found, notes=(note, *found.notes))


def _lacks_dumps(case: Case, folder: RunFolder | None) -> bool:
    had = any("flight-recorder dumps" in line for line in case.coverage.read)
    return had and folder is not None and not any(folder.flight.glob("*"))


def read_report(path: Path, scratch: Path) -> ReportPart:
    """Read one report: a folder, an archive, or JSON of either form; raises JoinError."""
    name = clean(str(path))
    try:
        kind = path.stat().st_mode
        if stat.S_ISDIR(kind):
            return _of_folder(name, RunFolder(path))
        if not stat.S_ISREG(kind):
            raise JoinError(f"{name}: is neither a file nor a folder")
        with BufferedReader(safe_open.log(path)) as file:
            head = file.read(2)
            if head == _GZIP:
                scratch.mkdir(mode=0o700)
                left_out = unpack(path, scratch)
                part = _of_folder(name, RunFolder(scratch))
                return part._replace(notes=tuple(f"{name}: left out: {line}" for line in left_out))
            data = head + file.read(_REPORT)
    except OSError as error:
        raise JoinError(f"{name}: can't be read: {error.strerror}") from None
    except UnpackError as error:
        raise JoinError(f"{name}: {error}") from None
    if len(data) > _REPORT:
        raise JoinError(f"{name}: larger than {_REPORT >> 20} MiB")
    return ReportPart(name, case=_case(name, data))


def _of_folder(name: str, folder: RunFolder) -> ReportPart:
    if not folder.ranks.is_dir() and not folder.verdict.is_file() and not folder.hosts.is_dir():
        raise JoinError(f"{name}: is not a run's folder")
    case = concluded = None
    if folder.verdict.is_file():
        with suppress(OSError, JoinError):
            data = files.read_start(folder.verdict, _REPORT + 1)
            case, concluded = _case(name, data), load_case(folder)
            concluded = without_commands(concluded, name) if concluded is not None else None
    return ReportPart(name, case=case, concluded=concluded, folder=folder)


def _case(name: str, data: bytes) -> Case:
    """Decode a case, either `verdict.json` or the JSON form for programs."""
    if len(data) > _REPORT or budget.json_memory(data) > budget.MEMORY:
        raise JoinError(f"{name}: holds more than the report of a job does")
    try:
        form = msgspec.json.decode(data)
    except (ValueError, RecursionError):
        raise JoinError(f"{name}: is not a JSON report of dtdebug") from None
    if not isinstance(form, dict) or not isinstance(form.get("verdict"), dict):
        raise JoinError(f"{name}: is not a JSON report of dtdebug: it has no verdict")
    if isinstance(ranks := form.get("ranks"), list) and len(ranks) > _RANKS:
        raise JoinError(f"{name}: holds states of {len(ranks)} ranks; at most {_RANKS} are read")
    try:
        found = msgspec.convert(_plain(form), Case, str_keys=True)
    except (ValueError, RecursionError) as error:
        raise JoinError(f"{name}: is not a JSON report of dtdebug: {one_line(clean(str(error)), 200)}") from None
    return msgspec.structs.replace(found, ranks=tuple(map(drop_impossible, found.ranks)))


def _plain(form: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a case that are joined; conclusions are drawn again."""
    verdict = {key: value for key, value in form["verdict"].items() if key not in ("where", "claims")}
    kept: dict[str, Any] = {key: form[key] for key in ("v", "ranks", "hosts", "progress", "notes") if key in form}
    return {**kept, "verdict": verdict}


def _same_job(parts: Sequence[ReportPart]) -> None:
    """Raise JoinError if two reports can't be of one job."""
    first: tuple[str, list[RankState]] | None = None
    for part in parts:
        states = [s for s in _own_states(part) if s.environment or s.world_size]
        if not states:
            continue
        if first is None:
            first = (part.name, states)
            continue
        theirs, ours = world_size(states), world_size(first[1])
        if theirs and ours and theirs != ours:
            raise JoinError(f"{part.name}: is of a job of {theirs} ranks, {first[0]} of one of {ours}")
        for variable in _OF_JOB:
            there, here = (_variable(each, variable) for each in (states, first[1]))
            if there and here and there != here:
                raise JoinError(f"{part.name}: is of another job: {variable} is {there}, in {first[0]} {here}")


def _variable(states: Iterable[RankState], name: str) -> str:
    return next((clean(value)[:100] for s in states if (value := s.environment.get(name))), "")


def _own_states(part: ReportPart) -> list[RankState]:
    """Return the ranks read for this report: observed states, completed by later records of its folder."""
    seen = [s for s in part.case.ranks if _is_read(s)] if part.case is not None else []
    if part.folder is None:
        return seen
    records = [s for s in last(part.folder).states if _is_read(s)]
    known = {(s.host, s.pid) for s in seen}
    return [*seen, *(s for s in records if (s.host, s.pid) not in known)]


def _is_read(state: RankState) -> bool:
    return state.pid is not None or bool(state.exception or state.signal) or state.exit_code is not None


def _states(parts: Sequence[ReportPart]) -> tuple[tuple[RankState, ...], dict[int, str]]:
    """Return the states of all ranks, and their progress."""
    states: tuple[RankState, ...] = ()
    progress: dict[int, str] = {}
    for part in parts:
        own = _own_states(part)
        ranks = {s.rank for s in own}
        named = {s.rank for s in own if s.pid is not None}
        kept = [s for s in states if s.pid is not None or s.rank not in named]
        there = {k.rank for k in kept}
        new = [s for s in own if s.pid is not None or s.rank not in there]
        states = merge_states(kept, new)
        if part.case is not None:
            progress |= {rank: now for rank, now in part.case.progress.items() if rank in ranks}
    ordered = sorted(states, key=lambda s: (s.rank is None, s.rank or 0, s.pid or 0))
    return tuple(ordered), progress


def _hosts(parts: Sequence[ReportPart], states: Sequence[RankState]) -> list[Host]:
    """Return what the hosts report about themselves, each host once."""
    found: dict[tuple[str, str], Host] = {}
    for part in parts:
        told = [*(part.case.hosts if part.case is not None else ())]
        if part.folder is not None:
            seen = {(h.name, h.place) for h in told if h.meeting is not None}
            told += [h for h in presence.read_hosts(part.folder) if (h.name, h.place) not in seen]
        for host in told:
            found[host.name, host.place] = clean_struct(msgspec.structs.replace(host, silent=0.0))
    named = {h.name for h in found.values()}
    found |= {(s.host, ""): Host(name=s.host) for s in states if s.host and s.host not in named}
    return sorted(found.values(), key=lambda h: (h.plan.node is None, h.plan.node or 0, h.name, h.place))


def _meeting(known: Sequence[Host], states: Sequence[RankState]) -> Verdict | None:
    """Return the verdict on a rendezvous that did not complete, if no rank was started."""
    if states or not rendezvous_verdict.is_waiting(known):
        return None
    # Other launchers ended these hosts after waiting for them: that end is not the cause.
    return rendezvous_verdict.rendezvous_verdict(
        [msgspec.structs.replace(h, finished=None, status=None) for h in known]
    )


def _merge_folders(parts: Sequence[ReportPart], target: Path) -> RunFolder:
    """Copy the folders' uniquely named files into one folder: dumps, output, announced stacks."""
    folder = RunFolder(target)
    for made in (target, folder.ranks, folder.flight, folder.stacks, folder.errors, folder.hosts):
        made.mkdir(mode=0o700)
    for number, part in enumerate(parts):
        if part.folder is None:
            continue
        for there, here in ((part.folder.flight, folder.flight), (part.folder.stacks, folder.stacks),
                            (part.folder.ranks, folder.ranks)):  # fmt: skip
            for path in sorted(there.glob("*"))[:_FILES]:
                _copy(path, here / path.name)
        for index, path in enumerate(part.folder.outputs()):
            _copy(path, folder.hosts / f"{number}-{index}.log")
    return folder


def _copy(path: Path, target: Path) -> None:
    """Copy a plain file, unless a newer one of that name exists."""
    with suppress(OSError):
        if path.is_symlink() or not path.is_file():
            return
        if not target.exists() or target.stat().st_mtime < path.stat().st_mtime:
            shutil.copy2(path, target)


def _holds(part: ReportPart) -> str:
    ranks = sorted({s.rank for s in _own_states(part) if s.rank is not None})
    return say(ranks, "are").removesuffix(" is").removesuffix(" are") if ranks else "no rank"
