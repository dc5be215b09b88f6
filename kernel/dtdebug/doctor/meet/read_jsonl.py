"""Merges the lines that doctor printed on each host from the output of a job."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec

from dtdebug.doctor.judge import attendance, report
from dtdebug.doctor.meet.untrusted import sanitize_report
from dtdebug.doctor.report_types import Report
from dtdebug.doctor.types import MOST_HOSTS, Arrival, HostReport, Meeting
from dtdebug.errors import UsageError
from dtdebug.storage import safe_open

_PREFIX = b"dtdebug-doctor "
_LINE, _SIZE = 1 << 20, 256 << 20


class _HostLine(msgspec.Struct, kw_only=True):
    look: HostReport
    meeting: Meeting = Meeting()


def merge_lines(path: Path) -> Report:
    """Return one report from the lines of all hosts.

    Raises:
        UsageError: the file can't be read, or has no such line.

    """
    said: dict[tuple[str, int | None], _HostLine] = {}
    try:
        with io.BufferedReader(safe_open.log(path, pipes=True)) as file:
            read = 0
            while (line := file.readline(_LINE)) and read < _SIZE and len(said) < MOST_HOSTS:
                read += len(line)
                _, prefix, data = line.partition(_PREFIX)  # srun and kubectl add their own prefix
                if prefix and (row := _decode_line(data)) is not None:
                    said[row.look.host, row.look.launch.node] = row
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror}") from None
    if not said:
        raise UsageError(f"{path}: holds no line of `dtdebug doctor --format jsonl`")
    rows = sorted(said.values(), key=lambda r: (r.look.launch.node is None, r.look.launch.node or 0))
    came = [Arrival(look=r.look, node=r.look.launch.node, address=(r.look.gloo.address or "")) for r in rows]
    outside = [
        f
        for r in rows
        if r.meeting.result not in ("", "none", "hub", "came")
        for f in attendance.outside(r.look, r.meeting)
    ]
    return report.together(came, (), 0.0, more=outside)


def _decode_line(data: bytes) -> _HostLine | None:
    try:
        said = msgspec.json.decode(data, type=_HostLine)
        return _HostLine(look=sanitize_report(said.look), meeting=said.meeting)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
