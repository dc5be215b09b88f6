"""Adds reports from the shared folder to the meeting: rejected hosts are heard, and the folder itself is tested."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from dtdebug.doctor.host import bounded_calls
from dtdebug.doctor.judge import attendance
from dtdebug.doctor.judge import report as judge_report
from dtdebug.doctor.judge.findings import finding, fold_names
from dtdebug.doctor.meet.shared_folder import PAUSE, Folder, HostFile
from dtdebug.doctor.report_types import HostFinding, Report
from dtdebug.doctor.types import Arrival, HostReport, Meeting, Stranger
from dtdebug.errors import UsageError

_LATER = 3.0
"""Seconds after the wait in which hosts write their result."""
_WELL = ("", "none", "hub", "came")


class SharedFolder:
    """Shared folder of a run, as this host sees it."""

    def __init__(self, place: Path, token: str, look: HostReport) -> None:
        """Write this host's report; raises UsageError."""
        if not bounded_calls.folder_answers(place):
            raise UsageError(
                f"doctor --folder {place}: no answer in {bounded_calls.FOLDER_LIMIT:g} s: its file server hangs"
            )
        self._place, self._look = place, look
        self._folder = Folder(place, token, look)
        self._why = ""
        try:
            self._folder.write(look, Meeting())
        except OSError as error:
            self._why = error.strerror or "error"

    def judge(self, came: list[Arrival], strangers: list[Stranger], waited: float) -> Report:
        """Return the verdict of the meeting, completed by the files of hosts that did not arrive."""
        launch = self._look.launch
        until = time.monotonic() + _LATER if len(came) < launch.nodes else 0.0
        said = self._folder.wait(HostFile(look=self._look), launch.nodes - len(came), until)
        return judge_report.together(
            came, strangers, waited, more=[*self._outside(said, came), *self._unlike(said, came)]
        )

    def report_result(self, meeting: Meeting, report: Report | None, until: float) -> Report | None:
        """Write this host's result; a rejected host judges from all files in the folder."""
        own, nodes = HostFile(look=self._look, meeting=meeting), self._look.launch.nodes
        complete = report is not None and all(row.came for row in report.hosts) and len(report.hosts) >= nodes
        said = self._folder.wait(own, nodes, 0.0 if complete else until + _LATER)
        if not complete:
            time.sleep(2 * PAUSE)  # until the others have read this host's file
        if report is not None or len(said) < 2:
            return report
        said.sort(key=lambda s: (s.look.launch.node is None, s.look.launch.node or 0))
        came = [Arrival(look=s.look, node=s.look.launch.node, address=s.look.gloo.address) for s in said]
        return judge_report.together(came, (), 0.0, more=self._outside(said, ()))

    def close(self) -> None:
        """Remove this host's file."""
        self._folder.close()

    def _outside(self, said: Sequence[HostFile], came: Sequence[Arrival]) -> list[HostFinding]:
        known = {(c.look.host, c.node) for c in came}
        silent = [s for s in said if s.meeting.result not in _WELL and (s.look.host, s.look.launch.node) not in known]
        found: dict[tuple[str, str], list[HostFinding]] = {}
        for s in silent:
            for f in attendance.outside(s.look, s.meeting):
                found.setdefault((f.id, s.look.launch.endpoint), []).append(f)
        return [*_ports(said), *(_merge_findings(rows) for rows in found.values())]

    def _unlike(self, said: Sequence[HostFile], came: Sequence[Arrival]) -> list[HostFinding]:
        """Report arrived hosts whose file is missing from the folder on this host."""
        wrote = {(s.look.host, s.look.launch.node) for s in said}
        absent = [c.look.host for c in came if (c.look.host, c.node) not in wrote]
        if self._why or not absent:
            return []
        return [
            finding(
                "DR510",
                f"what {fold_names(absent)} wrote to {self._place} is not there on {self._look.host}",
                hosts=absent,
                measured="their file is not seen",
                expected="one folder on all hosts",
            )
        ]


def _merge_findings(rows: list[HostFinding]) -> HostFinding:
    """Merge equal findings of several hosts."""
    hosts = [h for f in rows for h in f.hosts]
    text = rows[0].text.replace(f"(seen on {rows[0].hosts[0]})", f"(seen on {fold_names(hosts)})")
    return replace(rows[0], hosts=tuple(hosts), text=text)


def _ports(said: Sequence[HostFile]) -> list[HostFinding]:
    """Report hosts started with a different port from most: they cannot meet, so only the folder shows it."""
    ports = Counter(s.look.launch.port for s in said)
    if len(ports) < 2:
        return []
    most, _ = ports.most_common(1)[0]
    others = [s for s in said if s.look.launch.port != most]
    shown = "; ".join(f"{s.look.host}: {s.look.launch.port}" for s in others[:4])
    return [
        finding(
            "DR208",
            f"the port is {shown}; {most} on the others",
            hosts=[s.look.host for s in others],
            measured=shown,
            expected=str(most),
        )
    ]
