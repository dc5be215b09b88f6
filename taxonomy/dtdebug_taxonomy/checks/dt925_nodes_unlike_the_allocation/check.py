"""Launchers that are given another number of nodes than the job has."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.launching import given_nodes, nodes, nodes_of_job, srun_nodes
from dtdebug_taxonomy.source.shell.launch import launches
from dtdebug_taxonomy.source.shell.script import Script


def check(script: Script) -> Iterator[Hit]:
    """Report the launcher's number."""
    many, directive = nodes_of_job(script), script.directive("--nodes", "-N")
    if many is None or directive is None or directive.system != "SBATCH" or not (directive.value or "").isdecimal():
        return
    for launch in launches(script):
        given, asked, started = given_nodes(launch), nodes(script, launch), srun_nodes(launch, many)
        if given is None or asked is None or started is None or launch.command.branch:
            continue
        if ":" in script.resolve(given.text):
            continue  # a range: the launcher starts with fewer
        if asked > started:
            what = f"starts {started}: the launcher waits for the others until its time limit"
        elif asked < started and any(w.text.rpartition("/")[2] == "srun" for w in launch.before):
            what = f"starts {started}: the launchers beyond {asked} are refused, or wait for a rendezvous of their own"
        else:
            continue
        edit = Edit(given.span, str(started)) if script.text[given.span.start : given.span.end] == given.text else None
        fix = Fix("Give the job's number", (edit,), safe=False) if edit else None
        yield Hit(given.span, f"{launch.launcher} is given {asked} nodes, and the job {what}.", fix)
