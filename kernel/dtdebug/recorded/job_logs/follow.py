"""Keeps reading the logs of a running job and reports the first failure soon after its line."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from dtdebug.errors import NOTHING
from dtdebug.recorded.job_logs import reduce
from dtdebug.recorded.job_logs.job_view import Job, view
from dtdebug.recorded.job_logs.line_judge import Judge
from dtdebug.recorded.job_logs.part import Part
from dtdebug.recorded.job_logs.rank_from_path import LogOwner, of_paths
from dtdebug.recorded.log_files.excerpt import LogError, LogLines
from dtdebug.recorded.log_files.sources import LogSource, find_logs
from dtdebug.storage import safe_open

_PAUSE, _LOOK, _GRACE = 0.5, 3.0, 2.0
"""Seconds between two reads of the files, between two listings of folders, and from a telling line to its judgement:
in the meantime more lines of the same failure arrive, or training continues after it."""
_CHUNK = 1 << 20


class _GrowingLog:
    """File that grows."""

    def __init__(self, source: LogSource) -> None:
        self.source = source
        self.log = LogLines(reduce.MOST)
        self._at = 0
        self.bad = ""

    def grow(self) -> bool:
        """Read new bytes; True if there were any."""
        try:
            with safe_open.log(self.source.path) as file:
                if file.seek(0, 2) < self._at:  # it was truncated or replaced
                    self.log, self._at = LogLines(reduce.MOST), 0
                file.seek(self._at)
                before = self._at
                while chunk := file.read(_CHUNK):
                    self.log.add(chunk, self.source.name)
                    self._at += len(chunk)
                return self._at > before
        except (OSError, LogError) as error:
            self.bad = str(error)
            return False


class Follower:
    """Logs of a job that are still being written."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = list(paths)
        self._files: dict[str, _GrowingLog] = {}
        self._judge = Judge()
        self._looked = 0.0
        self._telling: dict[str, int] = {}
        self._since: float | None = None
        """Time of the last telling line by this process's clock; None while there is none to judge."""

    def look(self) -> Job | None:
        """Read once; return the job as soon as a rank has failed."""
        now = time.monotonic()
        if now - self._looked >= _LOOK or not self._files:
            self._find()
            self._looked = now
        grown = [f for f in self._files.values() if not f.bad and f.grow()]
        for file in grown:
            kept = file.log.shapes.kept
            self._judge.learn(kept)
            count = sum(self._judge.tells(row.raw) for row in kept)
            if count > self._telling.get(file.source.name, 0) and self._since is None:
                self._since = now
            self._telling[file.source.name] = count
        if self._since is None or now - self._since < _GRACE:
            return None
        self._since = None
        job = self.job()
        return job if job.first or (job.verdict is not None and job.verdict.names_ranks) else None

    def job(self) -> Job:
        """Return the job as far as its logs have been written."""
        part, judge = Part(), Judge()
        judge.telling = self._judge.telling
        files = list(self._files.values())
        for file, names in zip(files, self._whose(files), strict=True):
            if file.bad:
                part.unread.append(file.bad)
                continue
            reduce.add(part, judge, file.log, file.source, names)
            part.files += 1
        return view(part)

    def progress(self) -> str:
        """Return a line on how much has been read."""
        size = sum(f.log.size for f in self._files.values())
        return f"{len(self._files)} logs, {size / 1e6:.1f} MB read, no failure so far"

    def _whose(self, files: Sequence[_GrowingLog]) -> list[LogOwner]:
        return of_paths([f.source.name for f in files])

    def _find(self) -> None:
        try:
            sources, _ = find_logs(self._paths)
        except LogError:  # the job has not written yet
            return
        for source in sources:
            if source.path != "-" and not source.member and source.name not in self._files:
                self._files[source.name] = _GrowingLog(source)


def follow(paths: Sequence[str], report: Callable[[Job], int]) -> int:
    """Follow until a rank fails, which is reported, or until interrupted; return the exit status."""
    follower, shown = Follower(paths), 0.0
    terminal = sys.stderr.isatty()
    try:
        while True:
            job = follower.look()
            if job is not None:
                if terminal:
                    print("\r\x1b[K", end="", file=sys.stderr)
                return report(job)
            if terminal and time.monotonic() - shown > 1:
                shown = time.monotonic()
                print(f"\r\x1b[Kdtdebug: {follower.progress()}", end="", file=sys.stderr, flush=True)
            time.sleep(_PAUSE)
    except KeyboardInterrupt:
        if terminal:
            print(file=sys.stderr)
        return NOTHING
