"""Signs of training progress: numbers of steps, speeds, losses, and bars that advance."""

from __future__ import annotations

import re

PROGRESS = re.compile(
    r"(?i)(?:(?<!\*\* )(?<!job )\b(?:step|iter(?:ation)?|epoch|batch|round|update)s?\b[ _:=#\[(]{0,12}\d{1,9}\b"
    r"|\b\d{1,3}%\||\d(?:it/s|s/it)\b|\bit[=:] ?\d|\bloss['\"]?[ :=]{1,4}-?\d"
    r"|\"key\": ?\"(?:epoch_st|block_st|eval_accuracy|tracked_stats|train_loss))"
)
"""Line that shows progress of training, not a step of Slurm: `*** STEP 1.0 ON node CANCELLED`."""
STEP = re.compile(
    r"(?i)(?:(?<!\*\* )(?<!job )\b(?:(?:global|micro|optimizer|train(?:ing|er)?)[_/])*"
    r"(?:step|iter(?:ation)?|batch|num_update)s?\b['\"]?"
    r"[ _:=#\[(]{0,12}"
    r"|\bit[=:] ?"
    r"|\bepoch ?(?:\(train\))?:? {0,3}\[?\d{1,6}\]?:? {0,8}\[ {0,8}|\btrain: \d{1,6} \[ {0,8}"
    r"|\d%\|[^|\r\n]{0,400}\| {0,8}|^ {0,8}(?=\d{1,9}/\d{1,9} \[[=>.]))(\d{1,9})\b(?!\.\d*[1-9])",
    re.ASCII,
)
"""Number of a training step, not of Slurm: after its name, in a progress bar, or in the brackets of an epoch."""
OTHER_BAR = re.compile(
    r"(?i)[^|\r\n]{0,120}(?:load|map|filter|download|fetch|generat|token|sav|pack|shard|resolv|evaluat|valid|predict|test"
    r"|prepar|process|captur|compil|convert|warm)[^|\r\n]{0,80}\d%\|",
    re.ASCII,
)
"""Progress bars of work before, between and after steps."""
_BAR = re.compile(r"\d%\|.{0,200}?\| {0,3}(\d{1,12}/\d{1,12}) \[|\b(\d{1,12})it \[")
"""Position of a progress bar: a bar that is closed after an exception is printed once more, unchanged."""


class ProgressBar:
    """State of a process that may print a progress bar."""

    def __init__(self) -> None:
        self.bar = ""
        """Position of the bar since the last exception."""


def has_advanced(s: ProgressBar, text: str) -> bool:
    """True if a line of progress is not a bar, or is a bar that advanced after the last exception."""
    found = _BAR.search(text[:400])
    if found is None:
        return True
    before, s.bar = s.bar, found[1] or found[2]
    return before not in ("", s.bar)
