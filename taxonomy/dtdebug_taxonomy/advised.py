"""What the message of the failure itself says: what to do, or what is wrong with what was asked.

Only the exception that ended a rank counts, and only a sentence that is about this failure: hints that frameworks print
under every error are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.failure.attribution import outcome
from dtdebug_taxonomy.failure.events import last_exception
from dtdebug_taxonomy.failure.reading import read
from dtdebug_taxonomy.findings import plain
from dtdebug_taxonomy.snapshot import Snapshot, walk

_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=[A-Z`'\"(])|\n")
_DO = (
    r"set|use|using|install|upgrade|downgrade|update|increase|raise|decrease|reduce|lower|add|remove|pass|specify"
    r"|provide|enable|disable|call|rename|replace|switch|change|choose|select|delete|reinstall|rebuild|export|define"
    r"|make sure|ensure"
)
_DOING = (
    "setting|installing|upgrading|increasing|reducing|adding|passing|enabling|disabling|calling|switching|running|run"
)
_ORDERS = re.compile(
    r"(?i)(?:^|[,:;.(] ?|\bor )"
    r"(?:please |try |instead,? |consider |you (?:can|must|should|need to|have to|may want to) )"
    rf"(?:also |either |to |try |first )?(?:{_DO}|{_DOING})\b"
    rf"|^(?:{_DO})\b.{{3}}|\bplease (?:{_DO})\b|\bdid you (?:mean|forget)\b"
)
_FAULT = re.compile(
    r"(?i)\b(?:must|should|needs? to|has to|have to) (?:not )?(?:be|have|match|equal|divide|contain|fit)\b"
    r"|\b(?:is|are) (?:not supported|incompatible|only supported|mutually exclusive|not compatible|not divisible)\b"
    r"|\b(?:does|do) not support\b|\bcan ?not be (?:used|combined) (?:with|together)|\brequires? .{1,60}\bto be\b"
    r"|\bhas been (?:removed|renamed|replaced)\b|\bis larger than the max(?:imum)?\b|\b(?:exceeds|greater than) the\b"
    r"|\bcan ?not be (?:larger|greater|smaller|less|more) than\b"
)
_EVERYWHERE = re.compile(
    r"(?i)CUDA_LAUNCH_BLOCKING|TORCH_USE_CUDA_DSA|DEVICE_SIDE_ASSERT|NCCL_DEBUG|TORCHDYNAMO_VERBOSE|TORCH_LOGS"
    r"|suppress_errors|HYDRA_FULL_ERROR|SHOW_CPP_STACK|TORCH_DISTRIBUTED_DEBUG|TORCH_CPP_LOG|PYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF"
    r"|report (?:this|it|a bug)|open an issue|file an issue|ignore this|silence|this warning|future version|deprecat"
    r"|find_unused_parameters|set_detect_anomaly|for (?:more|further) (?:info|detail)|stack ?trace|OMP_NUM_THREADS"
    r"|for debugging|be aware|see the (?:doc|log)|check the log|weights_only|error_file|FI_LOG|add the following flag"
)
_SHAPES = re.compile(r"(?i)\bsizes? of tensor|\bshapes? (?:cannot|can't|do not|mismatch)|at non-singleton dimension")
"""What says that something does not fit, and neither why nor what to change."""
_LONGEST = 300
_LEAST = 12


class Advised(NamedTuple):
    """A sentence of the message."""

    words: str
    orders: bool
    """It says what to do; else what is wrong with what was asked."""
    line: int
    """Line of the output; 0 where there is none."""
    rank: int | None


def advised(snapshot: Snapshot) -> Advised | None:
    """The first sentence of the failure's message that says what to do, else one that says what is wrong."""
    fault: Advised | None = None
    for message, line, rank in _messages(snapshot):
        for sentence in _SENTENCE.split(message[:4_000]):
            words = " ".join(plain(sentence, _LONGEST).split())
            if len(words) < _LEAST or _EVERYWHERE.search(words):
                continue
            if _ORDERS.search(words):
                return Advised(words, True, line, rank)
            if fault is None and _FAULT.search(words) and not _SHAPES.search(words):
                fault = Advised(words, False, line, rank)
    return fault


def _messages(snapshot: Snapshot) -> Iterator[tuple[str, int, int | None]]:
    for info in walk(snapshot.exception):
        yield info.message, 0, info.rank
    if not snapshot.output:
        return
    ended = outcome(read(snapshot)).own
    rows = snapshot.output.split("\n") if not snapshot.first_lines else []
    for raised in ended[:4]:
        yield raised.message, raised.line, raised.rank
        for following in rows[raised.line : raised.line + 6]:  # a message may go on below its first line
            yield following, raised.line, raised.rank
    if not ended and (last := last_exception(snapshot.output)) is not None:
        yield last.message, snapshot.true_line(last.line), None
