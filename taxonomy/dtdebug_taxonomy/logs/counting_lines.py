"""Recognises progress in lines that name no step: lines of one form, printed again and again, whose number grows."""

from __future__ import annotations

import re
from typing import NamedTuple

from dtdebug_taxonomy.logs.standstill import states_standstill

_NUMBER = re.compile(r"\d{1,12}(?:[.,]\d{1,12})?(?:[eE][+-]?\d{1,3})?")
_USUAL = 6
"""Lines of one form from which it is known as one that the program prints over and over."""
_FORMS, _LONGEST, _NUMBERS = 32, 200, 12
"""Maximum number of forms that are remembered of a printer, of characters of a line, and of numbers in it."""


class _Form(NamedTuple):
    seen: int
    counts: tuple[float, ...]
    grows: frozenset[int]
    """Positions of the whole numbers that have grown from each line to the next."""


class CountingLines:
    """The forms of the lines that one process prints."""

    def __init__(self) -> None:
        self._forms: dict[str, _Form] = {}

    def advances(self, body: str) -> bool:
        """True if a line is of a usual form and counts on: a count, and a measure with decimals, as of a loss."""
        if len(body) > _LONGEST or "." not in body:
            return False
        texts = _NUMBER.findall(body)
        if not 1 < len(texts) <= _NUMBERS or all(text.isdecimal() for text in texts):
            return False
        form = " ".join(_NUMBER.sub("0", body).split())
        numbers = tuple(float(text.replace(",", ".")) for text in texts)
        before = self._forms.get(form)
        if before is None or len(before.counts) != len(numbers):
            if len(self._forms) < _FORMS:
                whole = frozenset(at for at, text in enumerate(texts) if text.isdecimal())
                self._forms[form] = _Form(1, numbers, whole)
            return False
        grows = frozenset(at for at in before.grows if numbers[at] > before.counts[at])
        self._forms[form] = _Form(before.seen + 1, numbers, grows)
        return bool(grows) and before.seen >= _USUAL and not states_standstill(body)
