"""Reads processes that missed a barrier from messages of JAX's and TensorFlow's coordination service.

A task's number is the process's rank where the job has tasks of one kind. The service counts all that are missing and
names the first of them. Its words (older releases write `Barrier_id` and give no count):
https://github.com/openxla/xla/blob/main/xla/pjrt/distributed/coordination/coordination_service.cc
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from dtdebug_taxonomy.logs.lines import Line
from dtdebug_taxonomy.logs.log import Log
from dtdebug_taxonomy.model.claims import texts
from dtdebug_taxonomy.model.ranks import Verdict, spell
from dtdebug_taxonomy.verdicts.absent_ranks import line_claim

_BARRIER = re.compile(r"Barrier timed out\. (?:Barrier_id|Id): (?P<id>[^\s]{1,200}?)\.(?: |$)")
_COUNT = re.compile(r"# of tasks that reached the barrier: (?P<came>\d{1,7})/(?P<all>\d{1,7})")
_NAMES = "imed out task names:"
_TASK = re.compile(r"/job:(?P<job>\w{1,60})/replica:\d{1,6}/task:(?P<task>\d{1,7})$")
_WITHIN = 4
"""Maximum number of lines from the barrier's to the one above the names."""


def coordination_verdict(log: Log) -> Verdict | None:
    """Return the verdict on the first barrier that timed out for missing processes; None without one or its names."""
    for index, line in enumerate(log.lines):
        found = _BARRIER.search(line.body) if "Barrier timed out" in line.body else None
        if found and (verdict := _verdict(log.lines, index, found["id"])):
            return verdict
    return None


def _verdict(rows: Sequence[Line], at: int, barrier: str) -> Verdict | None:
    head = rows[at : at + _WITHIN + 1]
    named = next((i for i, line in enumerate(head) if line.body.rstrip().endswith(_NAMES)), None)
    if named is None:
        return None
    tasks = [*_tasks(rows[i] for i in range(at + named + 1, len(rows)))]
    if not tasks or len({job for job, _, _ in tasks}) != 1:
        return None
    absent = tuple(sorted({rank for _, rank, _ in tasks}))
    count = next((m for line in head if (m := _COUNT.search(line.body))), None)
    missing = int(count["all"]) - int(count["came"]) if count else len(absent)
    others = f" and {missing - len(absent)} more" if missing > len(absent) else ""
    came = f"; {count['came']} of {count['all']} processes came" if count else ""
    claims = (
        line_claim(head[0], f"Barrier timed out: {barrier}"),
        *(line_claim(line, line.body.strip(), (rank,)) for _, rank, line in tasks[:6]),
    )
    return Verdict(
        kind="not_arrived",
        culprits=absent,
        confidence=0.8,
        summary=f"{spell(absent, 8).capitalize()}{others} did not come to the barrier {barrier} "
        f"before its time was up{came}.",
        claims=claims,
        evidence=texts(claims),
    )


def _tasks(rows: Iterable[Line]) -> Iterator[tuple[str, int, Line]]:
    """Yield (job, task, line) of the names, which are printed on consecutive lines."""
    for line in rows:
        found = _TASK.match(line.body.strip())
        if found is None:
            return
        yield found["job"], int(found["task"]), line
