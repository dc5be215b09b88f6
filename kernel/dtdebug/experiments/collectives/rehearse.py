"""Implements `dtdebug rehearse`: finds the collectives of chosen ranks of a job, without the job."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from dtdebug.errors import UsageError
from dtdebug.experiments.collectives import job_program, rehearsal_match, settings, source_branches
from dtdebug.experiments.collectives.inside.fake_groups import launcher_variables
from dtdebug.experiments.collectives.recording_format import Key
from dtdebug.live.agent.arm import BOOTSTRAP
from dtdebug.privacy.sanitize import clean, one_line
from dtdebug.storage import state_dir

_MOST, _ALL = 16, 4
"""Maximum number of chosen ranks, and world size up to which all are rehearsed."""
_LIMIT = 64 << 20


class BrokenContract(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a real group would refuse, with the ranks on which it is so."""

    file: str
    line: int
    says: str
    fix: str
    ranks: tuple[int, ...]


class RehearsalResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a rehearsal."""

    world: int
    rehearsed: tuple[int, ...]
    deadlock: rehearsal_match.Deadlock | None
    value_dependent: tuple[dict[str, Any], ...]
    """File and line of each branch that depends on a value."""
    broken: tuple[BrokenContract, ...] = ()
    """Calls that break a contract, in the order of ranks."""
    failed: dict[int, str] = {}
    """Rank -> reason why its program did not finish."""
    collectives: int = 0
    seconds: float = 0.0
    memory: int = 0
    """Maximum bytes of memory that a rank used."""


Calls = dict[int, list[rehearsal_match.RankCall]]


def rehearse(
    command: Sequence[str], world: int, *, ranks: Sequence[int] = (), per_host: int = 8, timeout: float = 300.0
) -> tuple[RehearsalResult, Calls]:
    """Run the chosen ranks, several at a time; return the comparison of their calls, and the calls.

    Raises:
        UsageError: the program is missing, or no rank could be rehearsed.

    """
    words = job_program.of(command)
    script = job_program.script(words)
    if script is not None and not script.is_file():
        raise UsageError(f"rehearse: {script}: no such file")
    chosen = tuple(ranks) or choose(script, world, per_host)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dtdebug-rehearse-") as place:
        folder = Path(place)
        variables = settings.job_variables(folder, ["rehearse"], {})
        ends = run_ranks(words, chosen, folder, variables, world=world, per_host=max(1, per_host), timeout=timeout)
        calls = {rank: _calls(folder / f"calls-{rank}.jsonl") for rank in chosen}
        told = {rank: _read_json(folder / f"end-{rank}.json") for rank in chosen}
        failed = {rank: why for rank, why in ends.items() if why}
        if len(failed) == len(chosen):
            raise UsageError(f"rehearse: rank {chosen[0]}: {failed[chosen[0]]}")
    if not any(calls.values()):
        raise UsageError("rehearse: the program began no collective; does it call init_process_group?")
    taken = sorted({(str(file), int(line)) for t in told.values() for file, line in t.get("taken", ())})
    result = RehearsalResult(
        world=world,
        rehearsed=chosen,
        deadlock=rehearsal_match.deadlock(calls, frozenset(chosen) - failed.keys()),
        value_dependent=tuple(
            {"file": clean(file), "line": line} for file, line in source_branches.deciding(taken)[:256]
        ),
        broken=_broken_contracts(told),
        failed=failed,
        collectives=sum(len(c) for c in calls.values()),
        seconds=round(time.monotonic() - begun, 2),
        memory=max((int(t.get("memory", 0)) for t in told.values()), default=0),
    )
    return result, calls


def choose(script: Path | None, world: int, per_host: int) -> tuple[int, ...]:
    """Return ranks that programs may treat specially: first, last, bounds of hosts and halves, those in the source."""
    if world <= _ALL:
        return tuple(range(world))
    module = source_branches.parsed_file(script) if script is not None else None
    named = sorted(n for n in (source_branches.rank_numbers(module) if module else ()) if 0 <= n < world)
    wanted = [0, 1, world - 1, *named, world // 2, world // 2 - 1, per_host, per_host - 1]
    wanted += [world - per_host, world - 2, 2]
    wanted += [near for n in named for near in (n + 1, n - 1, world - n)]
    kept = list(dict.fromkeys(rank for rank in wanted if 0 <= rank < world))[:_MOST]
    return tuple(sorted(kept))


def run_ranks(
    words: Sequence[str],
    ranks: Sequence[int],
    folder: Path,
    variables: Mapping[str, str],
    *,
    world: int,
    per_host: int,
    timeout: float,
) -> dict[int, str]:
    """Run each rank alone with these variables; return rank -> reason why its program did not finish, or "".

    Raises:
        UsageError: the ranks can't be started.

    """
    plan = {
        "command": words, "folder": str(folder), "timeout": timeout,
        "at_once": max(1, min(4, os.cpu_count() or 1)), "environment": variables,
        "ranks": [(rank, launcher_variables(rank, world, per_host)) for rank in ranks],
    }  # fmt: skip
    (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
    path = os.pathsep.join([BOOTSTRAP, *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": path}
    command = [words[0], "-m", "dtdebug.experiments.collectives.inside.fork_server", str(folder / "plan.json")]
    with (folder / "said.txt").open("wb") as out:
        try:
            process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        except OSError as error:
            raise UsageError(f"rehearse: {words[0]}: can't be started: {error.strerror}") from None
        try:
            process.wait()
        finally:
            if process.poll() is None:
                process.terminate()  # it ends its ranks
                process.wait()
    ends = _read_json(folder / "ends.json")
    if not ends:
        raise UsageError(f"rehearse: {words[0]}: {_last(folder / 'said.txt') or f'ended with {process.returncode}'}")
    return {rank: _why(ends.get(str(rank)), folder / f"said-{rank}.txt", timeout) for rank in ranks}


def _broken_contracts(told: Mapping[int, dict[str, Any]]) -> tuple[BrokenContract, ...]:
    """Return the broken contracts that ranks have written, those of one line with all their ranks."""
    rows: dict[tuple[str, int], tuple[list[int], str, str]] = {}
    for rank, end in sorted(told.items()):
        for file, line, says, fix in end.get("broken", ())[:256]:
            place = str(file), int(line)
            rows.setdefault(place, ([], str(says), str(fix)))[0].append(rank)
    return tuple(
        BrokenContract(
            file=clean(file), line=line, says=one_line(says, 600), fix=one_line(fix, 600), ranks=tuple(ranks)
        )
        for (file, line), (ranks, says, fix) in rows.items()
    )


def _why(status: int | None, said: Path, timeout: float) -> str:
    if status is None:
        return f"did not end within {timeout:g} s (--timeout)"
    return (_last(said) or f"ended with {status}") if status else ""


def _last(said: Path) -> str:
    with suppress(OSError):
        lines = said.read_bytes()[-4096:].decode(errors="replace").strip().splitlines()
        return one_line(lines[-1], 300) if lines else ""
    return ""


def _calls(path: Path) -> list[rehearsal_match.RankCall]:
    decoder = msgspec.json.Decoder(list[Any])
    found = []
    with suppress(OSError, ValueError, TypeError):
        for line in state_dir.read_start(path, _LIMIT).split(b"\n")[:-1]:
            number, op, group, ordinal, shapes, dtypes, peer, tag, waits, file, at = decoder.decode(line)
            key = Key(
                k=0, op=clean(op), group=tuple(group), ordinal=ordinal, shapes=tuple(map(tuple, shapes)),
                dtypes=tuple(dtypes), file=clean(file), line=at, peer=peer, tag=tag, waits=waits,
            )  # fmt: skip
            found.append(rehearsal_match.RankCall(number, key))
    return found


def _read_json(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        found: dict[str, Any] = msgspec.json.decode(state_dir.read_start(path, 1 << 22), type=dict[str, Any])
        return found
    return {}
