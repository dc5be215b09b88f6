"""Example diffs: one for a tool that the user does not have, or beside their own source, is not shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dtdebug_taxonomy.explanations.model import Explanation, without_diff
from dtdebug_taxonomy.model.snapshot import Snapshot, walk
from dtdebug_taxonomy.text.lazy_re import lazy_re

_OF = (
    (r"\bmpirun\b|\bmpiexec\b|-mca ", r"mpirun|mpiexec|\bp?orte|\bprte|open ?mpi|horovodrun|\bMPI_"),
    (r"\bhvd\.|\bhorovod", r"horovod|\bhvd\b"),
    (r"\btf\.|\bkeras\.", r"tensorflow|keras|\btf\."),
    (r"\baccelerator\b|\baccelerate ", r"accelerat(?:e|or)\b|transformers|\btrl\b"),
    (r"\bdeepspeed\b|ds_config", r"deepspeed|\bzero[-_ ]?[123]?\b"),
    (r"\btrl\b|GRPO", r"\btrl\b|GRPO|vllm-serve"),
    (r"\bray\.|ScalingConfig", r"\bray\b"),
    (r"\bpl\.|LightningModule|\bTrainer\(.*strategy", r"lightning|\bpl\."),
    (r"#SBATCH|\bsrun\b", r"slurm|srun|sbatch"),
    (r"\bcolossalai\b", r"colossal"),
    (r"--tensor-model-parallel|megatron", r"megatron|nemo"),
)
"""Marks of the tool an example is written for, and signs that the user has that tool."""
_TABLE = [(lazy_re(mark), lazy_re(sign, re.IGNORECASE)) for mark, sign in _OF]
_TORCHRUN = lazy_re(r"\btorchrun\b|torch\.distributed\.(?:run|launch)")
_NOT_TORCHRUN = lazy_re(
    r"(?i)deepspeed[./]launcher|\baccelerate[ /](?:launch|commands)|\b(?:mpirun|mpiexec|horovodrun)\b"
)
"""A start by torchrun is for those who start by it, or of whose launcher nothing is seen."""
_MOST = 200_000


def drop_foreign_examples(snapshot: Snapshot, found: Iterable[Explanation]) -> tuple[Explanation, ...]:
    """Remove example diffs for tools that nothing shows the user to have, and all where their own source was read."""
    if snapshot.source_findings:
        return tuple(without_diff(a) if a.diff_of == "example" else a for a in found)
    said = "\n".join(_visible_texts(snapshot))[:_MOST]
    return tuple(without_diff(a) if a.diff_of == "example" and _foreign(a.diff, said) else a for a in found)


def _foreign(diff: str, said: str) -> bool:
    if _TORCHRUN.search(diff) and _NOT_TORCHRUN.search(said) and not _TORCHRUN.search(said):
        return True
    return any(mark.search(diff) and not sign.search(said) for mark, sign in _TABLE)


def _visible_texts(snapshot: Snapshot) -> Iterator[str]:
    """All words that were seen."""
    yield from (snapshot.situation, snapshot.cell, snapshot.output, " ".join(snapshot.versions))
    for raised in walk(snapshot.exception):
        yield from (raised.type, raised.message, *(f"{f.file} {f.code}" for f in raised.frames))
