"""Launchers that start a whole node's processes, run in more than one task of that node."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.launching import count, nodes, nodes_of_job
from dtdebug_taxonomy.source.shell.commands import Command, Word
from dtdebug_taxonomy.source.shell.launch import LaunchCommand, launches
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.text import Span, whole_number

_SHORT = {"-n": "--ntasks", "-N": "--nodes"}
_TASKS_AS_NODES = re.compile(r"SLURM_(NTASKS|NPROCS|PROCID|STEP_NUM_TASKS)")


def check(script: Script) -> Iterator[Hit]:
    """Report `srun torchrun` if Slurm runs several tasks on a node."""
    for launch in launches(script):
        outer = _srun(script, launch)
        if outer is None or launch.launcher == "horovodrun":
            continue
        given = launch.options.get("--nnodes") or launch.options.get("--num_machines")
        if given and given.value and _TASKS_AS_NODES.search(given.value.text):
            continue
        if launch.number(script, "--nproc-per-node") == 1:
            continue
        found = _tasks_per_node(script, outer, 1 if "--standalone" in launch.options else nodes(script, launch))
        if found is not None and found[0] > 1:
            tasks, place = found
            yield Hit(
                launch.place,
                f"Slurm runs this in {tasks} tasks on every node, and each {launch.launcher} starts the processes "
                "of a whole node: there are too many of them, and they fight for ports and devices.",
                Fix("Run one task on each node", (Edit(place, "1"),)) if place else None,
            )


def _srun(script: Script, launch: LaunchCommand) -> tuple[Word, ...] | None:
    """Return the words of the srun that runs this: before it, or around the enclosing `bash -c`."""
    words = launch.before
    if not any(w.text.rsplit("/", 1)[-1] == "srun" for w in words):
        around = [c for c in script.commands if c.name == "srun" and _inside(launch.command, c)]
        if not around:
            return None
        words = around[-1].words
    names = [w.text.rsplit("/", 1)[-1] for w in words]
    return words[names.index("srun") :] if "srun" in names else None


def _inside(inner: Command, outer: Command) -> bool:
    return outer.span.start < inner.span.start and inner.span.end <= outer.span.end


def _tasks_per_node(script: Script, srun: tuple[Word, ...], told: int | None) -> tuple[int, Span | None] | None:
    """Return the number of tasks per node, and its span if the text is exactly that number; None if unknown."""
    options: dict[str, str] = {}
    for at, word in enumerate(srun):
        if word.text.startswith("-"):
            name, equals, value = word.text.partition("=")
            if re.fullmatch(r"-[nN]\d+", name):
                name, equals, value = name[:2], "=", name[2:]
            following = srun[at + 1].text if at + 1 < len(srun) else ""
            options[_SHORT.get(name, name)] = value if equals else following
    over = _number(script, options.get("--nodes")) or nodes_of_job(script) or told
    if "--ntasks-per-node" in options:
        tasks = _number(script, options["--ntasks-per-node"])
        return (tasks, None) if tasks else None
    if "--ntasks" in options:
        tasks = _number(script, options["--ntasks"])
        return (tasks // over, None) if tasks and over else None
    directive = script.directive("--ntasks-per-node", "--tasks-per-node")
    if directive is not None:
        tasks = count(directive)
        return (tasks, directive.value_span) if tasks else None
    total = count(script.directive("--ntasks", "-n"))
    return (total // over, None) if total and over else None


def _number(script: Script, text: str | None) -> int | None:
    value = script.resolve(text or "")
    return whole_number(value)
