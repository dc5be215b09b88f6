"""Merges the lines that doctor printed on each host from the output of a job."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec

from dtdebug.doctor.facts import MOST_HOSTS, Came, HostReport, Meeting
from dtdebug.doctor.judge import coming, verdict
from dtdebug.doctor.report import Report
from dtdebug.doctor.untrusted import tidied
from dtdebug.errors import UsageError
from dtdebug.logs import careful

_PREFIX = b"dtdebug-doctor "
_LINE, _SIZE = 1 << 20, 256 << 20


class _Said(msgspec.Struct, kw_only=True):
    look: HostReport
    meeting: Meeting = Meeting()


def joined(path: Path) -> Report:
    """Return one report from the lines of all hosts.

    Raises:
        UsageError: the file can't be read, or has no such line.

    """
    said: dict[tuple[str, int | None], _Said] = {}
    try:
        with io.BufferedReader(careful.log(path, pipes=True)) as file:
            read = 0
            while (line := file.readline(_LINE)) and read < _SIZE and len(said) < MOST_HOSTS:
                read += len(line)
                _, prefix, data = line.partition(_PREFIX)  # srun and kubectl add their own prefix
                if prefix and (row := _decoded(data)) is not None:
                    said[row.look.host, row.look.launch.node] = row
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror}") from None
    if not said:
        raise UsageError(f"{path}: holds no line of `dtdebug doctor --format jsonl`")
    rows = sorted(said.values(), key=lambda r: (r.look.launch.node is None, r.look.launch.node or 0))
    came = [Came(look=r.look, node=r.look.launch.node, address=(r.look.gloo.address or "")) for r in rows]
    outside = [
        f
        for r in rows
        if r.meeting.result not in ("", "none", "hub", "came")
        for f in coming.outside(r.look, r.meeting)
    ]
    return verdict.together(came, (), 0.0, more=outside)


def _decoded(data: bytes) -> _Said | None:
    try:
        said = msgspec.json.decode(data, type=_Said)
        return _Said(look=tidied(said.look), meeting=said.meeting)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
