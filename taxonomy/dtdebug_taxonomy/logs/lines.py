"""Output as lines: who printed each (rank, local rank, node, host), when, and its text without prefixes.

A local rank is never taken for a rank of the job, unless the output itself shows that there is one node only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from dtdebug_taxonomy.logs import dask, prefixes
from dtdebug_taxonomy.logs.learned_prefixes import learn
from dtdebug_taxonomy.logs.prefixes import ParsedLine
from dtdebug_taxonomy.model.ranks import MOST_RANKS

_MOST = 1 << 18
"""Maximum number of lines to read."""
_LINE = 4_000
"""Maximum number of characters examined of a line, unless it is a JSON record."""
_HEADER = re.compile(r"==> (?P<path>[^\n]{1,500}) <==$")
"""Header that `tail` prints above each of several files."""
UNNAMED = "stream-"
"""Beginning of the name of a printer whose rank the logs of its job do not show: there may be several nodes."""
_LOG_DIR = re.compile(r"attempt_\d{1,4}[/\\](?P<local>\d{1,5})[/\\]std(?:err|out)\.log")
_TABLE = re.compile(r" {0,4}rank {1,10}: (?P<rank>\d{1,7}) \(local_rank: (?P<local>\d{1,5})\)")
_NODES = re.compile(
    r"(?i)\b(?:nnodes|min_nodes|num_nodes|num_machines|group_world_size)['\"]? {0,30}[:=] {0,3}'?(\d{1,6})"
)
_WORLD = re.compile(r"(?i)\bworld[ _]size['\"]? {0,10}[:=]? {0,3}'?(\d{1,6})\b")
_NRANKS = re.compile(r"\bnranks (\d{1,7})\b")
_STARTS_RANKS = (
    "torch/distributed/run.py", "torch.distributed.elastic", "torch/distributed/elastic", "deepspeed/launcher",
    "torch/multiprocessing/spawn.py",
)  # fmt: skip
"""Text printed by launchers of ranks: tasks of another launcher around them are nodes."""
_NUMBERED = re.compile(r"(?P<stem>[A-Za-z][\w.-]{0,100}?)(?P<number>\d{1,6})")
_FEWEST = 2
_OF_TRACEBACK = ("Traceback (most recent call last)", '  File "')
_SPAWNED = re.compile(r"-- Process (\d{1,5}) terminated")
OF_PROCESS = re.compile(r"pid=(?P<pid>\d{1,9})[^()\n]{0,80}\)[^()\n]{0,120}?\b(?:world_)?rank=(?P<rank>\d{1,7})\b")
"""List of the processes of ranks that Ray's trainers print."""


class Line(NamedTuple):
    """One printed line."""

    number: int
    """Line number in the output, from 1."""
    body: str
    """Text without prefixes."""
    rank: int | None = None
    """Global rank."""
    local: int | None = None
    """Rank on its node."""
    node: str = ""
    """Identifier of the node, if nodes are only numbered."""
    host: str = ""
    pid: int = 0
    actor: str = ""
    """Name of the process in Ray and similar frameworks: `TrainController`."""
    time: str = ""
    stream: str = ""
    level: str = ""
    """DEBUG, INFO, WARNING, ERROR or their first letter, if a logger printed the line."""
    task: int | None = None
    """Number of the task that printed it, rank or not."""

    @property
    def who(self) -> tuple[object, ...]:
        """Key of the printing process; lines of one traceback share it."""
        if self.rank is not None:
            return ("rank", self.rank)
        return (self.host or self.node, self.local, self.pid)


def is_launched_by_tasks(text: str) -> bool:
    """Return whether a launcher of ranks speaks: tasks of another launcher around it are not ranks."""
    return any(mark in text for mark in _STARTS_RANKS)


def rank_of(line: str) -> int | None:
    """Return the global rank that a single line's prefixes name; a bare number counts, a local rank does not."""
    found = prefixes.without_prefixes(line)
    return found.task if found.rank is None and found.local is None else found.rank


def split_lines(
    text: str, true_line: Callable[[int], int] = lambda line: line, source: str = "", *, whole: bool = True
) -> list[Line]:
    """Split an output into lines, bounded. `true_line` maps line numbers of an excerpt; `source` is its path.

    Without `whole`, other nodes of the job may print elsewhere: a local rank is then not a rank, even if one node is
    seen.
    """
    learnt = learn(text)
    rows: list[tuple[int, ParsedLine]] = []
    local = _local_of(source)
    every = text.split("\n")
    for number, line in enumerate(every, 1):
        if len(rows) >= _MOST:
            break
        found = prefixes.records(line) if line.startswith("{") else None
        if found is not None:
            rows += ((number, row) for row in found)
            continue
        row = prefixes.without_prefixes(line[:_LINE], learnt)
        inside = prefixes.unwrap_record(line, row) if row.body[:1] == "{" or 'msg="' in row.body else None
        if inside is not None:
            rows += ((number, each) for each in inside)
            continue
        if row.body.startswith("==> ") and (header := _HEADER.match(row.body[:600])):
            local = _local_of(header["path"])
        if local is not None and row.local is None:
            row = row._replace(local=local)
        rows.append((number, row))
    if _lists(rows, text):
        rows = [
            (n, _without_number(every[n - 1][:_LINE], row, learnt) if row.task is not None else row) for n, row in rows
        ]
    if dask.MARK in text:
        rows = list(dask.unfold_reports(rows, every))
    names = _Names(rows, text, whole=whole)
    return [names.line(number, row, true_line(number)) for number, row in rows]


