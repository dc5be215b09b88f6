"""World sizes in a batch script that differ from the number of tasks that it starts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.launching import gpus_per_node, nodes_of_job, tasks
from dtdebug_taxonomy.checks.shared.spawning import SPAWN
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.started_programs import started_programs
from dtdebug_taxonomy.source.text import whole_number

_PRODUCT = re.compile(r"\$\(\(\s*([\w${}]+(?:\s*\*\s*[\w${}]+)*)\s*\)\)")


def check(script: Script) -> Iterator[Hit]:
    """Report the value."""
    rows = [(a, c) for a, c in script.assignments.get("WORLD_SIZE", ()) if c.name in {"", "export"}]
    if len(rows) != 1 or rows[0][1].branch or not any(d.system == "SBATCH" for d in script.directives):
        return
    assignment, _ = rows[0]
    size = _size(script, assignment.value.text)
    for start in started_programs(script) if size else ():
        if start.launch is not None or start.code is None or not start.runs_under("srun"):
            continue
        if not any(v.name == "WORLD_SIZE" and not v.is_set for v in start.code.variables) or _spawns(start.code):
            continue
        begun = tasks(script, start.before)
        if begun is None or begun.total == size:
            continue
        comes = "never becomes complete, and all wait." if begun.total < (size or 0) else "has no place for the others."
        edit = Edit(assignment.value.span, "$SLURM_NTASKS")
        written = assignment.value.text.isdecimal()
        yield Hit(
            assignment.value.span,
            f"WORLD_SIZE is {size}, and Slurm starts {begun.total} task{'s' * (begun.total > 1)}: the group {comes}",
            Fix("Write the number of tasks", (edit,), safe=False) if written else None,
        )
        return


def _spawns(code: Code) -> bool:
    """True if a task starts ranks itself."""
    return bool(code.calls(*SPAWN)) or code.imports_any("multiprocessing")


def _size(script: Script, text: str) -> int | None:
    """Return the number that a value evaluates to: `8`, `$(( $SLURM_NNODES * 4 ))`."""
    text = script.resolve(text)
    if text.isdecimal():
        return whole_number(text)
    found = _PRODUCT.fullmatch(text)
    alone = [text] if text.startswith("$") and "*" not in text else []
    factors = [_factor(script, f.strip()) for f in (found[1].split("*") if found else alone)] or [None]
    known = [f for f in factors if f is not None]
    return prod(known) if len(known) == len(factors) else None


def _factor(script: Script, text: str) -> int | None:
    name = text.strip("${}")
    if name.isdecimal():
        return int(name)
    if name in {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}:
        return nodes_of_job(script)
    if name in {"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"}:
        asked = gpus_per_node(script)
        return asked[0] if asked else None
    held = script.constant(name)
    return whole_number(held.text) if held is not None else None
