"""Processes started on a host against the devices that they see. Unit: devices of one host.

Rule: a process gets only devices whose number is below `torch.cuda.device_count()`, which CUDA_VISIBLE_DEVICES limits
(CUDA programming guide, "CUDA Environment Variables",
https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for, reason_of_figures
from dtdebug_taxonomy.text.lazy_re import lazy_re

_VISIBLE = lazy_re(
    r"(?m)^.{0,80}?\b(?:torch\.cuda\.device_count\(\)|device_count|visible (?:gpus|devices)"
    r"|number of (?:visible )?gpus) ?[:=] ?(?P<n>\d{1,3})\b"
    r"|\bCUDA_VISIBLE_DEVICES['\"\]]{0,2} ?[:=] ?['\"]?(?P<list>\d{1,2}(?:, ?\d{1,2}){0,31})\b"
)
_STARTED = lazy_re(
    r"(?:^|\s)(?:--(?:nproc[_-]per[_-]node|num_gpus|devices)[ =]"
    r"|\+{0,2}(?:trainer|fabric|hardware|resources|launcher|train)\.(?:devices|gpus|num_gpus|n_gpus"
    r"|nproc_per_node)=)(?P<n>\d{1,3})\b"
)
"""As an option, or as an override of a configuration (`trainer.devices=4`)."""
_ORDINAL = lazy_re(r"(?i)\binvalid device ordinal\b")
_HOSTS = lazy_re(
    r"(?i)\b(?:[2-9]|\d\d|two|three|four|several|multiple|multi)[ -](?:nodes?|machines?|hosts?|servers?)\b"
    r"|--nnodes[ =](?!1\b)|--hostfile\b|(?:^|\s)-H \S"
)
"""Words of several hosts, where the global rank may be what is too high."""
_CPU = lazy_re(r"(?i)\bgloo\b|\bon (?:the )?cpus?\b|--no[_-]cuda|\buse[_-]cpu\b")

_EVIDENCE = "more-processes-than-visible-devices"


def explain(context: Context) -> Iterator[Explanation]:
    """Yield that more processes are started than devices are visible, by printed or given figures."""
    words = context.incident.texts
    started = _STARTED.search(words)
    visible = _VISIBLE.search(context.incident.printed) or _only(context.incident.said)
    if visible is None or _CPU.search(words):
        return
    there = int(visible["n"]) if visible["n"] else len({*visible["list"].replace(" ", "").split(",")})
    refused = any(_ORDINAL.search(e.message) for e in context.incident.errors)
    if started is None and refused and there and not _HOSTS.search(words):
        yield _of_visible(there, reason_of_figures(context.incident, _EVIDENCE, visible))
    if started is None:
        return
    count = int(started["n"])
    if not 0 < there < count or there == 1:  # a launcher that gives each process one device of its own
        return
    yield explanation_for(
        "C.5",
        f"{count} processes are started on a host on which {_are_visible(there)}",
        "The processes above that number have no device of their own: they get a number that does not exist, or"
        " share one.",
        f"Start {there} (`--nproc-per-node {there}`), or make the others visible: CUDA_VISIBLE_DEVICES, the"
        " devices of the container or of the allocation.",
        0.5,
        reason_of_figures(context.incident, _EVIDENCE, visible),
        pattern="fix device assignment",
    )


def _of_visible(there: int, shown: Reason) -> Explanation:
    """Return that a device number is too high for the devices that are visible, whatever started the processes."""
    numbered = "numbered 0" if there == 1 else "numbered 0 and 1" if there == 2 else f"numbered 0 to {there - 1}"
    processes = f"{there} process{'es' * (there > 1)}"
    return explanation_for(
        "C.5",
        f"A process asks for a device that it does not see: {_are_visible(there)}, {numbered}",
        "The visible devices are numbered anew from 0, whatever their numbers on the host are.",
        f"Start {processes} per host, or make more devices visible (CUDA_VISIBLE_DEVICES, the devices of the container"
        " or of the allocation). Where each process is given one device of its own, its number is 0.",
        0.5,
        shown,
        pattern="fix device assignment",
    )


def _are_visible(there: int) -> str:
    return f"{there} device{'s are' if there > 1 else ' is'} visible"


def _only(text: str) -> re.Match[str] | None:
    """Return the first list of devices that a person gives; None if there are several of different lengths."""
    rows = [m for m in _VISIBLE.finditer(text) if m["list"]]
    return rows[0] if len({m["list"].count(",") for m in rows}) == 1 else None
