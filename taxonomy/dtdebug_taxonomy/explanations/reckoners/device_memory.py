"""Amounts in a report of PyTorch's allocator: who holds what of the device. Unit: bytes of one device.

Rules: what is neither free nor this process's belongs to other processes, for the report takes total and free from the
driver, for the whole device; what is reserved and not allocated is free within this process, in pieces (PyTorch,
https://github.com/pytorch/pytorch/blob/main/c10/cuda/CUDACachingAllocator.cpp).
"""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, explanation_for, reason_of_figures
from dtdebug_taxonomy.model.sizes import spell_bytes
from dtdebug_taxonomy.text.allocator_report import Amounts, find_reports
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.pattern_matcher import clip_lines

_GIB = 1 << 30
_LEAST, _SHARE = 3 * _GIB, 0.2
"""Bytes, and share of the device, above which what is left over is no context or buffer of this process's libraries."""
_PIECES = 0.05
"""Share of the device from which unused pieces are worth joining."""
_VISIBLE = lazy_re(r"(?<![A-Z_])CUDA_VISIBLE_DEVICES['\"\]]{0,2} ?[:=] ?['\"]?(?P<list>\d{1,2}(?:, ?\d{1,2}){0,31})\b")


def explain(context: Context) -> Iterator[Explanation]:
    """Yield that other processes fill the device, or that what is free lies in pieces, by the printed amounts."""
    for text in (context.incident.printed, context.incident.said):
        for amounts, found in find_reports(text):
            told = _of_others(context, amounts) or _of_pieces(amounts)
            if told is not None:
                title, why, fix = told
                shown = reason_of_figures(context.incident, "amounts-of-an-allocator", found)
                yield explanation_for(context.symptom, title, why, fix, 0.5, shown)
                return


def _of_others(context: Context, a: Amounts) -> tuple[str, str, str] | None:
    if a.others < max(_LEAST, _SHARE * a.total):
        return None
    snapshot = context.incident.snapshot
    lists = {m["list"] for m in _VISIBLE.finditer(clip_lines(f"{snapshot.situation}\n{snapshot.output}"))}
    devices = lists.pop().replace(" ", "").split(",") if len(lists) == 1 else []
    number = f", which is number {devices[a.gpu]} of the host" if a.gpu < len(devices) != 1 else ""
    return (
        (
            f"Other processes hold about {a.others / _GIB:.0f} of the {a.total / _GIB:.0f} GiB of GPU {a.gpu}{number},"
            f" and this one {spell_bytes(a.own)}"
        ),
        (
            "What is neither free nor this process's is another one's: another job, what is left of an earlier run, or"
            " ranks of this job that use the same GPU."
        ),
        (
            "`nvidia-smi` names them. Another job or a leftover: end it, or take another GPU. Ranks of this job:"
            " torch.cuda.set_device(local_rank) before anything is put on a GPU, and load with map_location."
        ),
    )


def _of_pieces(a: Amounts) -> tuple[str, str, str] | None:
    if a.idle < max(a.asked, _PIECES * a.total):
        return None
    idle, asked = spell_bytes(a.idle), spell_bytes(a.asked)
    return (
        f"{idle} are reserved and unused, but in no piece as large as the {asked} asked for",
        "The allocator keeps what was freed in blocks of other sizes: memory is fragmented, not used up.",
        (
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in the environment, before a tensor is on the GPU;"
            " sizes that vary less from step to step (padding, buckets) fragment less."
        ),
    )
