"""More processes than devices, by the figures in the description or in a command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for
from dtdebug_taxonomy.text.number_words import NUMBER, read_number
from dtdebug_taxonomy.text.pattern_matcher import clip_lines, plain

_COUNT = rf"(?P<gpus>{NUMBER}|a single)"
_MACHINE = r"(?:machine|node|host|server|box|instance|workstation|computer|laptop|pc|vm|container|pod)s?"
_THERE = re.compile(
    rf"(?i)\b(?:have|has|got|{_MACHINE} with|there (?:is|are)|only|of|comes with)\b (?:only |just |exactly )?{_COUNT} "
    r"(?:\w[\w.-]{0,14} ){0,3}?(?:gpus?|cards?)\b(?! (?:per|for each|on each|in each|each) process)"
)
_CARDS = re.compile(
    r"(?i)(?<![\w.-])(?P<gpus>[2-9]|\d\d) ?[x*\u00d7] ?(?:nvidia |geforce |rtx |tesla |amd |instinct ){0,3}"
    r"(?:[abhv]\d00|a10g?|a40|t4|l40s?|\d{4}|mi\d{3}x?)(?:s|ti)?\b"
)
"""`4*4090`, `8x A100`."""
_ORDINAL = re.compile(r"(?i)\binvalid device ordinal\b")
_STARTED = re.compile(r"--(?:nproc[_-]per[_-]node|num_gpus|nproc)[ =](?P<count>\d{1,3})\b")
"""Option that sets the number of processes per host."""
_SCRIPT = re.compile(r"(?:^|\s)(?:ba)?sh (?P<script>[\w./-]{1,60}\.sh)\b|(?:^|\s)(?P<own>\./[\w./-]{1,60}\.sh)\b")
_HOSTS = re.compile(
    r"(?i)\b(?:[2-9]|\d\d|two|three|four|several|multiple|both|multi|each|per|across|other)[ -](?:nodes?|machines?"
    r"|hosts?|servers?)\b|\bhorovodrun\b|\bmpirun\b|\bsrun\b|--nnodes[ =](?!1\b)|(?:^|\s)-H \S"
)
"""Words of several hosts, where the global rank may be what is too high."""
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
    said, output = context.incident.prose.text, context.incident.snapshot.output
    found = compare_counts(said, output)
    if found is None and (row := next(iter(_stated_devices(f"{said}\n{output}")), None)) is not None:
        yield from _of_ordinal(context, *row)
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


def _of_ordinal(context: Context, gpus: int, found: re.Match[str]) -> Iterator[Explanation]:
    """Yield that a device number is too high for the devices that the user counts, whatever started them."""
    error = next((e for e in context.incident.errors if _ORDINAL.search(e.message)), None)
    text = found.string
    started = _STARTED.search(text)
    if error is None or gpus < 2 or started is not None or _CPU.search(text) or _HOSTS.search(text):
        return
    script = _SCRIPT.search(text)
    where = f" in {plain(script['script'] or script['own'])}" if script is not None else ""
    yield explanation_for(
        "C.5",
        f"A process asks for a device number above {gpus - 1}: there are {gpus} GPUs, numbered from 0 to {gpus - 1}",
        "A device number comes from the rank: one is too high where more processes start than devices are visible.",
        f"Look{where} how many processes start on the host: at most {gpus} (`--nproc_per_node {gpus}`). Of several"
        " hosts, take the local rank as the device number.",
        _PROBABILITY,
        Reason(
            evidence=_CAUSE,
            means="The user says how many GPUs there are.",
            source="said",
            weight=1.5,
            line=text.count("\n", 0, found.start()) + 1,
            words=plain(found[0]),
        ),
        pattern="fix device assignment",
    )


def _stated_devices(text: str) -> list[tuple[int, re.Match[str]]]:
    """Return each number of devices of a host that a text states, the largest first."""
    text = clip_lines(text)
    rows = [(_number(m["gpus"]), m) for p in (_THERE, _CARDS) for m in p.finditer(text)]
    return sorted(rows, key=lambda row: -row[0])


def compare_counts(situation: str, output: str) -> TooMany | None:
    """The figures, where a launcher starts more processes on a host than the user says that there are GPUs."""
    text = clip_lines(situation)
    there = _stated_devices(text)
    started = _STARTED.search(text) or _STARTED.search(clip_lines(output))
    if not there or started is None or _CPU.search(text):
        return None
    most, found = there[0]  # "4 GPUs, of which 2 are used": the larger one is what there is
    count = int(started["count"])
    if count <= most:
        return None
    return TooMany(count, most, plain(found[0]), text.count("\n", 0, found.start()) + 1)


def _number(word: str) -> int:
    return 1 if word.lower() == "a single" else read_number(word)
