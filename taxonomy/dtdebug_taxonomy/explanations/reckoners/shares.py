"""Samples over ranks and batches: ranks with different numbers of steps. Unit: samples, and steps of each rank.

Rule: ranks that make a different number of steps leave those with more of them waiting in the last collective (PyTorch,
"Distributed Training with Uneven Inputs Using the Join Context Manager",
https://docs.pytorch.org/tutorials/advanced/generic_join.html).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for, reason_of_figures
from dtdebug_taxonomy.model.rank_ranges import spell
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.number_words import NUMBER, read_number

_SAMPLES = (
    r"(?P<samples>\d{1,9}) (?:\w{2,12} ){0,2}?(?:files|samples|examples|images|rows"
    r"|records|sequences|sentences|items|pictures|videos|documents|prompts)"
)
_RANKS = rf"(?P<ranks>{NUMBER}) (?:\w{{2,10}} )?(?:ranks|gpus|processes|workers|cards|devices)"
_SPLIT = lazy_re(
    rf"(?i)\b{_SAMPLES}\b[^\n.;:]{{0,40}}?\b(?:on|over|across|between|among|with|for)\b[^\n.;:]{{0,12}}? ?{_RANKS}\b"
    rf"|\b(?:samples|num_samples|dataset(?: size)?"
    rf"|len\(dataset\)) ?[=:] ?(?P<samples2>\d{{1,9}})\b[^\n]{{0,80}}?\b(?:world_?size"
    rf"|ranks) ?[=:] ?(?P<ranks2>\d{{1,4}})\b"
)
_BATCH = lazy_re(r"(?i)\bbatch(?:[ _-]?size)?(?: of| ?[=:]| is)? ?(?P<batch>\d{1,6})\b|\bbatches of (?P<of>\d{1,6})\b")
_HANGS = frozenset({"D.2.1", "C.4", "B.2", "C.7", "D.1.1", "C.6"})
_RANK_LIST = lazy_re(r"\branks? \d{1,4}(?:(?:, and |, | and | & )\d{1,4}){0,15}\b")
_FEW = 4


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the uneven number of steps that a data set, the ranks and the batch size make."""
    if context.symptom not in _HANGS:
        return
    for clipped in (context.incident.printed, context.incident.said):
        split = _SPLIT.search(clipped)
        if split is None:
            continue
        batch = _BATCH.search(clipped)
        size = int(batch["batch"] or batch["of"]) if batch is not None else 1
        named = _RANK_LIST.search(clipped)
        waiting = frozenset(int(n) for n in re.findall(r"\d{1,4}", named[0])) if named is not None else frozenset()
        samples, ranks = split["samples"] or split["samples2"], split["ranks"] or split["ranks2"]
        told = divide(read_number(samples), read_number(ranks), size, waiting)
        if told is not None:
            shown = reason_of_figures(context.incident, "ranks-have-uneven-steps", split)
            yield _explanation(context.symptom, told, shown)
            return


def divide(
    samples: int, ranks: int, batch: int, waiting: frozenset[int] = frozenset()
) -> tuple[list[int], list[int]] | None:
    """Return samples and steps of each rank where steps differ, dealt out in turn or cut in blocks; else None.

    If it is known who waits, the split is preferred in which these have a step more.
    """
    if not (ranks > 1 and batch > 0 and ranks <= samples):
        return None
    block = math.ceil(samples / ranks)
    dealt = [(samples - rank + ranks - 1) // ranks for rank in range(ranks)]
    cut = [max(min(block, samples - rank * block), 0) for rank in range(ranks)]
    found = [(parts, [math.ceil(n / batch) for n in parts]) for parts in (dealt, cut)]
    uneven = [row for row in found if len({*row[1]}) > 1]
    fitting = (row for row in uneven if {n for n, steps in enumerate(row[1]) if steps == max(row[1])} == waiting)
    return next(fitting, uneven[0] if uneven else None)


def _explanation(symptom: str, told: tuple[list[int], list[int]], reason: Reason) -> Explanation:
    parts, steps = told
    most = max(steps)
    longer = [rank for rank, n in enumerate(steps) if n == most]
    who = f"{spell(tuple(longer), 8)} make{'' if len(longer) > 1 else 's'}"
    shares = f"{', '.join(map(str, parts))} samples" if len(parts) <= _FEW else f"{max(parts)} or {min(parts)} samples"
    return explanation_for(
        symptom,
        f"The ranks have unequal numbers of steps: {shares}, so {who} {most} steps and the others {min(steps)}",
        "Whoever has a step more waits in its collective for ranks that have left the loop.",
        "Let all ranks make as many steps: DistributedSampler, which repeats some samples, drop_last over the global"
        " batch, or a data set that is a multiple of ranks x batch; else `with Join([model]):`.",
        0.5,
        reason,
        pattern="fix batch size/data partition",
    )
