"""Launchers of several nodes that a batch script starts on its own node only."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.launching import nodes, nodes_of_job
from dtdebug_taxonomy.source.shell.launch import LaunchCommand, launches
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.text import Span

_SPREADS = re.compile(r"\b(srun|mpirun|mpiexec|orterun|p?d?ssh|clush|parallel|ray|flux|aprun|jsrun|blaunch|xargs)\b")
_LAUNCHERS = {"torchrun", "accelerate launch"}


def check(script: Script) -> Iterator[Hit]:
    """Report the launcher."""
    many = nodes_of_job(script)
    directive = script.directive("--nodes", "-N")
    if many is None or many < 2 or directive is None or directive.system != "SBATCH":
        return
    if any(_SPREADS.search(w.text) for c in script.commands for w in c.words):
        return
    for launch in launches(script):
        if launch.launcher not in _LAUNCHERS or launch.command.branch or nodes(script, launch) not in {many, None}:
            continue
        told = nodes(script, launch)
        what = "waits there for the others" if told else "trains there alone"
        yield Hit(
            launch.place,
            f"Slurm runs a batch script on the first of its {many} nodes only: nothing starts {launch.launcher} on the "
            f"others, and it {what}. Start it by srun, one task on each node.",
            _fix(script, launch, many) if told else None,
        )


def _fix(script: Script, launch: LaunchCommand, many: int) -> Fix | None:
    """Return a fix that puts srun before a launcher that needs no node rank, with one task per node."""
    backend, start = launch.options.get("--rdzv-backend"), launch.place.start
    if backend is None or backend.value is None or script.resolve(backend.value.text) == "static":
        return None
    place = script.text.place(start)
    if script.text.line(place.line)[: place.column - 1].strip():
        return None
    edit = Edit(Span(start, start), f"srun --nodes={many} --ntasks={many} ")
    return Fix("Start one on each node", (edit,), safe=False)
