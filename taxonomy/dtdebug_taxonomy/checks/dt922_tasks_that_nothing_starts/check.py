"""Batch scripts that request several tasks and start their program once."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.launching import tasks
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.started_programs import started_programs
from dtdebug_taxonomy.source.text import Span

_SPREAD = ("srun", "mpirun", "mpiexec", "orterun", "parallel", "ssh", "pdsh", "xargs", "ray", "flux", "jsrun", "aprun")
_READ = {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"}


def check(script: Script) -> Iterator[Hit]:
    """Report the program."""
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


def _reads(code: Code) -> str:
    """Return the task variable from which a program reads its rank if it makes a group; else ""."""
    if not code.calls(INIT):
        return ""
    return next((v.name for v in code.variables if v.name in _READ and not v.is_set), "")
