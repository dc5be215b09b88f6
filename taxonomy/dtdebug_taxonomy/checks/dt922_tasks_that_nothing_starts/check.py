"""Batch scripts that request several tasks and start their program once, or fewer times."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.launching import count, nodes_of_job, tasks
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.started_programs import started_programs
from dtdebug_taxonomy.source.text import Span

_SPREAD = ("srun", "mpirun", "mpiexec", "orterun", "parallel", "ssh", "pdsh", "xargs", "ray", "flux", "jsrun", "aprun")
_SHAPE = ("--ntasks", "--nodes", "-n", "-N")
"""Options of srun that give a step other tasks than the job."""
_READ = {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"}


def check(script: Script) -> Iterator[Hit]:
    """Report the program, or the number of tasks that is smaller than that of the nodes."""
    yield from _compare_directives(script)
    if not any(d.system == "SBATCH" for d in script.directives) or any(name in script.text for name in _SPREAD):
        return
    asked = tasks(script, ())
    for start in started_programs(script) if asked and asked.total > 1 else ():
        if start.launch is not None or start.before or start.code is None or start.python is None or asked is None:
            continue
        variable = _reads(start.code)
        if not variable:
            continue
        at = start.python.span.start
        alone = not script.text.line(script.text.place(at).line)[: script.text.place(at).column - 1].strip()
        yield Hit(
            start.program.span,
            f"Slurm runs a batch script once, as its task 0, and nothing here starts the other {asked.total - 1} of "
            f"{asked.total} tasks: {start.name} reads {variable} and waits for them.",
            Fix("Start all tasks", (Edit(Span(at, at), "srun "),), safe=False) if alone else None,
        )


def _compare_directives(script: Script) -> Iterator[Hit]:
    """Report `--ntasks` below nodes x tasks per node, where `srun` starts a program with the numbers of the job."""
    total, each = script.directive("--ntasks", "-n"), script.directive("--ntasks-per-node")
    number, per_node, nodes = count(total), count(each), nodes_of_job(script) or 1
    if total is None or total.value_span is None or not number or not per_node or number >= nodes * per_node:
        return
    starts = (s for s in started_programs(script) if s.launch is None and s.runs_under("srun"))
    if not any(len(s.before) == 1 or all(not w.text.startswith(_SHAPE) for w in s.before) for s in starts):
        return
    wanted = nodes * per_node
    yield Hit(
        total.span,
        f"srun starts {number} task{'s' * (number > 1)}, for {total.name} goes before {each.name}={per_node}, which is"
        f" only a limit beside it: the program counts on {per_node} on a node, and the other devices stay idle. Leave"
        f" {total.name} out, or make it {wanted}.",
        Fix(f"Start {wanted}", (Edit(total.value_span, str(wanted)),), safe=False),
    )


def _reads(code: Code) -> str:
    """Return the task variable from which a program reads its rank if it makes a group; else ""."""
    if not code.calls(INIT):
        return ""
    return next((v.name for v in code.variables if v.name in _READ and not v.is_set), "")
