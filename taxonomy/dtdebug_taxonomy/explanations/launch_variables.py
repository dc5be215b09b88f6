"""Variables in which the launchers tell a process the same thing by different names."""

from __future__ import annotations

import ast
from collections.abc import Container
from typing import Final

from dtdebug_taxonomy.explanations.account_words import replace_expression
from dtdebug_taxonomy.explanations.faults import Fault
from dtdebug_taxonomy.inference.account_call import parse_line

_SAME: Final[tuple[tuple[str, ...], ...]] = (
    ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK"),
    ("WORLD_SIZE", "SLURM_NTASKS", "SLURM_NPROCS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"),
    ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK"),
    ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE"),
    ("GROUP_RANK", "NODE_RANK", "SLURM_NODEID", "OMPI_COMM_WORLD_NODE_RANK"),
    ("GROUP_WORLD_SIZE", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
)
"""Names with one meaning; the first is the one of torchrun."""


def other_launcher(name: str, environment: Container[str]) -> str:
    """Return the variable that the launcher of this job has set for what another launcher sets by `name`."""
    for names in _SAME:
        if name in names:
            return next((each for each in names if each != name and each in environment), "")
    return ""


def of_unset_variable(fault: Fault, environment: Container[str]) -> Fault | None:
    """Return a fault whose value came from a variable of another launcher with the variable that this one set."""
    link = fault.link
    tree = parse_line(link.place.code) if link is not None and link.how == "environment" else None
    for node in ast.walk(tree) if tree is not None else ():
        name = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        other = other_launcher(name, environment) if name not in environment else ""
        if link is None or not other:
            continue
        span = (node.col_offset, node.end_col_offset or 0)  # type: ignore[attr-defined]
        quote = link.place.code[span[0] : span[0] + 1]
        edit = replace_expression(link.place, span, f"{quote}{other}{quote}")
        fix = f"ask for {other}: the launcher of this job sets no {name}."
        return fault._replace(fix=fix, edit=edit, at=link.place)
    return None
