"""Makes states of ranks from the processes of texts: which is which rank, and at which look it was seen so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from dtdebug.recorded.stack_texts import json_dumps, names
from dtdebug.recorded.stack_texts.formats import is_stack_line, parse_lines
from dtdebug.recorded.stack_texts.line_prefixes import Origin, by_prefix
from dtdebug.recorded.stack_texts.native_waits import by_native
from dtdebug.recorded.stack_texts.other_programs import other_program
from dtdebug.recorded.stack_texts.processes import TextProcess, TextThread
from dtdebug.storage import safe_open
from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.model.claims import Record
from dtdebug_taxonomy.model.ranks import MOST_RANKS, Frame, Operation, RankState
from dtdebug_taxonomy.model.sizes import spell_bytes
from dtdebug_taxonomy.model.waiting import Waiting
from dtdebug_taxonomy.stacks.frames import is_library
from dtdebug_taxonomy.stacks.wait_operations import by_stack, operation

_LIMIT = 16 << 20
"""Maximum characters read of a file: one of a thousand ranks has 10 MB."""
_PROCESSES = 1 << 14
"""Maximum number of processes that are looked at, in all files."""
_AMONG = ("collective", "store", "rendezvous")
_PREFERRED = {"py-spy --json": 6, "py-spy": 5, "pystack": 4, "faulthandler": 3, "gdb": 2}
_LAUNCHES = ("torch/distributed/elastic/agent/", "torch/distributed/launch", "torch/distributed/run.py",
             "accelerate/commands/launch", "deepspeed/launcher/")  # fmt: skip
_SERVES = ("torch/_inductor/compile_worker/", "multiprocessing/resource_tracker.py")


class Stacks(NamedTuple):
    """Stacks of the ranks of a job that were saved in files."""

    rounds: tuple[tuple[RankState, ...], ...] = ()
    """States of the ranks at each look, the last one last."""
    left_out: tuple[str, ...] = ()
    """Parts that were not used, in words: processes that are no ranks (launchers, loaders), ends of large files."""
    numbered: str = ""
    """Source of the ranks' numbers; empty if they are named in the files."""
    tools: tuple[str, ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    """Files with stacks of other programs, and what those are."""
    is_cut: bool = False
    """True if there is more than was read: then other ranks may explain what these wait for."""

    @property
    def states(self) -> tuple[RankState, ...]:
        """The states at the last look, with ranks that only earlier ones have."""
        found: dict[int | None, RankState] = {}
        for states in self.rounds:
            found |= {s.rank: s for s in states}
        return tuple(found[rank] for rank in sorted(found, key=lambda r: r or 0))


class _Seen(NamedTuple):
    process: TextProcess
    round: str
    stack: tuple[Frame, ...]


def read_stacks(files: Sequence[Path]) -> Stacks:
    """Return the stacks of the ranks in the files.

    Raises:
        OSError: a file can't be read.

    """
    others: list[tuple[str, str]] = []
    read: list[tuple[names.Named, list[TextProcess]]] = []
    cut: list[str] = []
    for file, name in zip(files, names.named(files), strict=True):
        text = safe_open.read_text(file, _LIMIT)
        if len(text) == _LIMIT:
            cut.append(f"{file.name} beyond its first {spell_bytes(_LIMIT)}")
        processes = list(_processes(text))
        if not any(t.frames for p in processes for t in p.threads) and (what := other_program(text)):
            others.append((str(file), what))
            continue
        for process in processes:
            process.file = str(file)
            if process.pid is None and process.tool in ("gdb", "pystack", "eu-stack"):
                process.pid = process.main().lwp
        read.append((name, processes))
    found = [
        _Seen(_complete(process, name, alone=_is_one(processes)), name.round, _python_stack(process.main()))
        for name, processes in _with_labels(read)
        for process in processes
    ]
    if len(found) > _PROCESSES:
        cut.append(f"{len(found) - _PROCESSES:,} of {len(found):,} processes")
        del found[_PROCESSES:]
    ranks, left_out = _only_ranks(found)
    rounds = _in_rounds(ranks)
    numbers, numbered = _ranks([row[-1].process for row in rounds])
    world = max((*numbers, len(rounds) - 1), default=-1) + 1
    looks = max(map(len, rounds), default=0)
    states = [
        tuple(
            _state(row[look], rank, world)
            for rank, row in sorted(zip(numbers, rounds, strict=True), key=lambda pair: pair[0])
            if look < len(row)
        )
        for look in range(looks)
    ]
    tools = tuple(dict.fromkeys(seen.process.tool for seen in found if seen.process.tool))
    return Stacks(tuple(states), (*left_out, *cut), numbered, tools, tuple(others), bool(cut))


def _processes(text: str) -> Iterator[TextProcess]:
    """Yield the processes of a text, with what the prefixes of its lines say."""
    if (documents := json_dumps.processes(text)) is not None:
        yield from documents
        return
    sections = by_prefix(text, is_stack_line)
    parsed = [(origin, parse_lines(lines)) for origin, lines in sections]
    one_each = all(len({p.pid for p in found}) <= 1 for origin, found in parsed if origin.label is not None)
    for origin, found in parsed:
        for process in found:
            yield _with_origin(process, origin, one_each=one_each)


def _with_origin(process: TextProcess, origin: Origin, *, one_each: bool) -> TextProcess:
    process.host = process.host or origin.host
    process.pid = process.pid if process.pid is not None else origin.pid
    process.local_rank = process.local_rank if process.local_rank is not None else origin.local_rank
    if process.rank is None:
        process.rank = origin.rank if origin.label is None or not one_each else origin.label
    if origin.label is not None and not one_each:
        process.host = process.host or f"task {origin.label}"
    return process


def _with_labels(
    read: Sequence[tuple[names.Named, list[TextProcess]]],
) -> Iterator[tuple[names.Named, list[TextProcess]]]:
    """Yield the files with what the differences of their names mean: a round, a rank, or a host."""
    alike: dict[str, list[list[TextProcess]]] = {}
    for name, processes in read:
        if name.label:
            alike.setdefault(name.like, []).append(processes)
    for name, processes in read:
        if not name.label:
            yield name, processes
            continue
        files = alike[name.like]
        ids = [sorted(p.pid or -1 for p in rows) for rows in files]
        if len(files) > 1 and all(row == ids[0] and row and row[0] >= 0 for row in ids):
            yield name._replace(round=name.label.zfill(7)), processes
        elif name.number is not None and all(len(rows) <= 1 for rows in files):
            yield name._replace(rank=name.number), processes
        else:
            yield name._replace(host=name.label), processes


def _is_one(processes: Sequence[TextProcess]) -> bool:
    """True if a file holds one process, looked at once or several times: its threads keep their numbers."""
    known = [{*p.numbers} for p in processes]
    return len(processes) == 1 or (len({p.tool for p in processes}) == 1 and bool(set.intersection(*known or [set()])))


def _complete(process: TextProcess, name: names.Named, *, alone: bool) -> TextProcess:
    """Return a process with what its command line and the file's name say."""
    rank, local = names.rank_of_command(process.command)
    given = (process.rank, rank, name.rank if alone else None)
    process.rank = next((r for r in given if r is not None), None)
    process.local_rank = process.local_rank if process.local_rank is not None else local
    process.host = process.host or name.host
    return process


def _python_stack(thread: TextThread) -> tuple[Frame, ...]:
    return tuple(
        Frame(file, line, function, code or named_files.source_line(file, line)[:200])
        for file, line, function, code in reversed(thread.frames)
    )


def _only_ranks(found: Sequence[_Seen]) -> tuple[list[_Seen], tuple[str, ...]]:
    """Return the processes that may be ranks, and the others in words; all of them if none may be."""
    kinds = [_helper(seen) for seen in found]
    ranks = [seen for seen, kind in zip(found, kinds, strict=True) if not kind]
    if not ranks:
        return list(found), ()
    counts = Counter(kind for kind in kinds if kind)
    return ranks, tuple(f"{number} {kind}{'s' * (number != 1)}" for kind, number in counts.items())


def _helper(seen: _Seen) -> str:
    """Return what a process is that is no rank; nothing for what may be one."""
    files = [frame.file for frame in seen.stack]
    if any(f.function == "_worker_loop" and "data" in f.file for f in seen.stack):
        return "worker of a data loader"
    if any(part in file for file in files for part in _LAUNCHES) and seen.process.rank is None:
        return "launcher"
    if seen.process.rank is None and names.is_launcher(seen.process.command) and "rank" not in seen.process.command:
        return "launcher or helper"
    if any(part in file for file in files for part in _SERVES):
        return "helper process"
    if not seen.stack and not seen.process.main().native:
        return "process without a stack"
    return ""


def _in_rounds(found: Sequence[_Seen]) -> list[list[_Seen]]:
    """Return the looks of one tool at each process, in their order.

    A process is known by its rank, if one of its stacks names it, else by host and id. Where several tools have looked,
    the one that has seen most processes counts: the others print the same places in other words.
    """
    of_pid = {(s.process.host, s.process.pid): s.process.rank for s in found if s.process.rank is not None}
    rows: dict[object, dict[str, list[_Seen]]] = {}
    for seen in sorted(found, key=lambda seen: seen.round):
        p = seen.process
        rank = p.rank if p.rank is not None else of_pid.get((p.host, p.pid)) if p.pid is not None else None
        p.rank = rank
        key: object = id(seen) if p.pid is None else (p.host, p.pid)
        if rank is not None:
            key = rank
        elif p.pid is None and (p.local_rank is not None or seen.round):
            key = (p.host, p.local_rank, p.file.replace(seen.round.lstrip("0") or "0", ""))
        rows.setdefault(key, {}).setdefault(p.tool, []).append(seen)
    covered = Counter(tool for row in rows.values() for tool in row)
    order = {id(seen.process): n for n, seen in enumerate(found)}
    chosen = [row[max(row, key=lambda tool: (covered[tool], _PREFERRED.get(tool, 0)))] for row in rows.values()]
    return sorted(chosen, key=lambda row: order[id(row[0].process)])


def _ranks(processes: Sequence[TextProcess]) -> tuple[list[int], str]:
    """Return the rank of each process, and how it is known; nothing if the files name it."""
    given = [p.rank for p in processes]
    if None not in given and len({*given}) == len(given) and max((r or 0 for r in given), default=0) < MOST_RANKS:
        return [r for r in given if r is not None], ""
    hosts = list(dict.fromkeys(p.host for p in processes))
    local = [p.local_rank for p in processes]
    if None not in local and len({(p.host, p.local_rank) for p in processes}) == len(processes):
        size = max(n for n in local if n is not None) + 1
        numbers = [hosts.index(p.host) * size + (p.local_rank or 0) for p in processes]
        how = "" if len(hosts) == 1 else "ranks are counted from local ranks, hosts in the order of the files"
        return numbers, how
    order = sorted(range(len(processes)), key=lambda n: (hosts.index(processes[n].host), n))
    numbers = [0] * len(processes)
    for rank, n in enumerate(order):
        numbers[n] = rank
    return numbers, "no rank is named: they are numbered in the order of the stacks"


def _state(seen: _Seen, rank: int, world: int) -> RankState:
    process, stack = seen.process, seen.stack
    main = process.main()
    native = tuple(reversed(main.native))
    inner = stack[-1] if stack else Frame("", 0, "")
    words = native[-1][:200] if native else inner.code or inner.function
    record = Record(
        source="native" if native else "stack", path=inner.file or process.file, line=inner.line, words=words, rank=rank
    )
    waiting = by_stack(stack, native, record) or by_native(native, record, has_stack=bool(stack))
    beside = tuple(_other_threads(process, main, rank))
    pending = operation(stack, native)
    if pending is None and (waiting is None or waiting.kind == "thread") and _is_backward(stack):
        pending = next((Operation(op=w.op) for w in beside if w.kind == "collective" and w.op), None)
    return RankState(
        rank=rank,
        pid=process.pid,
        host=process.host,
        local_rank=process.local_rank,
        alive=True,
        stack=stack,
        native=native,
        waiting=waiting,
        pending=pending,
        beside=() if pending is not None else beside,
        world_size=world,
        roads={"py-spy": "ok"},
    )


def _is_backward(stack: Sequence[Frame]) -> bool:
    """True if the main thread waits for the backward pass, which runs hooks and their collectives in another thread."""
    inner = [frame for frame in stack[-3:] if "/torch/autograd/" in frame.file.replace("\\", "/")]
    return bool(inner)


def _other_threads(process: TextProcess, main: TextThread, rank: int) -> Iterator[Waiting]:
    """Yield what other threads wait in among ranks: the backward pass runs in one."""
    for thread in process.threads:
        if thread is main or thread.name.startswith("pt_"):
            continue
        stack = _python_stack(thread)
        if not any(not is_library(frame.file) or "/torch/distributed/" in frame.file for frame in stack):
            continue
        found = by_stack(stack, tuple(reversed(thread.native)))
        if found is not None and found.kind in _AMONG:
            yield msgspec.structs.replace(found, thread=thread.name, record=Record(source="stack", rank=rank))
