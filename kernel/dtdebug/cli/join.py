"""Sub-command `join`: joins the reports of several hosts into one answer."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

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
    import msgspec

    from dtdebug.errors import UsageError
    from dtdebug.live.job import report
    from dtdebug.live.job.join_reports import JoinError, join
    from dtdebug_taxonomy.presentation.case_json import contract

    if len(options.reports) > _MOST:
        raise UsageError(f"join: at most {_MOST} reports")
    try:
        found = join(options.reports)
    except JoinError as error:
        raise UsageError(f"join: {error}") from None
    if options.format == "json":
        print(msgspec.json.encode(contract(found)).decode())
    else:
        count = found.coverage.hosts
        print(report.to_text(found, f"reports of {count} host{'s' * (count != 1)}"), end="")
    return 0 if found.verdict.kind == "none" else 1
