"""Ranks that Horovod waits for, as its coordinator lists them.

The forms are those of its releases: `NAME [ready ranks: 0, 2]`, `NAME [missing ranks: 1]`, and `Missing ranks:` (first
`Stalled ranks:`) above `1: [NAME, ...]`; source: horovod/common/stall_inspector.cc (CheckForStalledTensors).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from dtdebug_taxonomy.claims import Claim, texts
from dtdebug_taxonomy.failure.lines import Line
from dtdebug_taxonomy.failure.missing import line_claim
from dtdebug_taxonomy.failure.reading import Reading
from dtdebug_taxonomy.ranks import Verdict, say, spell

_BEHIND = re.compile(r"(?:Stalled ops: ?)?(\S{1,300}) \[(ready|missing) ranks: ?(\d{1,6}(?:, ?\d{1,6}){0,2000})\]")
_HEADING = re.compile(r"(?:Stalled|Missing) ranks: ?$")
_ROW = re.compile(r"(?:(\d{1,6}): )?\[([^\s,\]]{1,300})(?:,[^\n]{0,3000})?\]?$")
_PROCESSES = re.compile(r"\b(?:mpirun|mpiexec|horovodrun)\b[^\n]{0,300}? --?np? ?=?(\d{1,6})\b")
_MOST = 8


def stalled(log: Reading) -> Verdict | None:
    """The verdict of the last such list, or None where there is none or whoever printed it has gone on."""
    found = _missing_by_tensor(log.lines)
    if not found or any(bisect_right(steps, found[-1][2]) < len(steps) for steps in log.events.steps.values()):
        return None
    absent = set.union(*(ranks for _, ranks, _ in found))
    claims = tuple(
        line_claim(log.lines[i], f"{name}: {say(sorted(ranks), 'have')} not come") for name, ranks, i in found
    )
    claims = tuple({claim.words: claim for claim in claims}.values())[:_MOST]
    if any(ranks != absent for _, ranks, _ in found) and not set.intersection(*(ranks for _, ranks, _ in found)):
        return _each_lacks_another(found, claims)
    culprits = tuple(sorted(absent))
    return Verdict(
        kind="not_arrived",
        culprits=culprits,
        confidence=0.7,
        summary=f"{spell(culprits, _MOST).capitalize()} did not come to {found[0][0]}, in which the others wait.",
        claims=claims,
        evidence=texts(claims),
    )


def _each_lacks_another(found: Sequence[tuple[str, set[int], int]], claims: tuple[Claim, ...]) -> Verdict:
    """No rank is missing from all: they submit different tensors, or in another order."""
    by_ranks = {tuple(sorted(ranks)): name for name, ranks, _ in found}
    sides = [f"{say(ranks, 'have')} not come to {name}" for ranks, name in by_ranks.items()][:4]
    return Verdict(
        kind="replaced",
        culprits=(),
        confidence=0.5,
        summary=f"The ranks wait in different tensors: {', '.join(sides)}; which of them is wrong is not known.",
        claims=claims,
        evidence=texts(claims),
    )


def _missing_by_tensor(lines: Sequence[Line]) -> list[tuple[str, set[int], int]]:
    """(tensor, ranks that have not submitted it, index of the line)."""
    rows: list[tuple[str, str, set[int], int]] = []
    size, heading = 0, -2
    for i, line in enumerate(lines):
        if started := _PROCESSES.search(line.body):
            size = int(started[1])
        if "ranks:" in line.body:
            rows += [(m[1], m[2], _numbers(m[3]), i) for m in _BEHIND.finditer(line.body)]
            heading = i if _HEADING.search(line.body) else heading
        elif heading == i - 1 and (row := _ROW.match(line.body)):
            rank = int(row[1]) if row[1] else line.rank  # the number may have been taken for a prefix of the line
            if rank is not None:
                rows.append((row[2], "missing", {rank}, i))
                heading = i
    size = max((size, *(max(ranks) + 1 for _, _, ranks, _ in rows)))
    whole = set(range(size))
    told = [(name.rsplit("/", 1)[-1], ranks if how == "missing" else whole - ranks, i) for name, how, ranks, i in rows]
    return [row for row in told if row[1]]


def _numbers(text: str) -> set[int]:
    return {int(part) for part in text.split(",")}
