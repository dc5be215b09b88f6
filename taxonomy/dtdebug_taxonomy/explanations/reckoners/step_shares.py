"""A stated share of a schedule or of the steps that is 1/N of N processes. Unit: share of the planned steps.

Rule: a scheduler that Accelerate has prepared advances once for each process in every optimizer step, unless it splits
the batches (Accelerate, https://github.com/huggingface/accelerate/blob/main/src/accelerate/scheduler.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.pattern_matcher import clip_lines, plain
from dtdebug_taxonomy.text.stated_settings import settings_of

_N = r"\d{1,9}(?:[.,]\d{1,3})?"
_SHARE = lazy_re(
    r"(?i)(?<![\w.])(?:(?P<percent>\d{1,2}(?:\.\d)?) ?%|(?P<word>half|a third|a quarter)\b"
    rf"|(?P<part>{_N})(?P<k> ?k)?\b[^\n.;%]{{0,24}}?(?:\bof\b|\bout of\b|\binstead of\b|\brather than\b|/)"
    rf" ?(?:\w{{2,12}} ){{0,3}}?(?P<whole>{_N})(?P<k2> ?k)?\b)"
)
_WORDS = {"half": 1 / 2, "a third": 1 / 3, "a quarter": 1 / 4}
_SCHEDULE = lazy_re(
    r"(?i)(?<![a-z])(?:lr|learning[ _-]rate|schedul\w{0,5}|warm-?up|decay\w{0,3}|anneal\w{0,3})(?![a-z])"
)
_EXAMPLE = lazy_re(r"(?i)\b(?:gpus|processes|ranks|devices) \((?:e\.g\.|i\.e\.|here),? ?(?P<n>\d{1,4})\b")
_COUNTED = lazy_re(r"(?i)\b(?:(?:train )?steps?|iterations?|progress|half-?way)\b")
_ENDS = lazy_re(r"(?i)\b(?:ends?|reach(?:es|ed)?|stop(?:s|ped)?|finish\w{0,3}|error|zero|early|too (?:fast|soon))\b")
_OTHER = lazy_re(
    r"(?i)\b(?:speed\w{0,3}|faster|slower|throughput|utili[sz]\w{0,6}|vram|accura\w{2,3}|time|seconds?|hours?|hang\w{0,3}|stuck|freez\w{1,3}"
    r"|memory|batch(?:es)?)\b"
)
"""Words for amounts that are said in shares as well, and for what ends a job at any step."""
_SENTENCE = lazy_re(r"[.!?](?=\s)|\n")
_CLOSE = 0.04
"""Relative difference of a rounded share."""
_CAUSE = "loop-counts-for-one-process"


def explain(context: Context) -> Iterator[Explanation]:
    """Yield that a schedule or a count of steps is through after 1/N of the way with N processes."""
    text = clip_lines(context.incident.prose.text)
    pairs = [*_pairs(text)]
    if len({count for count, _, _ in pairs}) < 2:  # of one number alone it may be chance
        pairs = [row for row in pairs if _SCHEDULE.search(row[2])]
    if not pairs:
        return
    count, at, words = pairs[0]
    _, cause = context.knowledge.causes[_CAUSE]
    cure = next(c for c in context.knowledge.evidence["says-schedule-off"].cure if c.cause == _CAUSE)
    made = explanation_for(
        "D.2.4",
        f"It is through after 1/{count} of the way with {count} processes: what counts the steps advances once for each"
        " process",
        cause.why,
        cure.fix,
        0.5,
        Reason(
            evidence="share-is-one-of-the-processes",
            means="The share that you state is one over the number of processes.",
            source="said",
            weight=2.0,
            line=text.count("\n", 0, at) + 1,
            words=words,
        ),
        pattern=context.knowledge.patterns[cause.pattern].name,
    )
    yield msgspec.structs.replace(made, cause=cause.id)


def _pairs(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (processes, offset, words) of each share of the steps that is one over a number of processes."""
    said = (s.value for s in settings_of(text, 0) if s.kind == "count" and s.value.isdigit())
    counts = {n for n in map(int, (*said, *(m["n"] for m in _EXAMPLE.finditer(text)))) if n > 1}
    start = 0
    for end in (*(m.end() for m in _SENTENCE.finditer(text)), len(text)):
        sentence, at, start = text[start:end], start, end
        if not _ENDS.search(sentence) or _OTHER.search(sentence):
            continue
        if _SCHEDULE.search(sentence) or _COUNTED.search(sentence):
            shares = [
                (n, m.start()) for m in _SHARE.finditer(sentence) for n in counts if abs(_share(m) * n - 1) <= _CLOSE
            ]
            yield from ((n, at + place, plain(" ".join(sentence.split()))[:200]) for n, place in shares)


def _share(found: re.Match[str]) -> float:
    if found["percent"]:
        return float(found["percent"]) / 100
    if found["word"]:
        return _WORDS[found["word"].lower()]
    part, whole = (float(found[side].replace(",", "")) for side in ("part", "whole"))
    thousands = 1_000 if found["k"] else 1
    return part * thousands / (whole * (1_000 if found["k2"] else 1)) if whole else 0.0
