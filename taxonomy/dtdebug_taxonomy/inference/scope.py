"""Decides whether this is a fault of distributed training at all: nothing else is shown unasked."""

from __future__ import annotations

from collections.abc import Sequence

from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.inference.finding import Finding
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.text.lazy_re import lazy_re

_STARTS_RANKS = {"torchrun", "mpirun", "horovodrun", "deepspeed", "spawn"}
"""Launchers that are not used for programs of one process."""
_CONTRASTS = {"works_with_one_process", "works_on_one_node"}
_OF_THE_FIELD = lazy_re(
    r"(?i)\b(?:gpus?|tpus?|npus?|hpus?|cards?|cuda(?::\d+)?|devices?|ranks?|process(?:es)?|workers?|hosts?|nodes?|machines?|servers?|pods?"
    r"|replicas?|launche[rds]\w?|launching|torchrun|mpirun|srun|sbatch|horovod\w*|hvd|deepspeed|accelerate|ddp|fsdp\d?|zero-?[123]?|nccl|gloo|mpi"
    r"|rendezvous|collectives?|all-?reduce|barrier|hangs?|hung|hanging|stuck|deadlock\w*|freez\w+|stall\w*|loss(?:es)?|gradients?|converge\w*|diverge\w*"
    r"|infiniband|roce|rdma|ibv?_\w+|nvlink|checkpoints?|epochs?|strategy|distribut\w+|parallel\w*|tensorflow|pytorch|torch|keras|jax)\b"
    r"|\b(?:with|since|from|to|in) [\w.-]{2,30} v?\d+\.\d"
)
"""Words for devices, ranks, processes, hosts, launchers, hangs, losses and releases."""


def is_recognised(
    knowledge: Knowledge, incident: Incident, findings: Sequence[Finding], roots: Sequence[Finding]
) -> bool:
    """True if distributed training failed: by a message of its own, or a general one in a distributed program."""
    snapshot = incident.snapshot
    verdict = snapshot.verdict
    if verdict is not None and (verdict.names_ranks or (verdict.kind != "none" and snapshot.ranks)):
        return True
    if any(f.evidence in _CONTRASTS and f.values == ("yes",) and f.source == "said" for f in findings):
        return True  # it works with less of the distribution
    if any(f.evidence == "says-works-with-fewer-ranks" for f in findings):
        return True
    if any(f.evidence == "device_usage" and f.source == "measured" for f in findings):
        return True  # several processes or devices are shown
    if any(f.told for f in findings):  # a check of distributed programs finds it on the line that raised
        return True
    if not roots:
        return False
    if any(not knowledge.evidence[f.evidence].generic for f in roots):
        return True
    launchers = {v for f in findings if f.evidence == "launcher" for v in f.values}
    if incident.is_distributed or launchers & _STARTS_RANKS or any(f.rank is not None for f in roots):
        return True
    return any(knowledge.evidence[f.evidence].own for f in roots) and incident.mentions_several


def speaks_of_the_field(words: str) -> bool:
    """True if words name a device, rank, process, host, launcher, hang, loss or release."""
    return _OF_THE_FIELD.search(words) is not None
