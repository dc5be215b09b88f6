"""Measures how much of a log is understood: the share of its lines that training programs and their launchers print."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from dtdebug_taxonomy.logs.progress import PROGRESS

ENOUGH = 0.02
"""Share of lines of training below which nothing is said of what a log does not show."""
_LOOKED, _WIDTH = 400, 300
"""Maximum number of lines looked at in one log, and bytes of each."""
_WORDS = re.compile(
    r"(?:n|r|x|h)ccl\b|torch|cuda|deepspeed|megatron|horovod|tensorflow|\bjax\b|nvidia|:::MLL|transformers"
    r"|\bmca_|\bucx\b|\[rank ?\d|local.?rank|world.?size|master_(?:addr|port)|\bloss\b|learning.?rate|\blr\b|grad.?norm"
    r"|(?:samples|tokens|images|img|seq)\w{0,9}/s|\bepochs?\b|accuracy|perplexity|\bgpus?\b|optimizer|\bmodel\b|dataloader"
    r"|traceback \(most recent",
    re.IGNORECASE,
)

_DOCUMENT = re.compile(r"\s*[\[{]\s*(?:$|[\[{\"])")
"""Beginning of a document of JSON; `[rank0]:` and a time in brackets are none."""


class Share(NamedTuple):
    """Number of lines that were looked at, and of those among them that are of training."""

    lines: int = 0
    known: int = 0

    @property
    def is_enough(self) -> bool:
        """True if it is a log of training, in which a failure would have been recognised."""
        return self.known > 0 and self.known >= ENOUGH * self.lines

    def plus(self, other: Share) -> Share:
        """Return the sum of two."""
        return Share(self.lines + other.lines, self.known + other.known)

    @property
    def words(self) -> str:
        """The measure in words."""
        return f"{self.known:,} of {self.lines:,} line{'s' * (self.lines != 1)} looked at are of training"


def measure(lines: Sequence[str] | Sequence[bytes]) -> Share:
    """Return the share of some lines, a sample of them if they are many."""
    some = lines[:: 1 + len(lines) // _LOOKED]
    texts = [
        line.decode("utf-8", "replace") if isinstance(line, bytes) else line for line in (r[:_WIDTH] for r in some)
    ]
    texts = [text for text in texts if text.strip()]
    if texts and _is_document(lines):
        return Share(len(texts), 0)  # the words of data say nothing of what a program printed
    return Share(len(texts), sum(1 for text in texts if PROGRESS.search(text) or _WORDS.search(text)))


def _is_document(lines: Sequence[str] | Sequence[bytes]) -> bool:
    """True if the lines are parts of one document of JSON, as opposed to a log with a record on each line."""
    first = next((line for line in lines if line.strip()), "")
    text = first.decode("utf-8", "replace") if isinstance(first, bytes) else first
    if _DOCUMENT.match(text) is None:
        return False
    try:
        return not isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return True
