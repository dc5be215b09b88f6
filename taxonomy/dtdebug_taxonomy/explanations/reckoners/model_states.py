"""States of a model under Adam against the memory of one device. Unit: bytes of one rank.

Rule: weights, gradients and the states of Adam take 16 bytes for each parameter in mixed or single precision; ZeRO-1
divides 12 of them by the ranks, ZeRO-2 14, ZeRO-3 and FSDP all (Rajbhandari et al., "ZeRO", section 3.1,
https://arxiv.org/abs/1910.02054). Without single-precision copies, bfloat16 alone takes 8. Activations come on top.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.number_words import NUMBER, read_number
from dtdebug_taxonomy.text.pattern_matcher import clip_lines, plain

_CAUSE = "model-states-do-not-fit"
_PARAMETERS = lazy_re(
    r"(?i)(?<![\w.-])(?P<n>\d{1,4}(?:\.\d{1,3})?) ?-?(?:b|bn|billion)\b(?! ?(?:tokens?|samples|images|rows|/s))"
)
_ADAM = lazy_re(r"(?i)\badamw?\b")
_LESS = lazy_re(
    r"(?i)\bq?lora\b|\bpeft\b|\badapters?\b|\bfr(?:eez|oz)\w{1,3}\b|\binference\b|\bserv(?:e|ing)\b|\bgenerat\w{1,3}\b"
    r"|\b(?:8|4)[- ]?bit\b|\bbitsandbytes\b|\bpaged\b|\bgalore\b|\badafactor\b|\boff-?load\w{0,3}\b|\bvllm\b"
    r"|\b(?:tensor|pipeline)[ _-](?:model[ _-])?parallel\w{0,3}\b|\b[tp]p ?=? ?[2-9]\b|\bmegatron\b|\bmoe\b"
)
"""Setups that need less, or that are cut in another way than along the ranks of the data."""
_FULL = lazy_re(r"(?i)\bout of (?:\w{2,8} )?memory\b|\booms?\b|\b(?:not|n't|cannot|can) fit\b")
_SIZE = lazy_re(
    r"(?i)(?<![\w.])(?P<n>\d{2,3}) ?-?(?:gb|gib|g)\b(?= ?(?:each|of (?:vram|memory|hbm)|gpus?|cards?|vram|hbm"
    r"|\)|,|\.|\?"
    r"|;|$|per\b|a\d|h\d))"
    r"|\b(?:[abhv]\d00|gpus?|cards?|vram)s? ?(?:\(|with |of |x )?(?P<n2>\d{2,3}) ?-?(?:gb|gib)\b"
)
_CARD = lazy_re(r"(?i)\b(?:rtx ?)?(?P<card>a6000|[34]090|5090|h100|l40s?|l4|t4|a40|a5000|h200|a10g?|2080 ?ti|p100)s?\b")
_CARDS = {
    "a6000": 48, "3090": 24, "4090": 24, "5090": 32, "h100": 80, "l40": 48, "l40s": 48, "l4": 24, "t4": 16, "a40": 48,
    "a5000": 24, "h200": 141, "a10": 24, "a10g": 24, "2080ti": 11, "p100": 16,
}  # fmt: skip
"""Memory of cards that are made in one size."""
_RANKS = lazy_re(
    r"(?i)(?<![\w.])(?P<n>" + NUMBER + r")(?:x| ?x|\u00d7)? ?(?:nvidia )?(?:rtx ?)?"
    r"(?:[abhv]\d00|a6000|a40|[345]090|l40s?|t4|a10g?|gpus?|cards?|devices|ranks)s?\b"
)
_NODES = lazy_re(r"(?i)(?<![\w.])(?:[2-9]|\d\d|two|three|four|eight) ?(?:x |nodes|machines|hosts)")
_STAGE = lazy_re(r"(?i)\bzero[- _]?(?:stage)?[- _=]{0,3}(?P<stage>[123])\b")
_FSDP = lazy_re(r"(?i)\bfsdp2?\b|\bfully[ _]sharded")
_BARE_BF16 = lazy_re(r"(?i)\bbf(?:loat)?16\b")
_MIXED = lazy_re(r"(?i)\bmixed\b|\bamp\b|\bautocast\b|\bfp16\b|\bfp32\b|\bdeepspeed\b|\bzero\b|\bzero-?[123]\b")
_DIVIDED = {0: 0, 1: 12, 2: 14, 3: 16}
"""ZeRO stage -> bytes of a parameter that the ranks divide among them."""


def explain(context: Context) -> Iterator[Explanation]:
    """Yield that the states of the model are larger than a device, by what is stated of both."""
    words = clip_lines(context.incident.prose.text)
    everything = f"{words}\n{clip_lines(context.incident.snapshot.output)}"
    if not words or not _FULL.search(everything) or not _ADAM.search(words) or _LESS.search(words):
        return
    sizes = {float(m["n"]) for m in _PARAMETERS.finditer(words)}
    memory = _memory(words)
    if len(sizes) != 1 or memory is None:
        return
    parameters = sizes.pop()
    counted = _RANKS.search(words)
    ranks = read_number(counted["n"]) if counted is not None else 1
    stage = _STAGE.search(words)
    level = int(stage["stage"]) if stage is not None else 3 if _FSDP.search(words) else 0
    if level and (counted is None or _NODES.search(words.replace(counted[0], ""))):
        return  # the number of ranks is not known
    whole = 8 if _BARE_BF16.search(words) and not (_MIXED.search(words) or level) else 16
    each = whole - min(_DIVIDED[level], whole) * (1 - 1 / ranks)
    need = parameters * each
    if need <= memory:
        return
    yield _of_sum(context, (parameters, each, need, memory), (ranks, level, whole), _first(words))


def _of_sum(
    context: Context, figures: tuple[float, float, float, float], how: tuple[int, int, int], place: tuple[int, str]
) -> Explanation:
    parameters, each, need, memory = figures
    ranks, level, whole = how
    symptom, cause = context.knowledge.causes[_CAUSE]
    sharded = parameters * whole / ranks
    under = f"ZeRO-{level}" if level in {1, 2} else "full sharding" if level else "DDP, which keeps all on each GPU"
    if level < 3 and ranks > 1 and sharded < memory * 0.9:
        fix = f"Shard them over the {ranks} GPUs (FSDP, ZeRO-3): {sharded:.0f} GB on each; activations come on top."
    else:
        fix = (
            f"Take at least {int(parameters * whole // (memory * 0.8)) + 1} GPUs with FSDP or ZeRO-3, offload the"
            " optimizer to the host, or train LoRA adapters or with an 8-bit Adam."
        )
    told = Reason(
        evidence="model-states-exceed-device",
        means=f"{parameters:g} billion parameters x {each:.3g} bytes = {need:.0f} GB, and a GPU has {memory:.0f} GB.",
        source="said",
        weight=2.0,
        line=place[0],
        words=place[1],
    )
    title = f"Weights, gradients and Adam's states take {need:.0f} GB on each GPU with {under}; it has {memory:.0f} GB"
    made = explanation_for(
        symptom.code,
        title,
        cause.why,
        fix,
        0.7,
        told,
        pattern=context.knowledge.patterns[cause.pattern].name,
        effort="rerun",
    )
    return msgspec.structs.replace(made, cause=_CAUSE)


def _memory(words: str) -> float | None:
    """Return the memory of one device in GB, if one size alone is stated."""
    stated = {float(m["n"] or m["n2"]) for m in _SIZE.finditer(words)} - {0.0}
    cards = {re.sub(r"\s", "", m["card"].lower()) for m in _CARD.finditer(words)}
    sizes = stated or {float(_CARDS[c]) for c in cards if c in _CARDS}
    return sizes.pop() if len(sizes) == 1 else None


def _first(words: str) -> tuple[int, str]:
    """Return the line and the words that state the number of parameters."""
    found = _PARAMETERS.search(words)
    at = found.start() if found is not None else 0
    line = words[words.rfind("\n", 0, at) + 1 :].split("\n", 1)[0]
    return words.count("\n", 0, at) + 1, plain(" ".join(line.split()))[:200]
