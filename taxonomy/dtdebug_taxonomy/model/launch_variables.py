"""Environment variables by which launchers tell a process its place in the job, nearest to the program first.

torchrun's outrank those of the srun or mpirun that started torchrun.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final

RANK: Final = (
    "RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "HOROVOD_RANK", "SLURM_PROCID",
)  # fmt: skip
WORLD_SIZE: Final = (
    "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "HOROVOD_SIZE",
    "SLURM_NTASKS", "SLURM_NPROCS",
)  # fmt: skip
LOCAL_RANK: Final = (
    "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "HOROVOD_LOCAL_RANK",
    "SLURM_LOCALID",
)  # fmt: skip
LOCAL_WORLD_SIZE: Final = (
    "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE",
    "HOROVOD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE",
)  # fmt: skip
NODE_RANK: Final = ("GROUP_RANK", "NODE_RANK", "SLURM_NODEID")
NODES: Final = ("GROUP_WORLD_SIZE", "SLURM_NNODES", "SLURM_JOB_NUM_NODES")
_SAME: Final = (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, NODES)
"""Names with one meaning; the first is the one of torchrun."""


def read_number(variables: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    """Return the value of the first of these variables that is set to a number."""
    return next((int(text) for name in names if is_number(text := variables.get(name, ""))), None)


def is_number(text: str) -> bool:
    """True for a count of up to nine digits: a variable can hold anything."""
    return text.isascii() and text.isdecimal() and len(text) < 10


def name_elsewhere(name: str, environment: Container[str]) -> str:
    """Return the variable that the launcher of this job has set for what another launcher sets by `name`, or ""."""
    alike = next((names for names in _SAME if name in names), ())
    return next((each for each in alike if each != name and each in environment), "")
