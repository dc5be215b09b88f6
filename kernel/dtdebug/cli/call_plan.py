"""Implements `rehearse --save`, `rehearse --against` and `run --contract`: the calls of a job as a reviewed file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dtdebug.errors import UsageError
from dtdebug.privacy.sanitize import arguments, clean, one_line

if TYPE_CHECKING:
    from dtdebug.experiments.call_plan.plan import Plan
    from dtdebug.experiments.collectives.rehearse import Calls, RehearsalResult


def read_kept(options: argparse.Namespace) -> Plan | None:
    """Return the plan of `--against`, read before anything is run."""
    if options.against is None:
        return None
    from dtdebug.experiments.call_plan import plan

    return plan.read(options.against)


def plan_of(options: argparse.Namespace, command: Sequence[str], found: RehearsalResult, calls: Calls) -> Plan:
    """Return the plan of a rehearsal, which a second one of twice the size makes independent of the size.

    Raises:
        UsageError: ranks would wait for each other, or did not come to their end.

    """
    from dtdebug.experiments.call_plan import make, outside, plan
    from dtdebug.experiments.collectives import job_program, rehearse

    if found.deadlock is not None or found.failed:
        why = "ranks part, as said above" if found.deadlock is not None else f"rank {min(found.failed)} did not end"
        raise UsageError(f"rehearse: no plan is made of a job whose {why}")
    ranges = sorted(
        {
            f"{make.file_name(place['file'])}:{first}-{last}"
            for place in found.value_dependent
            for first, last in outside.branches(place["file"], place["line"])
        }
    )
    left = outside.Outside(ranges)

    def keys(found: Calls) -> make.Calls:
        return {
            rank: [c.key for c in theirs if not left.holds(c.key.file, c.key.line)] for rank, theirs in found.items()
        }

    larger = None
    try:
        second, more = rehearse.rehearse(command, 2 * options.world, per_host=options.per_host, timeout=options.timeout)
        if second.deadlock is None and not second.failed:
            larger = keys(more), 2 * options.world
    except UsageError:
        pass  # the program may not run at this size: sizes stay numbers
    words = tuple(clean(word) for word in arguments(job_program.of(command)[1:]))
    head = plan.Head(command=words, world=options.world, outside=tuple(ranges))
    return make.make_plan(keys(calls), head, larger)


def compare(kept: Plan | None, planned: Plan | None) -> list[str] | None:
    """Return what is called otherwise than in the kept plan; None if there is none."""
    if kept is None or planned is None:
        return None
    from dtdebug.experiments.call_plan.changes import changes

    return changes(kept, planned)


def show_changes(path: Path | None, changes: list[str] | None) -> None:
    """Print what is called otherwise."""
    if changes is None:
        return
    print(f"Calls otherwise than in {path}:" if changes else f"The calls are those in {path}.")
    for change in changes:
        print(f"  {one_line(change, 400)}")


def save(path: Path, planned: Plan) -> None:
    """Write a plan.

    Raises:
        UsageError: the file can't be written.

    """
    from dtdebug.experiments.call_plan import plan

    try:
        path.write_text(plan.write(planned), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"rehearse --save {path}: {error.strerror}") from None
    print(f"dtdebug: wrote {path}: {len(planned.role)} role{'s' * (len(planned.role) > 1)}", file=sys.stderr)


def add_options(run: argparse.ArgumentParser) -> None:
    """Add the option of `dtdebug run`."""
    run.add_argument(
        "--contract",
        type=Path,
        metavar="FILE",
        help="compare each rank's collectives, as they begin, with the calls that `rehearse --save` wrote there",
    )


def contract(path: Path, command: Sequence[str]) -> tuple[str, bool]:
    """Return the plan's path for the ranks, and whether its outermost loops may have any number of rounds.

    Raises:
        UsageError: the file can't be read, or is no plan.

    """
    from dtdebug.experiments.call_plan import plan
    from dtdebug.experiments.collectives import job_program

    kept = plan.read(path)
    free = tuple(arguments(job_program.of(command)[1:])) != kept.head.command
    if free:
        print(
            f"dtdebug: the arguments are not those of {path}: its outermost loops may have any number of rounds",
            file=sys.stderr,
        )
    return str(path.absolute()), free
