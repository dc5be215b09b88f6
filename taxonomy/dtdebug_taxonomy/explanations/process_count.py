"""More processes than devices, by the figures in the description or in a command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for
from dtdebug_taxonomy.text.pattern_matcher import clip_lines, plain

_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "six": 6, "eight": 8}
_COUNT = rf"(?P<gpus>\d{{1,3}}|{'|'.join(_WORDS)}|a single)"
_MACHINE = r"(?:machine|node|host|server|box|instance|workstation|computer|laptop|pc|vm|container|pod)s?"
_THERE = re.compile(
    rf"(?i)\b(?:have|has|got|{_MACHINE} with|there (?:is|are)|only|of|comes with)\b (?:only |just |exactly )?{_COUNT} "
    r"(?:\w[\w.-]{0,14} ){0,3}?(?:gpus?|cards?)\b(?! (?:per|for each|on each|in each|each) process)"
)
_STARTED = re.compile(r"--(?:nproc[_-]per[_-]node|num_gpus|nproc)[ =](?P<count>\d{1,3})\b")
"""Option that sets the number of processes per host."""
_CPU = re.compile(r"(?i)\bgloo\b|\bon (?:the )?cpus?\b|--no[_-]cuda|\buse[_-]cpu\b")


class TooMany(NamedTuple):
    """Number of processes and of devices."""

    processes: int
    gpus: int
    words: str
    line: int


_CAUSE = "more-processes-than-gpus"
_PROBABILITY = 0.5


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the mismatch of processes and devices that the user's figures show."""
    found = compare_counts(context.incident.prose.text, context.incident.snapshot.output)
    if found is not None:
        gpus = f"{found.gpus} GPU{'s' if found.gpus > 1 else ''}"
        yield explanation_for(
            "C.5",
            f"{found.processes} processes are started on a host that has {gpus}",
            "Each process wants a device of its own: the others get a number that does not exist, or share a device,"
            " which NCCL refuses.",
            f"Start {found.gpus} (`--nproc_per_node {found.gpus}`), or as many as there are: `--nproc_per_node gpu`.",
            _PROBABILITY,
            Reason(
                evidence=_CAUSE,
                means="The user says how many GPUs there are.",
                source="said",
                weight=1.5,
                line=found.line,
                words=found.words,
            ),
            pattern="fix device assignment",
        )


def compare_counts(situation: str, output: str) -> TooMany | None:
    """The figures, where a launcher starts more processes on a host than the user says that there are GPUs."""
    text = clip_lines(situation)
    there = list(_THERE.finditer(text))
    started = _STARTED.search(text) or _STARTED.search(clip_lines(output))
    if not there or started is None or _CPU.search(text):
        return None
    most = max(_number(m["gpus"]) for m in there)  # "4 GPUs, of which 2 are used": the larger one is what there is
    count = int(started["count"])
    if count <= most:
        return None
    return TooMany(count, most, plain(there[0][0]), text.count("\n", 0, there[0].start()) + 1)


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _WORDS.get(word.lower(), 1)
