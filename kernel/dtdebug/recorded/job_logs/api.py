"""Reads all logs of a job."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from dtdebug.errors import UsageError
from dtdebug.recorded.job_logs import workers as engines
from dtdebug.recorded.job_logs.job_view import Job, view
from dtdebug.recorded.job_logs.part import Part, decode, is_part, merge
from dtdebug.recorded.job_logs.rank_from_path import of_paths
from dtdebug.recorded.job_logs.reduce import NoCollector
from dtdebug.recorded.job_logs.workers import C
from dtdebug.recorded.log_files.sources import LogSource, find_logs
from dtdebug.storage import safe_open
from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
from dtdebug_taxonomy.model.snapshot import Snapshot

_PART = 1 << 30
"""Maximum size of a part in bytes."""


def job_of(part: Part, situation: str = "") -> Job:
    """Return the job of a part that holds all of it, with the user's description.

    Raises:
        UsageError: no log could be read.

    """
    from msgspec.structs import replace

    from dtdebug.privacy.sanitize import plain

    if not part.files and not part.streams:
        raise UsageError(f"nothing could be read: {'; '.join(part.unread[:3]) or 'no log'}")
    job = view(part)
    return replace(job, snapshot=replace(job.snapshot, situation=plain(situation)))


def conclude(
    job: Job, answers: Mapping[str, str] | None = None, unknown: tuple[str, ...] = ()
) -> tuple[Snapshot, Diagnosis, bool]:
    """Return what is known of a job, its diagnosis, and whether something is wrong with it."""
    from dtdebug.account.printed import with_program
    from dtdebug.privacy.boundary import diagnose
    from dtdebug.recorded.job_logs import render
    from dtdebug_taxonomy.knowledge.loader import load
    from dtdebug_taxonomy.logs.log_end import is_stop

    snapshot = with_program(job.snapshot)
    diagnosis = render.relocate_lines(diagnose(load(), snapshot, answers, unknown), job.places)
    wrong = diagnosis.recognised and job.went_on is None and not job.is_completed
    return snapshot, diagnosis, bool(job.first or job.tells_more or wrong or is_stop(job.verdict))


def read_part(paths: Sequence[str], processes: int = 0, engine: str = engines.HERE) -> Part:
    """Return the part with everything that the paths name: logs are read, parts are taken as they are."""
    return read_part_and(paths, NoCollector, processes, engine)[0]


def read_part_and(
    paths: Sequence[str], collect: Callable[[], C], processes: int = 0, engine: str = engines.HERE
) -> tuple[Part, list[C]]:
    """Return the same part, with what else was collected while the logs were read."""
    sources, unread = find_logs(list(paths))
    parts, logs = [], []
    for source in sources:
        known = _as_part(source)
        if known is not None:
            parts.append(known)
        else:
            logs.append(source)
    read = engines.parts(logs, of_paths([s.name for s in logs]), engine, processes, collect=collect)
    whole = merge([*parts, *(part for part, _ in read)])
    whole.unread = [*unread, *whole.unread]
    return whole, [collected for _, collected in read]


def _as_part(source: LogSource) -> Part | None:
    if source.path == "-" or source.member or not source.path.endswith(".json"):
        return None
    try:
        with safe_open.log(source.path) as file:
            begin = file.read(400)
            if not is_part(begin):
                return None
            size = min(os.fstat(file.fileno()).st_size, _PART)  # for as many bytes as are asked for, memory is taken
            return decode(begin + file.read(size), source.name)
    except OSError:
        return None  # reading it as a log reports why
