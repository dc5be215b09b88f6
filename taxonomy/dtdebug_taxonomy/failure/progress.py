"""What shows that a training goes on: numbers of steps, speeds, losses, and bars that advance."""

from __future__ import annotations

import re

PROGRESS = re.compile(
    r"(?i)(?:\b(?:step|iter(?:ation)?|epoch|batch|round|update)s?\b[ _:=#\[(]{0,12}\d{1,9}\b|\b\d{1,3}%\|"
    r"|\d(?:it/s|s/it)\b|\bit[=:] ?\d|\bloss['\"]?[ :=]{1,4}-?\d)"
)
"""What shows that training goes on."""
_BAR = re.compile(r"\d%\|.{0,200}?\| {0,3}(\d{1,12}/\d{1,12}) \[|\b(\d{1,12})it \[")
"""How far a progress bar is: one that is closed after an exception is printed once more as it was."""


class Barred:
    """Who may print a progress bar."""

    def __init__(self) -> None:
        self.bar = ""
        """How far it was, since the last exception."""


def advanced(s: Barred, text: str) -> bool:
    """Whether a line that shows progress is more than a bar as it stood when the last exception came."""
    found = _BAR.search(text[:400])
    if found is None:
        return True
    before, s.bar = s.bar, found[1] or found[2]
    return before not in ("", s.bar)
