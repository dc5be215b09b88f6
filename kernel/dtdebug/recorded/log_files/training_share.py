"""Measures how much of a log is understood: the share of its lines that training programs and their launchers print."""

from __future__ import annotations

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
    return Share(len(texts), sum(1 for text in texts if PROGRESS.search(text) or _WORDS.search(text)))
