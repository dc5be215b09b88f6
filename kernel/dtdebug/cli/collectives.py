"""Implements the sub-commands that follow a run's collectives: `run --record`, diff, replay, rehearse."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dtdebug.cli import memory
from dtdebug.errors import FOUND, NOTHING, UsageError
from dtdebug.privacy.sanitize import arguments, clean, one_line
from dtdebug_taxonomy.model.sizes import spell_bytes

if TYPE_CHECKING:
    from dtdebug.experiments.collectives.diff import Comparison

V = 1
"""Version of these commands' JSON."""
_SIZE = re.compile(r"(\d{1,6})([KMG]?)\Z")


def add_options(run: argparse.ArgumentParser) -> None:
    """Add the options of `dtdebug run`."""
    run.add_argument(
        "--record", type=Path, metavar="DIR", help="record the collectives of every rank there, for diff and replay"
    )
    run.add_argument(
        "--data",
        default="64M",
        metavar="SIZE",
        help="with --record: keep at most so much a rank of what collectives give, which replay needs (default 64M; "
        "0 keeps none)",
    )


def recording(options: argparse.Namespace, command: Sequence[str]) -> tuple[dict[str, str], Callable[[], None]]:
    """Return the variables with which ranks record, and a function that prints the cost at the end.

    Raises:
        UsageError: the folder already has a recording, or can't be written.

    """
    from dtdebug.experiments.collectives import settings

    folder: Path = options.record
    size = _SIZE.match(options.data.upper())
    if size is None:
        raise UsageError(f"run --data {options.data}: a size such as 0, 512M or 4G")
    limit = int(size[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[size[2]]
    several = options.folder is not None  # other hosts may already write there
    if not several and folder.is_dir() and any(folder.glob("rank-*")):
        raise UsageError(f"run --record {folder}: already holds a recording; name a new folder")
    told = {"data": limit, "command": [clean(word) for word in arguments(command)]}
    try:
        variables = settings.job_variables(folder, ["record"], told)
    except OSError as error:
        raise UsageError(f"run --record {folder}: {error.strerror}") from None
    if limit:
        print(f"dtdebug: keeps at most {options.data} a rank in {folder} for replay (--data)", file=sys.stderr)
    return variables, lambda: print(cost(folder), file=sys.stderr)


def cost(folder: Path) -> str:
    """Return the line about the cost of recording."""
    from dtdebug.experiments.collectives import recording_format

    paths = sorted(folder.glob("rank-*.cost.json"))[:4096]
    ends = {path.name.removesuffix(".cost.json"): recording_format.read_end(path) for path in paths}
    told = [end for end in ends.values() if end is not None]
    files = sum(path.stat().st_size for path in folder.glob("rank-*"))
    if not told:
        ranks = len(list(folder.glob("rank-*.head.jsonl")))
        if not ranks:
            return f"dtdebug: nothing was recorded in {folder}: no rank began a collective"
        return (
            f"dtdebug: recorded {ranks} ranks in {folder} ({spell_bytes(files)}); none ended by itself to say its cost"
        )
    text = (
        f"dtdebug: recorded {sum(t.collectives for t in told)} collectives of {len(told)} ranks "
        f"({spell_bytes(sum(t.bytes for t in told))} given to them) in {folder}, {spell_bytes(files)}; "
        f"it took at most {max(t.seconds for t in told):.2f} s of a rank"
    )
    full = [t for t in told if t.full]
    if full:
        text += f"; data for replay is kept up to collective {min(t.data_to for t in full)}"
    stopped = [(rank, end) for rank, end in ends.items() if end is not None and end.stopped]
    if stopped:
        rank, end = min(stopped, key=lambda row: row[1].collectives)
        text += f"; {rank} only up to collective {end.collectives}: {one_line(end.stopped, 200)}"
    return text


def add(commands: Any) -> None:
    """Add the sub-commands to the parser of the command line."""
    diff = commands.add_parser(
        "diff",
        help="find where two recorded runs diverge: collective, tensor, rank, line; or compare their curves",
        description="Compares two folders of `dtdebug run --record`, or two ranks of one; or the step time and loss in "
        "logs, event files and metrics of two runs.",
        epilog="Examples: `dtdebug compare good bad`, `dtdebug compare main.log branch.log --max-step-time 1.05`. The "
        "exit status is 0 if they agree, 1 if they diverge or a limit is exceeded, 2 if they can't be read.",
    )
    diff.add_argument("left", type=Path, metavar="RUN", help="a recording, or logs or metrics of a run")
    diff.add_argument("right", type=Path, metavar="RUN", nargs="?", help="the other one")
    diff.add_argument("--ranks", type=int, nargs=2, metavar=("R", "S"), help="compare these two ranks of one recording")
    diff.add_argument("--format", choices=("text", "json"), default="text")
    diff.add_argument(
        "--max-step-time",
        type=_ratio,
        metavar="X",
        help="fail if a step of the second run takes more than X times as long",
    )
    diff.add_argument(
        "--max-loss",
        type=_ratio,
        metavar="X",
        help="fail if the last loss of the second run is more than X times as high",
    )
    diff.set_defaults(run=_diff)

    replay = commands.add_parser(
        "replay",
        help="run one recorded rank alone, with the recorded results of its collectives",
        description="Runs one rank's program again in one process. Its collectives return what was recorded, and its "
        "inputs to them are compared bit by bit.",
        epilog="Example: `dtdebug replay bad --rank 3 --pdb`. The exit status is 0 if all inputs are identical, 1 if "
        "one differs, 2 if it can't be replayed.",
    )
    replay.add_argument("folder", type=Path, metavar="DIR", help="a recording")
    replay.add_argument("--rank", type=int, required=True, metavar="R", help="the rank to run")
    replay.add_argument("--from", type=int, dest="begin", metavar="STEP", help="compare from this collective on")
    replay.add_argument("--pdb", action="store_true", help="stop in pdb at --from, or at the first difference")
    replay.add_argument(
        "--timeout",
        type=_seconds,
        default=3600.0,
        metavar="SECONDS",
        help="stop the program after this time (default 3600)",
    )
    replay.add_argument("--format", choices=("text", "json"), default="text")
    replay.add_argument(
        "--command", default="", metavar="'train.py ...'", help="the program, if the recording does not name it"
    )
    replay.set_defaults(run=_replay)

    rehearse = commands.add_parser(
        "rehearse",
        help="run the communication of a large job on this machine: do all ranks call the same collectives?",
        usage="dtdebug rehearse --world N [options] -- COMMAND ...",
        description="Runs chosen ranks of the program, each alone, with groups that send nothing, and compares what "
        "they call. Tensor values are not real: branches that depend on them are reported as not known.",
        epilog="Example: `dtdebug rehearse --world 1024 -- train.py`. The exit status is 0 if nothing was found, "
        "1 if something was, 2 if nothing could be rehearsed.",
    )
    rehearse.add_argument("--world", type=int, required=True, metavar="N", help="number of ranks of the job")
    rehearse.add_argument("--ranks", metavar="R,S,...", help="ranks to rehearse (default: chosen)")
    rehearse.add_argument("--per-host", type=int, default=8, metavar="N", help="ranks per host (default 8)")
    rehearse.add_argument(
        "--timeout", type=_seconds, default=300.0, metavar="SECONDS", help="time limit per rank (default 300)"
    )
    rehearse.add_argument(
        "--save", type=Path, metavar="FILE", help="write the calls of each role there, for review and `run --contract`"
    )
    rehearse.add_argument(
        "--against", type=Path, metavar="FILE", help="say in words what each role calls otherwise than in this file"
    )
    rehearse.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="OPTION",
        help="with --save: rehearse with twice the value of this option of the program, too, such as layers in "
        "`-- train.py --layers 4`, so that sizes and rounds become formulas of it",
    )
    memory.add_options(rehearse)
    rehearse.add_argument("--format", choices=("text", "json"), default="text")
    rehearse.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...")
    rehearse.set_defaults(run=_rehearse)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 1e7:
        raise argparse.ArgumentTypeError(f"{text}: seconds, as in 60")
    return seconds


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = 0.0
    if not 0 < ratio < 1e6:
        raise argparse.ArgumentTypeError(f"{text}: a ratio to the first run, as in 1.05")
    return ratio


def _print(value: dict[str, Any]) -> None:
    print(msgspec.json.encode({"v": V, **value}).decode())


def _diff(options: argparse.Namespace) -> int:
    from dtdebug.experiments.collectives import diff as recording_diff

    limits = options.max_step_time, options.max_loss
    recordings = [path for path in (options.left, options.right) if path is not None and _is_recording(path)]
    if limits != (None, None) or (not recordings and not options.ranks and options.right is not None):
        if recordings:
            raise UsageError(
                f"diff: {one_line(str(recordings[0]), 200)} is a recording, which holds no step time or loss"
            )
        return _compare_curves(options)
    if options.ranks:
        found = recording_diff.two_ranks(options.left, *options.ranks)
    elif options.right is None:
        raise UsageError("diff: name two recordings, or two ranks of one with --ranks R S")
    else:
        found = recording_diff.runs(options.left, options.right)
    first = found.first
    if options.format == "json":
        _print({
            "same": first is None, "first": first, "compared": found.compared,
            "others": found.others[:64], "notes": found.notes, "whole": found.whole,
        })  # fmt: skip
    else:
        _show_difference(found)
    return NOTHING if first is None else FOUND


def _is_recording(path: Path) -> bool:
    return not path.exists() or (path.is_dir() and any(path.glob("rank-*")))


def _compare_curves(options: argparse.Namespace) -> int:
    from dtdebug.recorded.curves import compare as curve_comparison
    from dtdebug.recorded.log_files.excerpt import LogError

    if options.right is None:
        raise UsageError("diff: name two runs")
    try:
        rows = curve_comparison.compare(str(options.left), str(options.right), options.max_step_time, options.max_loss)
    except LogError as error:
        raise UsageError(f"{error}; no recording either: `dtdebug run --record DIR -- COMMAND` makes one") from None
    failed = [row for row in rows if row.failed]
    if options.format == "json":
        _print(curve_comparison.as_json(rows))
    else:
        for row in failed or rows:
            print(f"dtdebug: {curve_comparison.sentence(row)}")
    return FOUND if failed else NOTHING


def _show_difference(found: Comparison) -> None:
    first = found.first
    if first is None:
        print(
            f"The same: {found.compared} collectives, {'all of them' if found.whole else 'as far as both were kept'}."
        )
    elif first.since is not None:
        print(f"Rank {first.rank} is the first to differ, between its collectives #{first.since} and #{first.index}:")
        print("  records of these were not kept (the first and the last are); checkpoints show it")
    else:
        where = f"{first.file}:{first.line}" if first.line else "a line that is not known"
        print(f"Rank {first.rank} is the first to differ, at its collective #{first.index}: {first.op} at {where}")
        tensor = f" of tensor {first.tensor}" if first.tensor is not None else ""
        print(f"  {first.what}{tensor}, group of ranks {_group(first.group)}")
        if first.before:
            print(f"  {first.before} | {first.after}")
    for other in found.others[:8]:
        if other.since is not None:
            print(f"  rank {other.rank} between its #{other.since} and #{other.index}")
        else:
            print(f"  then rank {other.rank}, #{other.index}: {other.what} of {other.op}, {other.file}:{other.line}")
    for note in found.notes[:16]:
        print(f"  note: {note}")


def _group(ranks: Sequence[int]) -> str:
    return ", ".join(str(rank) for rank in ranks[:8]) + (f" ... ({len(ranks)})" if len(ranks) > 8 else "")


def _replay(options: argparse.Namespace) -> int:
    from dtdebug.experiments.collectives import replay

    try:
        command = shlex.split(options.command)
    except ValueError as error:
        raise UsageError(f"replay --command {options.command}: {error}") from None
    if options.begin is not None and options.begin < 1:
        raise UsageError(f"replay --from {options.begin}: the number of a collective, from 1")
    found = replay.replay(
        options.folder, options.rank, command, begin=options.begin or 1, pdb=options.pdb, timeout=options.timeout
    )
    if options.format == "json":
        _print(msgspec.to_builtins(found))
    else:
        if found.inputs:
            print(
                f"Rank {found.rank}: {found.identical} of {found.inputs} inputs of its collectives are bit-identical."
            )
        if found.first_difference is not None:
            d = found.first_difference
            print(f"  the first that differs: #{d.index} {d.op} at {d.file}:{d.line}: {d.what}")
        if found.why:
            print(f"  {found.why}")
    if not found.inputs and found.why:
        return 2
    return NOTHING if found.first_difference is None and not found.why else FOUND


def _rehearse(options: argparse.Namespace) -> int:
    from dtdebug.experiments.collectives import rehearse

    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise UsageError("rehearse: name the program, as in `dtdebug rehearse --world 1024 -- train.py`")
    if not (0 if options.memory else 1) < options.world <= 1 << 20:
        raise UsageError(f"rehearse --world {options.world}: 2 to {1 << 20} ranks")
    if options.memory:
        return memory.forecast(options, command, _ranks(options))
    from dtdebug.cli import call_plan

    kept = call_plan.read_kept(options, command)
    found, calls = rehearse.rehearse(
        command, options.world, ranks=_ranks(options), per_host=options.per_host, timeout=options.timeout
    )
    planned = call_plan.plan_of(options, command, found, calls) if options.save or kept else None
    changes = call_plan.compare(kept, planned)
    if options.format == "json":
        _print(msgspec.to_builtins(found) | ({} if changes is None else {"changes": changes}))
    else:
        _show(found)
        call_plan.show_changes(options.against, changes)
    if options.save and planned is not None:
        call_plan.save(options.save, planned)
    if found.deadlock is not None or found.broken or changes:
        return FOUND
    return NOTHING if any(r not in found.failed for r in found.rehearsed) else 2


def _ranks(options: argparse.Namespace) -> list[int]:
    if not options.ranks:
        return []
    words = options.ranks.split(",")
    if not all(w.isascii() and w.isdecimal() and int(w) < options.world for w in words) or len(words) > 256:
        raise UsageError(f"rehearse --ranks {options.ranks}: ranks below {options.world}, as in 0,1,1023")
    return sorted({int(w) for w in words})


def _show(found: Any) -> None:
    print(
        f"Rehearsed ranks {_group(found.rehearsed)} of {found.world}: {found.collectives} collectives, "
        f"{found.seconds:.1f} s, at most {found.memory >> 20} MiB a rank."
    )
    for b in found.broken[:8]:
        print(f"Ranks {_group(b.ranks)} at {b.file}:{b.line}: {b.says}.")
        print(f"  {b.fix}")
    if found.deadlock is not None:
        d = found.deadlock
        print(f"Deadlock at collective #{d.index}, {d.file}:{d.line}: ranks {_group(d.ranks)} part from the others")
        alike: dict[tuple[bool, str], list[int]] = {}
        for rank, op in d.calls.items():
            alike.setdefault((rank in d.ranks, op), []).append(int(rank))
        for (_, op), ranks in alike.items():
            print(f"  ranks {_group(ranks)}: {op}")
    else:
        whole = "These" if not found.failed else "As far as they came, these"
        left = found.world - len(found.rehearsed)
        rest = f" The other {left} were not rehearsed; `--ranks` names others." if left else ""
        print(f"{whole} ranks call the same collectives in the same order.{rest}")
    for place in found.value_dependent[:16]:
        print(f"  not known: {place['file']}:{place['line']} depends on values, which are not real here")
    for rank, why in list(found.failed.items())[:8]:
        print(f"  rank {rank} could not be rehearsed to its end: {why}")
