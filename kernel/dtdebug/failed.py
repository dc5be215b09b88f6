"""Looks at a failed cell: is it distributed training, and what is wrong?"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dtdebug_taxonomy.diagnosis import Diagnosis
    from dtdebug_taxonomy.snapshot import Snapshot

_FRAMEWORKS = ("torch", "tensorflow", "keras", "horovod", "jax", "deepspeed", "mpi4py", "ray", "nbdistributed")
_WORTH_A_LOOK = re.compile(
    r"(?i)torch|nccl|gloo|horovod|\bmpi|deepspeed|megatron|colossal|accelerate|tensorflow|keras|cuda|\brank\b|srun|"
    r"lightning|rendezvous|nvcc|distributed"
)


def look(
    exception: BaseException | None, *, output: str, cell: str, job: str = ""
) -> tuple[Snapshot, Diagnosis, bool] | None:
    """The snapshot and diagnosis of a failed cell, or None where a quick look shows nothing of distributed training.

    The third is whether editors are told of it; `job` names the cell there.
    """
    if not _worth_a_look(exception, output, cell):
        return None
    from dtdebug import handoff
    from dtdebug.capture import capture
    from dtdebug.last import Last
    from dtdebug_taxonomy.diagnosis import diagnose
    from dtdebug_taxonomy.knowledge import load

    snapshot = capture(exception, output=output, cell=cell)
    diagnosis = diagnose(load(), snapshot)
    told = False
    if diagnosis.recognised:
        Last(snapshot=snapshot, diagnosis=diagnosis).save()
        told = bool(job) and handoff.failed(snapshot, diagnosis, job)
    return snapshot, diagnosis, told


def _worth_a_look(exception: BaseException | None, output: str, cell: str) -> bool:
    """A quick look, so that the first plain error of a notebook does not load the knowledge."""
    if any(name in sys.modules for name in _FRAMEWORKS):
        return True
    try:
        message = str(exception)[:4_000]
    except Exception:
        message = ""
    return any(_WORTH_A_LOOK.search(text) for text in (message, cell, output))
