"""A Trainer of Lightning for other numbers of devices and nodes than a batch script starts tasks for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.launching import count, nodes_of_job
from dtdebug_taxonomy.checks.programs import number_of
from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.shell import Script
from dtdebug_taxonomy.source.starting import Started, started

_TRAINER = "pytorch_lightning.Trainer"
_SHAPE = ("--ntasks", "--nodes", "-n", "-N")
"""Options of srun by which a step has other tasks than the job."""
_INTERACTIVE = frozenset({"bash", "interactive"})
"""Names of jobs in which Lightning leaves Slurm alone."""


def check(script: Script) -> Iterator[Hit]:
    """Reports the program that Slurm starts."""
    name = script.directive("--job-name", "-J")
    if not any(d.system == "SBATCH" for d in script.directives) or (name is not None and name.value in _INTERACTIVE):
        return
    for start in started(script):
        if start.launch is not None or start.code is None or not start.runs_under("srun"):
            continue
        calls = start.code.calls(_TRAINER)
        if len(calls) != 1 or start.code.has_unpacking(calls[0]) or start.code.argument(calls[0], "plugins"):
            continue
        if not any(w.text.startswith(_SHAPE) for w in start.before):
            yield from _compared(script, start, start.code, calls[0])


def _compared(script: Script, start: Started, code: Code, call: ast.Call) -> Iterator[Hit]:
    tasks, nodes = count(script.directive("--ntasks-per-node")), nodes_of_job(script)
    told = code.argument(call, "num_nodes")
    devices = number_of(code, start, script, code.argument(call, "devices"))
    machines = 1 if told is None else number_of(code, start, script, told)
    where = f"the Trainer of {start.name} (line {code.text.place(code.span(call).start).line})"
    if not devices or not machines or devices < 1:
        return
    if tasks and devices != tasks:
        alone = devices == machines == 1
        what = "each task trains for itself." if alone else f"Lightning refuses to start. Write devices={tasks}."
        yield Hit(
            start.program.span,
            f"Slurm starts {tasks} task{'s' * (tasks > 1)} on each node, and {where} has devices={devices}: {what}",
        )
    elif tasks and nodes and nodes != machines and devices * machines > 1:
        yield Hit(
            start.program.span,
            f"Slurm starts {nodes} node{'s' * (nodes > 1)}, and {where} has num_nodes={machines}: Lightning refuses to "
            f"start. Write num_nodes={nodes}.",
        )
