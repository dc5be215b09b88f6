"""Processes started on a host against the devices that they see. Unit: devices of one host.

Rule: a process gets only devices whose number is below `torch.cuda.device_count()`, which CUDA_VISIBLE_DEVICES limits
(CUDA programming guide, "CUDA Environment Variables",
https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables).
"""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.pattern_matcher import clip_lines, plain

_VISIBLE = lazy_re(
    r"(?m)^.{0,80}?\b(?:torch\.cuda\.device_count\(\)|device_count|visible (?:gpus|devices)"
    r"|number of (?:visible )?gpus) ?[:=] ?(?P<n>\d{1,3})\b"
    r"|\bCUDA_VISIBLE_DEVICES ?[:=] ?['\"]?(?P<list>\d{1,2}(?:,\d{1,2}){0,31})\b"
)
_STARTED = lazy_re(r"(?:^|\s)--(?:nproc[_-]per[_-]node|num_gpus)[ =](?P<n>\d{1,3})\b")
_CPU = lazy_re(r"(?i)\bgloo\b|\bon (?:the )?cpus?\b|--no[_-]cuda|\buse[_-]cpu\b")


def explain(context: Context) -> Iterator[Explanation]:
    """Yield that more processes are started than devices are visible, by printed figures."""
    snapshot = context.incident.snapshot
    output = clip_lines(snapshot.output)
    words = f"{context.incident.prose.text}\n{' '.join(snapshot.command)}\n{output}"
    visible, started = _VISIBLE.search(output), _STARTED.search(words)
    if visible is None or started is None or _CPU.search(words):
        return
    there = int(visible["n"]) if visible["n"] else len({*visible["list"].split(",")})
    count = int(started["n"])
    if not 0 < there < count or there == 1:  # a launcher that gives each process one device of its own
        return
    yield explanation_for(
        "C.5",
        f"{count} processes are started on a host on which {there} devices are visible",
        "The processes above that number have no device of their own: they get a number that does not exist, or"
        " share one.",
        f"Start {there} (`--nproc-per-node {there}`), or make the others visible: CUDA_VISIBLE_DEVICES, the"
        f" devices of the"
        " container or of the allocation.",
        0.5,
        Reason(
            evidence="more-processes-than-visible-devices",
            means="The output says how many devices are visible.",
            source="printed",
            weight=1.5,
            line=output.count("\n", 0, visible.start()) + 1,
            words=plain(visible[0].strip())[:200],
        ),
        pattern="fix device assignment",
    )
