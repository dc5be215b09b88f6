"""Variables in which the launchers tell a process the same thing by different names."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

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
