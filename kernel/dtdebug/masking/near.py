"""Values that stand close to the name of a secret though nothing assigns them: in a sentence, a table, a list of words.

As nothing says where such a value begins, only what nobody writes by hand is one.
"""

from __future__ import annotations

import re

from dtdebug.masking.kinds import secret, words
from dtdebug.masking.noise import is_made
from dtdebug.masking.values import is_harmless

_REACH, _LONGEST = 48, 4096
"""Characters from the name to the value, and of the value."""
_ESCAPED = re.compile(r"%[0-9A-F]{2}|\\[nrt](?![\w/])")
_RUN = re.compile(r"[A-Za-z0-9+/_.~][A-Za-z0-9+/=_.~-]*+")
_APART = re.compile(r"\n[^\n]*\n|[.!?;][ \t\n]|\Z[\s\S]")
"""What lies between two things that have nothing to do with each other."""
_BEFORE = re.compile(r"([A-Za-z][\w-]{0,31})(?:[ ]|[\"'], [\"'])\Z")
_LEAST = 10


def value(text: str, begin: int, end: int) -> tuple[int, int] | None:
    """Where the value of the name at that place stands, if there is one."""
    if _kind(text, begin, text[begin:end]) not in ("strong", "token", "key"):
        return None
    near = _ESCAPED.sub(lambda found: " " * len(found[0]), text[end : end + _REACH])
    near += text[end + _REACH : end + _REACH + _LONGEST]
    behind = 0
    for run in _RUN.finditer(near):
        if run.start() > _REACH or _APART.search(near, behind, run.start()):
            return None
        said, start = run[0].rstrip(".,"), end + run.start()
        if said.lower() in words("between"):
            behind = run.end()
            continue
        if len(said) < _LEAST or is_harmless(said, text, start):
            return None
        return (start, start + len(said)) if is_made(said) else None
    return None


def _kind(text: str, begin: int, name: str) -> str:
    """As `secret`, of a name that may have a word before it: `API key`, `pad token`."""
    before = _BEFORE.search(text, max(0, begin - 36), begin)
    if before is None or name.lower() not in ("key", "token"):
        return secret(name)
    if before[1].lower() in words("about_nothing"):
        return secret(name)
    return secret(f"{before[1]}_{name}")
