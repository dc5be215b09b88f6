"""The name that was meant by another."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches

_NAMES = re.compile(r"[A-Za-z0-9]{1,80}")
_SEPARATORS = re.compile(r"[\W_]")
_CLOSE = 0.7
_CLEARLY = 0.1
_BEGINNING = 3
"""Least number of letters of a word that stands for a longer one."""


def near_name(name: str, names: Iterable[str]) -> str:
    """Return the one name that is near another; empty if none is, or several are."""
    known = list(dict.fromkeys(n for n in names if n != name))
    same = [n for n in known if _SEPARATORS.sub("", n.lower()) == _SEPARATORS.sub("", name.lower())]
    words = {*_NAMES.findall(name.lower().replace("_", " "))}
    turned = [n for n in known if len(words) > 1 and words == {*_NAMES.findall(n.lower().replace("_", " "))}]
    wider = [n for n in known if len(words) > 1 and words < {*_NAMES.findall(n.lower().replace("_", " "))}]
    longer = [n for n in known if n.startswith((f"{name}_", f"{name}.")) or n.endswith(f"_{name}")]  # `model_state`
    shorter = [n for n in known if name.startswith((f"{n}_", f"{n}."))]  # and the other way round
    close = same or turned or wider or _nearest(name, known) or longer or shorter
    return close[0] if len(close) == 1 else ""


def akin_name(name: str, names: Iterable[str]) -> str:
    """Return the one name that abbreviates another, or is abbreviated: `lr` and `learning_rate`; empty otherwise."""
    found = [n for n in names if _abbreviates(name, n) or _abbreviates(n, name)]
    return found[0] if len(found) == 1 else ""


def _abbreviates(short: str, long: str) -> bool:
    """True for the first letters of the words of a name, or a name of which a word begins as one of the other does."""
    one, other = (_NAMES.findall(each.lower().replace("_", " ")) for each in (short, long))
    initials = "".join(word[0] for word in other)
    begun = any(len(word) >= _BEGINNING and each.startswith(word) for word in one for each in other)
    return begun or (len(initials) > 1 and short.lower() == initials)


def _nearest(name: str, known: list[str]) -> list[str]:
    """Return the names that are close to another: one, if it is clearly closer than the next."""
    close = get_close_matches(name, known, n=2, cutoff=_CLOSE)
    ratios = [SequenceMatcher(None, each, name).ratio() for each in close]
    return close[:1] if len(close) == 2 and ratios[0] - ratios[1] >= _CLEARLY else close
