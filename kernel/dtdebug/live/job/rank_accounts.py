"""The accounts that ended ranks have left, and of the places of those that left none.

A run and a failed cell read them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

import msgspec

from dtdebug.storage import state_dir as files
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.inference.parting import find_parting
from dtdebug_taxonomy.inference.ranks_apart import SIZES
from dtdebug_taxonomy.model.account import Account, Parting
from dtdebug_taxonomy.model.ranks import RankState, Verdict
from dtdebug_taxonomy.stacks.frames import before_agent

_STACK_LIMIT = 1 << 20
_ACCOUNTS = 64
"""Maximum number of accounts kept, those of culprits first: ranks that fail alike have equal ones."""


def accounts_of(states: Iterable[RankState], verdict: Verdict | None) -> tuple[Account, ...]:
    """Return the accounts that the ranks recorded, those of culprits first."""
    culprits = verdict.culprits if verdict is not None else ()
    rows = [(s.rank not in culprits, each) for s in states for each in s.accounts]
    return tuple(each for _, each in sorted(rows, key=lambda row: row[0])[:_ACCOUNTS])


def parting_of(states: Sequence[RankState], verdict: Verdict) -> Parting | None:
    """Return the test or loop at which ranks parted, or the `except` by which one has gone around a call."""
    return find_parting(states, verdict) or _find_swallowing(states, verdict)


def _find_swallowing(states: Sequence[RankState], verdict: Verdict) -> Parting | None:
    """Return the `except` by which a rank can have gone around a call; a defect in that loses only it."""
    from dtdebug.account.printed import swallowed

    with suppress(Exception):
        return swallowed(states, verdict)
    return None


def standing_accounts(
    verdict: Verdict,
    states: Iterable[RankState],
    told: Sequence[Account],
    read: Callable[[str], Sequence[str]] | None = None,
) -> Iterator[Account]:
    """Yield accounts of the places of ranks that sent or took another size: an abort leaves no exception of Python.

    `read` returns the lines of a file, which those of a cell have in their kernel only.
    """
    from dtdebug.account.printed import standing

    at = {site.rank for site in verdict.sites} - {each.rank for each in told}
    for state in sorted(states, key=lambda s: s.rank or 0) if verdict.kind in SIZES else ():
        if state.rank in at and (found := standing(state, read)).place is not None:
            yield found


def add_crash_stacks(folder: RunFolder | None, states: Iterable[RankState]) -> list[RankState]:
    """Add the stack that C code wrote when a signal ended a rank."""
    from dtdebug.live.probe.channels import parse_traceback

    result = []
    for state in states:
        file = folder.announced_stack(state) if folder is not None else None
        if file is not None and state.alive is False and not state.exception:
            with suppress(OSError, ValueError):  # later than any observation
                written = parse_traceback(files.read_start(file, _STACK_LIMIT).decode(errors="replace"))
                stack = before_agent(written) or state.stack
                state = msgspec.structs.replace(state, stack=stack)  # noqa: PLW2901 - the same rank, completed
        result.append(state)
    return result
