"""Decides whether this is a fault of distributed training at all: nothing else is shown unasked."""

from __future__ import annotations

from collections.abc import Sequence

from dtdebug_taxonomy.finding import Finding
from dtdebug_taxonomy.knowledge import Knowledge
from dtdebug_taxonomy.signs import speaks_of_several
from dtdebug_taxonomy.snapshot import Snapshot, walk

_STARTS_RANKS = {"torchrun", "mpirun", "horovodrun", "deepspeed", "spawn"}
"""Launchers that are not used for programs of one process."""
_CONTRASTS = {"works_with_one_process", "works_on_one_node"}
_LAUNCHED = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "HOROVOD_SIZE", "SLURM_NTASKS", "TF_CONFIG")


def is_recognised(
    knowledge: Knowledge, snapshot: Snapshot, findings: Sequence[Finding], roots: Sequence[Finding]
) -> bool:
    """True if distributed training failed: a message of its own, or a general one in a distributed program."""
    verdict = snapshot.verdict
    if verdict is not None and (verdict.names_ranks or (verdict.kind != "none" and snapshot.ranks)):
        return True
    if any(f.evidence in _CONTRASTS and f.values == ("yes",) and f.source == "said" for f in findings):
        return True  # it works with less of the distribution
    if any(f.evidence == "says-works-with-fewer-ranks" for f in findings):
        return True
    if any(f.told for f in findings):  # a check of distributed programs finds it on the line that raised
        return True
    if not roots:
        return False
    if any(not knowledge.evidence[f.evidence].generic for f in roots):
        return True
    launchers = {v for f in findings if f.evidence == "launcher" for v in f.values}
    if is_distributed(snapshot) or launchers & _STARTS_RANKS or any(f.rank is not None for f in roots):
        return True
    return any(knowledge.evidence[f.evidence].own for f in roots) and speaks_of_several(snapshot)


def is_distributed(snapshot: Snapshot) -> bool:
    """True if the failed program is one of several processes, or drives several devices."""
    if snapshot.child_ranks or any(r.initialized for r in snapshot.ranks):
        return True
    if any(snapshot.environment.get(name, "1") != "1" for name in _LAUNCHED):
        return True
    return any(
        part in frame.file.replace("\\", "/")
        for info in walk(snapshot.exception)
        for frame in info.frames
        for part in (
            "/torch/distributed/",
            "/torch/nn/parallel/",
            "/deepspeed/",
            "/horovod/",
            "/colossalai/",
            "/tensorflow/python/distribute/",
        )
    )
