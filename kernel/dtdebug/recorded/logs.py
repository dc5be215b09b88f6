"""The logs of one question, each read once: what they show is worked out from what was kept of their lines.

Two things are read again: a log above 4 MB in which several ranks print, for more lines of the shapes that turned out
to matter, and the beginnings of files, by which their kind is recognised.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from dtdebug.recorded.curves.read import LogCurves
from dtdebug.recorded.job_logs.last_run import snapshot_of
from dtdebug.recorded.log_files.excerpt import Excerpt, LogError, LogLines, read_file, read_stream
from dtdebug.recorded.log_files.sources import LogSource, find_logs
from dtdebug.recorded.things import one_plain_log
from dtdebug.storage import safe_open
from dtdebug_taxonomy.logs.runs import lines_of, runs_of
from dtdebug_taxonomy.model.snapshot import Snapshot

if TYPE_CHECKING:
    from dtdebug.recorded.attempts.decision import Decision
    from dtdebug.recorded.curves.report import CurveReading
    from dtdebug.recorded.job_logs.part import Part

_HERE = "processes"
_NO_LOG = Excerpt("", (), 0)


class _Tee:
    """Stream that copies to another what is read from it."""

    def __init__(self, stream: BinaryIO, out: BinaryIO) -> None:
        self._stream, self._out = stream, out

    def read(self, size: int) -> bytes:
        chunk = self._stream.read1(size) if hasattr(self._stream, "read1") else self._stream.read(size)
        self._out.write(chunk)
        self._out.flush()
        return chunk


class Logs:
    """Logs, opened when the first thing is asked of them."""

    def __init__(self, paths: Sequence[str], *, tee: bool = False, processes: int = 0, engine: str = _HERE) -> None:
        self.paths = tuple(paths)
        self._tee, self._processes, self._engine = tee, processes, engine
        self.alone = one_plain_log(self.paths) if paths else None
        """The one plain log that the paths come down to; None for none, several, packed ones and parts."""

    @property
    def is_file(self) -> bool:
        """True for one plain file, as opposed to standard input and pipes."""
        return self.alone is not None and self.alone != "-" and Path(self.alone).is_file()

    @property
    def excerpt(self) -> Excerpt:
        """The part of the one log in which an answer is sought; raises LogError."""
        return self._alone[0].excerpt() if self.alone is not None else _NO_LOG

    @cached_property
    def snapshot(self) -> Snapshot:
        """The last run in the one log, as printed; raises LogError."""
        return self._snapshot(self._alone[0]) if self._is_cut else self.runs[-1]

    @cached_property
    def runs(self) -> tuple[Snapshot, ...]:
        """The runs whose output is in the one log, one below another; raises LogError."""
        return runs_of(self._snapshot(self._whole[0] if self.alone is not None else None))

    def _snapshot(self, lines: LogLines | None) -> Snapshot:
        return Snapshot() if lines is None else snapshot_of(lines, self.alone or "")

    @property
    def _is_cut(self) -> bool:
        """True if lines of earlier runs are left out; a log that is not kept as a whole is cut by its excerpt alone."""
        return self.alone is not None and len(self.runs) > 1 and self._whole[0].text is not None

    @cached_property
    def part(self) -> Part:
        """All logs as those of the ranks of one job; raises LogError."""
        if self.is_file or (self.alone == "-" and self._engine == _HERE):
            return self._part_of_one()
        from dtdebug.recorded.job_logs import api

        part, collected = api.read_part_and(self.paths, LogCurves, self._processes, self._engine)
        for other in collected:
            self._curves.add(other)
        return part

    def curves_with(self, metrics: Sequence[str] = ()) -> CurveReading | None:
        """Return the curves that the logs print, and those of other files; None where there is no log."""
        from dtdebug.recorded.curves import report
        from dtdebug.recorded.curves.read import read_curves

        if not self.paths:
            return None
        if self.alone is None:
            self.part  # noqa: B018 - the curves are collected while it is read
        else:
            self._alone  # noqa: B018
        found = self._curves.curves()
        if metrics:
            more = read_curves(metrics)
            found = found._replace(curves=[*found.curves, *more.curves], notes=[*found.notes, *more.notes])
        return report.judge(found)

    @cached_property
    def decision(self) -> Decision | None:
        """Decision after several attempts; None if the logs are not those of several, or none of them failed."""
        from dtdebug.recorded.attempts.decision import decide
        from dtdebug.recorded.attempts.history import attempts_of, in_one_log, is_small

        try:
            if self.alone is None:
                attempts = attempts_of(self.paths)
            else:
                attempts = in_one_log(self.snapshot) if self.is_file and is_small([self.alone]) else ()
        except (LogError, OSError):
            return None  # reading them as logs says what is wrong
        return decide(attempts) if len(attempts) > 1 and any(a.failed for a in attempts) else None

    @cached_property
    def _curves(self) -> LogCurves:
        return LogCurves()

    @cached_property
    def _alone(self) -> tuple[LogLines, LogSource]:
        """The one log; lines of runs before the last one are blank, so that the others keep their numbers."""
        lines, source = self._whole
        if not self._is_cut:
            return lines, source
        from dtdebug.recorded.job_logs.rank_from_path import of_paths

        self._curves = LogCurves()
        reader = self._curves.reader(source, of_paths([source.name])[0])
        return lines.since(lines_of(self.runs[-1])[0], reader), source

    @cached_property
    def _whole(self) -> tuple[LogLines, LogSource]:
        """The one log, read to its end."""
        from dtdebug.recorded.job_logs.rank_from_path import of_paths

        name = cast("str", self.alone)
        source = find_logs([name])[0][0] if self.is_file else LogSource("standard input" if name == "-" else name, name)
        lines = LogLines(reader=self._curves.reader(source, of_paths([source.name])[0]))
        if name == "-":
            given = safe_open.standard_input()
            stream = _Tee(given, sys.stdout.buffer) if self._tee else given
            read_stream(cast("BinaryIO", stream), source.name, lines)
        else:
            read_file(Path(name), lines)
        return lines, source

    def _part_of_one(self) -> Part:
        from dtdebug.recorded.job_logs import reduce
        from dtdebug.recorded.job_logs.line_judge import Judge
        from dtdebug.recorded.job_logs.part import Part, merge
        from dtdebug.recorded.job_logs.rank_from_path import of_paths

        part = Part()
        try:
            lines, source = self._alone
        except LogError as error:
            part.unread.append(str(error))
        else:
            reduce.add_log(part, Judge(), source, of_paths([source.name])[0], (lines, lines.fault))
        return merge([part])
