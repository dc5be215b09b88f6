"""Finds the ranks that Horovod waits for in its coordinator's lists.

The forms are those of its releases: `NAME [ready ranks: 0, 2]`, `NAME [missing ranks: 1]`, and `Missing ranks:` (first
`Stalled ranks:`) above `1: [NAME, ...]`; source: horovod/common/stall_inspector.cc (CheckForStalledTensors).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from dtdebug_taxonomy.logs.lines import Line
from dtdebug_taxonomy.logs.log import Log
from dtdebug_taxonomy.model.claims import texts
from dtdebug_taxonomy.model.ranks import Verdict, say, spell
from dtdebug_taxonomy.verdicts.absent_ranks import line_claim, ranks_listed

_BEHIND = re.compile(r"(?:Stalled ops: ?)?(\S{1,300}) \[(ready|missing) ranks: ?(\d{1,6}(?:, ?\d{1,6}){0,2000})\]")
_HEADING = re.compile(r"(?:Stalled|Missing) ranks: ?$")
_ROW = re.compile(r"(?:(\d{1,6}): )?\[([^\s,\]]{1,300}(?:, [^\s,\]]{1,300}){0,2000})(?: \.\.\.)?\]?$")
_PROCESSES = re.compile(r"\b(?:mpirun|mpiexec|horovodrun)\b[^\n]{0,300}? --?np? ?=?(\d{1,6})\b")
_REPORT = "by subset of ranks"
"""Words that begin each report of the coordinator."""
_MOST = 8


def stall_verdict(log: Log) -> Verdict | None:
    """Return the verdict of the last such list; None without one, or if training continued after it."""
    found = _last_report(log.lines)
    if not found:
        return None
    end = max(at for _, at in found.values())
    if any(bisect_right(steps, end) < len(steps) for steps in log.events.steps.values()):
        return None
    claims = tuple(
        line_claim(log.lines[at], f"{_short(name)}: {say(sorted(ranks), 'have')} not come")
        for name, (ranks, at) in [*found.items()][:_MOST]
    )
    sets = [ranks for ranks, _ in found.values()]
    together = bool(set.intersection(*sets))
    name, (absent, _) = max(found.items(), key=lambda row: len(row[1][0]))
    culprits = tuple(sorted(absent)) if together else ()
    by_ranks = {tuple(sorted(ranks)): name for name, (ranks, _) in found.items()}
    sides = ", ".join(f"{say(ranks, 'have')} not come to {_short(name)}" for ranks, name in [*by_ranks.items()][:4])
    return Verdict(
        kind="not_arrived" if together else "replaced",
        culprits=culprits,
        confidence=0.7 if together else 0.5,
        summary=f"{spell(culprits, _MOST).capitalize()} did not come to {_short(name)}, in which the others wait."
        if together  # else they submit different tensors, or in another order
        else f"The ranks wait in different tensors: {sides}; which of them is wrong is not known.",
        claims=claims,
        evidence=texts(claims),
    )


def _last_report(lines: Sequence[Line]) -> dict[str, tuple[set[int], int]]:
    """Return tensor -> (ranks that have not submitted it, index of the line), from the last report that lists any."""
    found: dict[str, tuple[set[int], int]] = {}
    fresh, heading, whole = False, -2, set[int]()
    for i, line in enumerate(lines):
        rows: list[tuple[str, set[int]]] = []
        if "ranks" in line.body:
            fresh = fresh or _REPORT in line.body
            heading = i if _HEADING.search(line.body) else heading
            for name, how, numbers in _BEHIND.findall(line.body):
                ranks = ranks_listed(numbers)
                whole = whole or _all_ranks(lines)
                rows.append((name, ranks if how == "missing" else whole - ranks))
        elif heading == i - 1 and (row := _ROW.match(line.body)):
            heading = i
            rank = int(row[1]) if row[1] else line.rank  # the number may have been taken for a prefix of the line
            rows = [] if rank is None else [(name, {rank}) for name in row[2].split(", ")]
        for name, ranks in rows:
            if fresh:
                found, fresh = {}, False
            found[name] = (found[name][0] | ranks if name in found else ranks, i)
    return {name: row for name, row in found.items() if row[0]}


def _all_ranks(lines: Sequence[Line]) -> set[int]:
    """Return the ranks that the launcher's command starts, and all that any list names."""
    counts = [int(started[1]) for line in lines if (started := _PROCESSES.search(line.body))]
    named = [rank for line in lines for m in _BEHIND.finditer(line.body) for rank in ranks_listed(m[3])]
    return set(range(max(*counts[-1:], *(rank + 1 for rank in named), 0)))


def _short(name: str) -> str:
    """Return the name without the scopes that TensorFlow puts in front."""
    return name.rsplit("/", 1)[-1]
