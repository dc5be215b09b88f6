"""Numbers of nodes, tasks and devices that a launch script requests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dtdebug_taxonomy.source.shell.commands import Directive, Word
from dtdebug_taxonomy.source.shell.launch import LaunchCommand
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.text import whole_number

_NODES_OF_JOB = re.compile(r"\$\{?SLURM_(JOB_)?(NUM_NODES|NNODES)\}?$")
_NODE_OPTIONS = ("--nnodes", "--num_nodes", "--num_machines")
_GPUS = re.compile(r"gpu(?::[\w.-]+)?:(\d+)(?:\(.*\))?$")
LOOPBACK = re.compile(r"^(localhost|127(\.\d+){3}|\[?::1\]?)(:\d+|:\$.*)?$")
"""Address by which every machine reaches only itself."""


def count(directive: Directive | None) -> int | None:
    """Return the number that a directive gives, of a range the smaller one."""
    found = re.match(r"(\d+)(-\d+)?$", directive.value or "") if directive else None
    return whole_number(found[1]) if found else None


def nodes_of_job(script: Script) -> int | None:
    """Return the number of nodes requested from the batch system."""
    return count(script.directive("--nodes", "-N"))


def given_nodes(launch: LaunchCommand) -> Word | None:
    """Return the number of nodes that a launcher is given, as it is written."""
    options = (launch.options.get(name) for name in _NODE_OPTIONS)
    return next((o.value for o in options if o is not None and o.value is not None), None)


def nodes(script: Script, launch: LaunchCommand) -> int | None:
    """Return the number of nodes that a launcher is given, of a range the smaller one."""
    given = given_nodes(launch)
    if given is None:
        return None
    text = script.resolve(given.text)
    if found := re.match(r"(\d+)(:\d+)?$", text):
        return whole_number(found[1])
    return nodes_of_job(script) if _NODES_OF_JOB.match(text) else None


def srun_nodes(launch: LaunchCommand, many: int) -> int | None:
    """Return the nodes on which `srun` starts a launcher, by default all of the job; None if unknown."""
    own = _after(launch.before, *_TASKS["nodes"])
    return many if own is None else whole_number(own)


def gpus_per_node(script: Script) -> tuple[int, Directive] | None:
    """Return the number of devices per node requested from the batch system, with the directive."""
    for names in (("--gpus-per-node",), ("--gres",), ("--gpus", "-G")):
        directive = script.directive(*names)
        if directive is None or not directive.value:
            continue
        if names[0] == "--gpus" and nodes_of_job(script) not in {None, 1}:
            continue
        found = _GPUS.search(directive.value) or re.fullmatch(r"(?:[a-zA-Z][\w.-]*:)?(\d+)", directive.value)
        if found and (names[0] != "--gres" or "gpu" in directive.value):
            return int(found[1]), directive
    return None


class Tasks(NamedTuple):
    """Number of tasks that Slurm starts."""

    total: int
    per_node: int | None


def tasks(script: Script, before: Sequence[Word]) -> Tasks | None:
    """Return the tasks of a step that `srun` starts, by its options and the job's; None if unknown."""
    own = {name: _after(before, *names) for name, names in _TASKS.items()}
    if any(value is not None and not value.isdecimal() for value in own.values()):
        return None
    number = {
        name: whole_number(value) if value else count(script.directive(*_TASKS[name])) for name, value in own.items()
    }
    per_node, nodes_asked = number["per node"], number["nodes"] or (None if number["tasks"] else 1)
    if number["tasks"] and not (own["per node"] or (own["nodes"] and per_node)):
        even = nodes_asked and number["tasks"] % nodes_asked == 0
        return Tasks(number["tasks"], per_node or (number["tasks"] // nodes_asked if even and nodes_asked else None))
    if per_node and nodes_asked:
        return Tasks(per_node * nodes_asked, per_node)
    return None


_TASKS = {"tasks": ("--ntasks", "-n"), "per node": ("--ntasks-per-node",), "nodes": ("--nodes", "-N")}


def _after(words: Sequence[Word], *names: str) -> str | None:
    """Return the value of an option: `--ntasks=4`, `--ntasks 4`, `-n4`."""
    for at, word in enumerate(words):
        name, equals, value = word.text.partition("=")
        if name in names:
            return value if equals else words[at + 1].text if at + 1 < len(words) else ""
        short = next((n for n in names if len(n) == 2 and word.text.startswith(n) and len(word.text) > 2), None)
        if short and not word.text.startswith("--"):
            return word.text[2:]
    return None
