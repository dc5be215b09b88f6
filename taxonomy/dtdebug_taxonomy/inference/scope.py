"""Decides whether this is a fault of distributed training at all: nothing else is shown unasked."""

from __future__ import annotations

from collections.abc import Sequence

from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.inference.finding import Finding
from dtdebug_taxonomy.knowledge.loader import Knowledge

_STARTS_RANKS = {"torchrun", "mpirun", "horovodrun", "deepspeed", "spawn"}
"""Launchers that are not used for programs of one process."""
_CONTRASTS = {"works_with_one_process", "works_on_one_node"}


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
