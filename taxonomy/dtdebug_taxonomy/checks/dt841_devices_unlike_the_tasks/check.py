"""Lightning Trainers whose numbers of devices and nodes differ from the tasks that a batch script starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared import hydra
from dtdebug_taxonomy.checks.shared.launching import count, nodes_of_job
from dtdebug_taxonomy.checks.shared.programs import number_of
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.started_programs import StartedProgram, started_programs

_TRAINER = "pytorch_lightning.Trainer"
_SHAPE = ("--ntasks", "--nodes", "-n", "-N")
"""Options of srun that give a step other tasks than the job."""
_INTERACTIVE = frozenset({"bash", "interactive"})
"""Names of jobs in which Lightning ignores Slurm."""


def check(script: Script) -> Iterator[Hit]:
    """Report the program that Slurm starts."""
    name = script.directive("--job-name", "-J")
    if not any(d.system == "SBATCH" for d in script.directives) or (name is not None and name.value in _INTERACTIVE):
        return
    for start in started_programs(script):
        if start.launch is not None or start.code is None or not start.runs_under("srun"):
            continue
        if not any(w.text.startswith(_SHAPE) for w in start.before) and (
            asked := _trainer_resources(script, start, start.code)
        ):
            yield from _compare_tasks(script, start, asked)


class _TrainerResources(NamedTuple):
    """Resources that a Trainer is configured for."""

    devices: int
    machines: int
    where: str


def _trainer_resources(script: Script, start: StartedProgram, code: Code) -> _TrainerResources | None:
    calls = code.calls(_TRAINER)
    if not calls and (group := hydra.group(script, start, code, "trainer")) is not None:
        devices, nodes, target = group.find("devices"), group.find("num_nodes") or (1, ""), group.find("_target_")
        if devices is None or not str(target[0] if target else "").endswith("Trainer") or group.find("plugins"):
            return None
        return _make_resources(devices[0], nodes[0], f"the trainer of {start.name}", devices[1])
    if len(calls) != 1 or code.has_unpacking(calls[0]) or code.argument(calls[0], "plugins"):
        return None
    told = code.argument(calls[0], "num_nodes")
    machines = 1 if told is None else number_of(code, start, script, told)
    line = code.text.place(code.span(calls[0]).start).line
    devices_told = number_of(code, start, script, code.argument(calls[0], "devices"))
    return _make_resources(devices_told, machines, f"the Trainer of {start.name}", f"line {line}")


def _make_resources(devices: object, machines: object, what: str, place: str) -> _TrainerResources | None:
    if not isinstance(devices, int) or not isinstance(machines, int) or devices < 1 or machines < 1:
        return None  # a list, "auto", -1
    return _TrainerResources(devices, machines, f"{what} ({place})")


def _compare_tasks(script: Script, start: StartedProgram, asked: _TrainerResources) -> Iterator[Hit]:
    tasks, nodes = count(script.directive("--ntasks-per-node")), nodes_of_job(script)
    if tasks and asked.devices != tasks:
        begins = f"Slurm starts {tasks} task{'s' * (tasks > 1)} on each node"
        alone = asked.devices == asked.machines == 1
        what = "each task trains for itself." if alone else f"Lightning refuses to start. Write devices={tasks}."
        yield Hit(start.program.span, f"{begins}, and {asked.where} has devices={asked.devices}: {what}")
    elif tasks and nodes and nodes != asked.machines and asked.devices * asked.machines > 1:
        begins = f"Slurm starts {nodes} node{'s' * (nodes > 1)}"
        what = f"Lightning refuses to start. Write num_nodes={nodes}."
        yield Hit(start.program.span, f"{begins}, and {asked.where} has num_nodes={asked.machines}: {what}")
