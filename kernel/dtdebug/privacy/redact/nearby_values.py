"""Finds values close to the name of a secret without an assignment: in a sentence, a table, a list of words.

Since nothing marks the beginning of such a value, only strings that are not written by hand count.
"""

from __future__ import annotations

from dtdebug.privacy.redact.randomness import is_made
from dtdebug.privacy.redact.secret_names import secret, words
from dtdebug.privacy.redact.value_end import is_harmless
from dtdebug_taxonomy.text.lazy_re import lazy_re

_REACH, _LONGEST = 48, 4096
"""Maximum number of characters from the name to the value, and of the value."""
_ESCAPED = lazy_re(r"%[0-9A-F]{2}|\\[nrt](?![\w/])")
_RUN = lazy_re(r"[A-Za-z0-9+/_.~][A-Za-z0-9+/=_.~-]*+")
_APART = lazy_re(r"\n[^\n]*\n|[.!?;][ \t\n]|\Z[\s\S]")
"""Separator of unrelated items."""
_CHOSEN = lazy_re(
    r"(?=.{0,64}[A-Za-z])(?:(?=.{0,64}\d.{0,64}\d)|(?=.{0,64}[!#$%&*^])"
    r"|(?=\S{0,64}[a-z])(?=\S{0,64}[A-Z])(?=\S{0,64}\d))[A-Za-z!#$%&*^][\w!#$%&*^+-]{7,63}(?!\S)"
)
"""Password as people choose it: letters, with digits, symbols or a mixture that words don't contain."""
_TO_IT = lazy_re(r"(?i)(?:[ \t]{1,3}(?:for|of)[ \t]{1,3}[^\s.:]{1,40})?(?:[ \t]{1,3}(?:is|was))?[ \t]{1,3}(?=\S)")
_FOR = lazy_re(
    r"(?i)[ \t]{1,3}(?:for|of)[ \t]{1,3}[\w@-]{1,40}[ \t]?[:=][ \t]{0,3}"
    r"(?P<s>(?=\S{0,64}\d)(?=\S{0,64}[A-Za-z])[^\s\"'()\[\]{}/]{6,64})"
)
_TYPED = lazy_re(
    r"(?i)[ \t]{1,3}(?:for|of)[ \t]{1,3}(?:[\w@.-]{1,40}[ \t]{1,3}){0,3}"
    r"(?:[\"'`][^\"'`\n]{1,160}[\"'`]|[\w@./-]{1,80})[ \t]?:[ \t]{0,3}"
    r"(?P<s>(?=\S{0,64}[A-Za-z])(?=\S{0,64}[\d!#$%&*^-])[^\s\"'()\[\]{}/]{6,64})[ \t]*+(?![^\r\n])"
)
"""Prompt with what was typed, to the end of its line: `Enter passphrase for key '/home/mia/.ssh/id': ...`."""
_PASSWORD = lazy_re(r"(?i)password|passwd|passphrase")
_MIXED = lazy_re(r"(?=.{0,64}[a-z])(?=.{0,64}[A-Z])(?=.{0,64}\d)[!-~]{8,64}\Z")
_WORD = lazy_re(r"[A-Za-z+,']{1,32}\Z")
_BEFORE = lazy_re(r"([A-Za-z][\w-]{0,31})(?:[ ]|[\"'], [\"'])\Z")
_LEAST = 10


def value(text: str, begin: int, end: int) -> tuple[int, int] | None:
    """Return the span of the value that belongs to the name at this place, if there is one."""
    kind = _kind(text, begin, text[begin:end])
    if kind not in ("strong", "token", "key"):
        return None
    if chosen := _chosen_password(text, begin, end):
        return chosen
    near = _ESCAPED.sub(lambda found: " " * len(found[0]), text[end : end + _REACH])
    near += text[end + _REACH : end + _REACH + _LONGEST]
    behind, last = 0, ""
    for run in _RUN.finditer(near):
        if run.start() > _REACH or _APART.search(near, behind, run.start()):
            return None
        said, start = run[0].rstrip(".,"), end + run.start()
        if said.lower() in words("between") or (kind == "strong" and _WORD.match(run[0])):
            behind, last = run.end(), said.lower()
            continue
        if last in words("no_key") or last in words("hashed"):
            return None
        if len(said) < _LEAST or is_harmless(said, text, start) or (kind == "key" and said.isdigit()):
            return None
        return (start, start + len(said)) if is_made(said) else None
    return None


def is_a_secret(said: str, *, chosen: bool = False) -> bool:
    """True if it isn't a word, name or number; if it may be chosen by hand, letters with digits suffice."""
    if chosen:
        return len(said) >= 6 and any(map(str.isdigit, said)) and any(map(str.isalpha, said))
    return len(said) >= _LEAST - 2 and (is_made(said) or _MIXED.match(said) is not None)


def _chosen_password(text: str, begin: int, end: int) -> tuple[int, int] | None:
    """Return the span of a password chosen by a person, directly after its name."""
    if not _PASSWORD.search(text, begin, end) or secret(text[begin:end]) != "strong":
        return None
    if (told := _FOR.match(text, end) or _TYPED.match(text, end)) and not is_harmless(told["s"], text, told.start("s")):
        return told.span("s")
    to_it = _TO_IT.match(text, end)
    found = _CHOSEN.match(text, to_it.end()) if to_it else None
    return found.span() if found and not is_harmless(found[0], text, found.start()) else None


def _kind(text: str, begin: int, name: str) -> str:
    """Return the kind, as `secret`, of a name that may follow another word: `API key`, `pad token`."""
    before = _BEFORE.search(text, max(0, begin - 36), begin)
    if before is None or name.lower() not in ("key", "token"):
        return secret(name)
    if before[1].lower() in words("about_nothing"):
        return secret(name)
    return secret(f"{before[1]}_{name}")