def _lists(rows: Sequence[tuple[int, ParsedLine]], text: str) -> bool:
    """True if numbers precede only a few lines, none of a traceback: they belong to a list, not to tasks."""
    tasks = [row.body for _, row in rows if row.task is not None]
    if not tasks or "srun: " in text or any(body.startswith(_OF_TRACEBACK) for body in tasks):
        return False
    return 3 * len(tasks) < sum(1 for _, row in rows if row.body.strip())


def _without_number(line: str, row: ParsedLine, learnt: re.Pattern[str] | None) -> ParsedLine:
    plain = prefixes.without_prefixes(line, learnt, numbered=False)
    return plain._replace(local=row.local if plain.local is None else plain.local)


def _local_of(path: str) -> int | None:
    found = _LOG_DIR.search(path[:600])
    return int(found["local"]) if found else None


class _Names:
    """Ranks of the numbers in prefixes: found from all lines, since a single line is ambiguous."""

    def __init__(self, rows: Sequence[tuple[int, ParsedLine]], text: str, *, whole: bool) -> None:
        self._pairs: dict[tuple[str, int], set[int]] = {}
        """(node, local rank) -> ranks named by lines with both."""
        self._by_pid = {int(m["pid"]): int(m["rank"]) for m in OF_PROCESS.finditer(text)} if "rank=" in text else {}
        locals_: set[int] = set()
        nodes: set[str] = set()
        self._tasks_are_ranks = not is_launched_by_tasks(text)
        tasks: set[int] = set()
        for _, row in rows:
            if row.task is not None:
                tasks.add(row.task)
            if row.task is not None and (row.local is not None or (row.rank is not None and row.rank != row.task)):
                self._tasks_are_ranks = False
            if row.local is not None:
                locals_.add(row.local)
                nodes.add(_node(row))
                if row.rank is not None:
                    self._pairs.setdefault((_node(row), row.local), set()).add(row.rank)
        if tasks and self._tasks_are_ranks:
            self._tasks_are_ranks = not _are_launchers(tasks, text)
        table = {(int(m["local"]), int(m["rank"])) for m in _TABLE.finditer(text)} if "local_rank: " in text else set()
        self._table = dict(table) if len({local for local, _ in table}) == len(table) else {}
        same = all(local == rank for local, rank in table) and all(
            {local} == ranks for (_, local), ranks in self._pairs.items()
        )
        locals_ |= {int(n) for n in _SPAWNED.findall(text)} if "-- Process" in text else set()
        self._one_node = (
            whole
            and same
            and bool(locals_)
            and len(nodes) <= 1
            and not any(node.startswith(UNNAMED) for node in nodes)
            and not any(int(n) > 1 for n in _NODES.findall(text))
            and not any(int(n) > max(locals_, default=0) + 1 for n in _WORLD.findall(text) if locals_)
        )
        self._nodes = len(nodes)
        self._by_host = _ranks_of_hosts(rows)

    def line(self, number: int, row: ParsedLine, true: int) -> Line:
        """Return the line with what is known from all of them."""
        rank = row.rank
        node = ""
        if rank is None and row.task is not None and self._tasks_are_ranks and row.local is None:
            rank = row.task
        elif row.task is not None and not self._tasks_are_ranks:
            node = str(row.task)
        if rank is None and row.local is not None:
            rank = self.of_local(row.local, _node(row))
        if rank is None and row.pid:
            rank = self._by_pid.get(row.pid)
        if rank is None and row.host and row.local is None:
            rank = self._by_host.get(row.host)
        if rank is not None and not 0 <= rank < MOST_RANKS:
            rank = None
        return Line(
            number=true,
            body=row.body,
            rank=rank,
            local=row.local,
            node=node,
            host=row.host,
            pid=row.pid,
            actor=row.actor,
            time=row.time,
            stream=row.stream,
            level=row.level,
            task=row.task,
        )

    def of_local(self, local: int, node: str = "") -> int | None:
        """Return the rank of a local rank, or None if the output does not show it."""
        known = self._pairs.get((node, local), set())
        if len(known) == 1:
            return min(known)
        if self._one_node:
            return local
        return self._table.get(local) if self._nodes <= 1 else None


def _ranks_of_hosts(rows: Iterable[tuple[int, ParsedLine]]) -> dict[str, int]:
    """Return host -> rank if each host has one rank and is numbered as these are: pods `worker-0` to `worker-3`.

    The lines of at least two hosts must show it; then it holds for those that never name their rank.
    """
    ranks: dict[str, set[int]] = {}
    for _, row in rows:
        if row.host:
            ranks.setdefault(row.host, set()).update(() if row.rank is None else (row.rank,))
            if row.local is not None or row.pid:
                return {}
    numbered = {host: found for host in ranks if (found := _NUMBERED.fullmatch(host))}
    shown = {host: min(known) for host, known in ranks.items() if len(known) == 1}
    if len(shown) < _FEWEST or len({found["stem"] for found in numbered.values()}) != 1 or len(numbered) != len(ranks):
        return {}
    ahead = {rank - int(numbered[host]["number"]) for host, rank in shown.items()}
    if len(ahead) != 1 or any(len(known) > 1 for known in ranks.values()):
        return {}
    return {host: int(found["number"]) + min(ahead) for host, found in numbered.items()}


def _are_launchers(tasks: set[int], text: str) -> bool:
    """True if all tasks are seen, and the job has several ranks for each."""
    count = len(tasks)
    if count < 2 or max(tasks) != count - 1:
        return False
    world = max((int(n) for n in (*_WORLD.findall(text), *_NRANKS.findall(text))), default=0)
    return world > count and world % count == 0


def _node(row: ParsedLine) -> str:
    return row.host or ("" if row.task is None else str(row.task))
