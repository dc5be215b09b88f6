"""Sub-command `join`: joins the reports of several hosts into one answer."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dtdebug.recorded.things import Thing

_MOST = 4096


def add(commands: Any) -> None:
    """Add the sub-command to the command-line parser."""
    join = commands.add_parser(
        "join",
        help="join the reports of several hosts into one answer",
        description="Joins what was collected on each host of a job without a shared folder.",
        epilog="Example: `dtdebug join host-0.tar.gz host-1.tar.gz`. Exit status: 0 nobody is waited for, 1 a rank is "
        "to blame or it is not understood, 2 usage error or unreadable input.",
    )
    join.add_argument(
        "reports",
        nargs="+",
        type=Path,
        metavar="REPORT",
        help="of each host: a run's folder, its archive, or a report in JSON (--output FILE --format json)",
    )
    join.add_argument("--format", choices=("text", "json"), default="text")
    join.set_defaults(run=_join)


def _join(options: argparse.Namespace) -> int:
    from dtdebug.cli import door
    from dtdebug.cli.readings import Asked
    from dtdebug.errors import UsageError

    try:
        return door.answer_things(_reports(options.reports), Asked.of(options))
    except UsageError as error:
        raise UsageError(f"join: {str(error).removeprefix('join: ')}") from None


def _reports(paths: Sequence[Path]) -> list[Thing]:
    """Return the reports that the paths name; raises UsageError if one is something else."""
    from dtdebug.errors import UsageError
    from dtdebug.recorded.things import recognise

    if len(paths) > _MOST:
        raise UsageError(f"at most {_MOST} reports")
    things = recognise([str(path) for path in paths])
    if other := next((t for t in things if t.kind not in ("run", "archive", "answer")), None):
        raise UsageError(f"{other.name}: is not a report of a host but {other.words}")
    return things
