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


def read_kept(options: argparse.Namespace, command: Sequence[str]) -> Plan | None:
    """Return the plan of `--against`, read before anything is run, whose options are then varied, too."""
    if options.against is None:
        varied_options(options, command)  # what can't be is said before anything is run
        return None
    from dtdebug.experiments.call_plan import plan

    kept = plan.read(options.against)
    options.vary = list(dict.fromkeys([*options.vary, *kept.head.options]))
    varied_options(options, command)
    return kept


def plan_of(options: argparse.Namespace, command: Sequence[str], found: RehearsalResult, calls: Calls) -> Plan:
    """Return the plan of a rehearsal, which a second one of twice the size makes independent of the size.

    Raises:
        UsageError: ranks would wait for each other, or did not come to their end.

    """
    from dtdebug.experiments.call_plan import make, outside, plan
    from dtdebug.experiments.call_plan.formulas import WORLD
    from dtdebug.experiments.call_plan.options import with_value
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

    def again(command: Sequence[str], world: int, axis: tuple[str, int, int]) -> list[make.Varied]:
        try:
            second, more = rehearse.rehearse(command, world, per_host=options.per_host, timeout=options.timeout)
        except UsageError:
            return []  # the program may not run so: sizes stay numbers
        return [] if second.deadlock is not None or second.failed else [make.Varied(*axis, keys(more))]

    words = job_program.of(command)[1:]
    values = varied_options(options, command)
    varied = again(command, 2 * options.world, (WORLD, options.world, 2 * options.world))
    for name, value in values.items():
        varied += again(with_value(command, name, 2 * value), options.world, (name, value, 2 * value))
    head = plan.Head(
        command=tuple(clean(word) for word in arguments(words)), world=options.world, outside=tuple(ranges),
        options=values,
    )  # fmt: skip
    made, unfit = make.make_plan(keys(calls), head, varied)
    for name in values:
        if name in unfit or name not in {each.name for each in varied}:
            print(
                f"dtdebug: no formula of {name}: the calls are built otherwise at {2 * values[name]}", file=sys.stderr
            )
    return made


def varied_options(options: argparse.Namespace, command: Sequence[str]) -> dict[str, int]:
    """Return the options of the program that `--vary` names, with their values.

    Raises:
        UsageError: the command has no such option with a whole number.

    """
    from dtdebug.experiments.call_plan.options import option_name, whole_values

    given = whole_values(command)
    names = [option_name(word) for word in options.vary]
    for name in names:
        if name not in given:
            raise UsageError(f"rehearse --vary {name}: give it in the command, with a whole number: `--{name} 4`")
    return {name: given[name] for name in names}


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


def contract(path: Path, command: Sequence[str]) -> tuple[str, bool, dict[str, int]]:
    """Return the plan's path for the ranks, if its outermost loops may have any number of rounds, and its options.

    Raises:
        UsageError: the file can't be read, or is no plan.

    """
    from dtdebug.experiments.call_plan import plan
    from dtdebug.experiments.call_plan.options import whole_values, without_values
    from dtdebug.experiments.collectives import job_program

    kept = plan.read(path)
    words = job_program.of(command)[1:]
    given = whole_values(words)
    values = {name: given[name] for name in kept.head.options if name in given}
    same = without_values(arguments(words), values) == without_values(kept.head.command, values)
    free = not same or len(values) < len(kept.head.options)
    if free:
        print(
            f"dtdebug: the arguments are not those of {path}: its outermost loops may have any number of rounds",
            file=sys.stderr,
        )
    return str(path.absolute()), free, values
