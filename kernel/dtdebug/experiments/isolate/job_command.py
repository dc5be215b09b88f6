"""Parses the command of a job: its launcher and number of ranks; rewrites it with another number."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from dtdebug.experiments.isolate import local_agents
from dtdebug.live.hosts import job_plan as plans

_OPTIONS = {
    "torchrun": ("nproc-per-node",),
    "accelerate": ("num-processes",),
    "mpirun": ("np", "n"),
}
_MOST, _AGENTS = 1 << 12, 8
_BETWEEN_HOSTS = frozenset(
    ("standalone", "nnodes", "node-rank", "master-addr", "master-port", "rdzv-backend", "rdzv-endpoint", "rdzv-id",
     "rdzv-conf", "local-addr")
)  # fmt: skip


class JobCommand(NamedTuple):
    """Command of a job, and the position of its number of ranks."""

    words: tuple[str, ...]
    launcher: str = ""
    """`torchrun`, `accelerate` or `mpirun`; empty if unknown."""
    at: int = -1
    """Index of the word with the number; -1 if the command has none."""
    ranks: int | None = None
    """Requested number of ranks; None if it is not stated (`gpu`, `auto`, a configuration)."""
    hosts: int = 1
    agents: int = 1
    """Number of torchrun agents that stand in for hosts, each with `ranks` ranks."""

    def with_counts(self, nodes: int | None, ranks: int | None) -> tuple[str, ...]:
        """Return the command for `nodes` agents with `ranks` each; None keeps them, in total if agents are fewer."""
        if ranks is None and nodes is not None and self.ranks is not None:
            ranks = self.ranks * self.agents // nodes
        words = self.with_ranks(ranks) if ranks is not None else self.words
        nodes = nodes or self.agents
        if nodes == 1:
            return words
        begin = next(i for i, word in enumerate(words) if _launcher(word, ())) + 1
        rest = [word for i, word in enumerate(words[begin:]) if i or word != "--standalone"]
        return tuple(local_agents.agents_command(words[:begin], rest, nodes))

    def with_ranks(self, number: int) -> tuple[str, ...]:
        """Return the command with another number of ranks; raises ValueError if it can't be set."""
        if self.at < 0:
            raise ValueError("the command does not say how many ranks it starts")
        word = self.words[self.at]
        name, equals, _ = word.partition("=")
        changed = f"{name}={number}" if equals else str(number)
        return (*self.words[: self.at], changed, *self.words[self.at + 1 :])


def parse_job(words: Sequence[str]) -> JobCommand:
    """Parse the command of a job."""
    words = tuple(words)
    for index, word in enumerate(words[:64]):
        launcher = _launcher(word, words[index + 1 : index + 2])
        if launcher:
            return _parse_ranks(words, launcher, index + 1)
    return JobCommand(words)


def _launcher(word: str, after: Sequence[str]) -> str:
    name = PurePath(word).name
    if name == "torchrun" or word in ("torch.distributed.run", "torch.distributed.launch"):
        return "torchrun"
    accelerate = name == "accelerate-launch" or word == "accelerate.commands.launch"
    if accelerate or (name, *after) == ("accelerate", "launch"):
        return "accelerate"
    return "mpirun" if name in ("mpirun", "mpiexec") else ""


def _parse_ranks(words: tuple[str, ...], launcher: str, begin: int) -> JobCommand:
    hosts = plans.plan(words, {}).most if launcher != "mpirun" else 1
    index = begin
    while index < len(words) and (words[index].startswith("-") or words[index] == "launch"):
        name, equals, value = words[index].lstrip("-").partition("=")
        name = name.replace("_", "-")
        if name in _OPTIONS[launcher]:
            at = index if equals else index + 1
            text = value if equals else (words[at] if at < len(words) else "")
            number = int(text) if text.isascii() and text.isdecimal() and len(text) < 5 else None
            if number is None or not 0 < number <= _MOST:
                return JobCommand(words, launcher, at if at < len(words) else -1, hosts=hosts)
            return JobCommand(words, launcher, at, number, hosts)
        if words[index] == "-m":
            break
        index += 1 if equals or words[index] == "launch" or name in plans.FLAGS else 2
    return JobCommand(words, launcher, hosts=hosts)


def one_host(job: JobCommand) -> JobCommand:
    """Return a torchrun job without the options that connect it to other hosts."""
    begin = next(i for i, word in enumerate(job.words) if _launcher(word, ())) + 1
    kept, index = ["--standalone"], begin
    while index < len(job.words) and job.words[index].startswith("-") and job.words[index] != "-m":
        name, equals, _ = job.words[index].lstrip("-").partition("=")
        name = name.replace("_", "-")
        step = 1 if equals or name in plans.FLAGS else 2
        if name not in _BETWEEN_HOSTS:
            kept += job.words[index : index + step]
        index += step
    return parse_job([*job.words[:begin], *kept, *job.words[index:]])


def spread(job: JobCommand) -> JobCommand | None:
    """Return the job with one torchrun agent on this host per original host, or None if they do not fit."""
    here = one_host(job)
    if here.at < 0:  # torchrun starts one rank on each host
        begin = next(i for i, word in enumerate(here.words) if _launcher(word, ())) + 1
        here = parse_job((*here.words[:begin], "--nproc-per-node", "1", *here.words[begin:]))
    if here.ranks is None or not 1 < job.hosts <= _AGENTS or not local_agents.fits(job.hosts, here.ranks):
        return None
    return here._replace(agents=job.hosts, hosts=job.hosts)


def move_paths(words: Sequence[str], home: Path, copy: Path) -> tuple[str, ...]:
    """Rewrite the command for a copy of its working directory: paths into it lead into the copy, others stay."""
    return tuple(_move_path(word, home, copy) for word in words)


def _move_path(word: str, home: Path, copy: Path) -> str:
    head, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
    before = f"{head}{equals}"
    if value.startswith(f"{home}/"):
        return f"{before}{copy}{value[len(str(home)) :]}"
    if value.startswith("../") and (home / value).exists():
        return f"{before}{os.path.normpath(home / value)}"
    return word


def python_path(variables: Mapping[str, str], home: Path, copy: Path) -> str:
    """Return `PYTHONPATH` for the copy."""
    given = variables.get("PYTHONPATH", "")
    return os.pathsep.join(_move_path(entry, home, copy) for entry in given.split(os.pathsep)) if given else ""
