"""Finds private keys: whole, truncated at either end, and with a prefix on each line, as launchers print them."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug.privacy.redact.randomness import is_opaque
from dtdebug_taxonomy.text.lazy_re import lazy_re

_BEGIN = lazy_re(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = lazy_re(r"-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_WHOLE = lazy_re(rf"{_BEGIN.pattern}[^-]*(?:-(?!----)[^-]*)*{_END.pattern}")
_CUT = lazy_re(rf"{_BEGIN.pattern}(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{{16,}})*")
"""Key without its end, as far as it looks like a key."""
_LINE = lazy_re(r"(?:[^\n\\]|\\(?!\\{0,3}[nr]))+")
"""Line, including one of a string shown with its escapes."""
_BODY = lazy_re(r"(?<![A-Za-z0-9+/])(?P<key>[A-Za-z0-9+/]{40,512}+={0,2})[\"'+,; \t\r]{0,8}\Z")
_LAST = lazy_re(r"(?<![A-Za-z0-9+/])(?P<key>[A-Za-z0-9+/]{1,76}+={0,2})[\"'+,; \t\r]{0,8}\Z")
_HEADER = lazy_re(
    r"(?:Proc-Type|DEK-Info|Version|Comment|Hash): [^\n]{1,100}\Z|(?:(?<=\s)|(?<=\\[nr]))[\"'+ \t]{0,8}\Z"
)
_ENCODED = ("UFJJVkFURSBLRV", "BSSVZBVEUgS0VZ", "QUklWQVRFIEtFW")
"""PRIVATE KEY in base 64, at each of the three alignments."""
_RUN = lazy_re(r"[A-Za-z0-9+/]{40,}+={0,2}")
_MOST, _LONGEST = 200, 700
"""Maximum number of lines of a key, and of characters of a line."""


def spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of private keys."""
    found: list[tuple[int, int]] = []
    if "PRIVATE KEY-----" in text or "PRIVATE KEY BLOCK-----" in text:
        found += (whole.span() for whole in _WHOLE.finditer(text))
        ends = {end for _, end in found}
        begins = {begin for begin, _ in found}
        found += (cut.span() for cut in _CUT.finditer(text) if cut.start() not in begins)
        lines = [m.span() for m in _LINE.finditer(text)]
        for n, line in enumerate(lines):
            begin, end = _BEGIN.search(text, *line), _END.search(text, *line)
            if begin and begin.start() not in begins:
                found += _behind(text, lines[n + 1 : n + _MOST])
            if end and end.end() not in ends:
                found.append(end.span())
                found += _before(text, lines[max(0, n - _MOST) : n])
    if any(said in text for said in _ENCODED):
        found += (m.span() for m in _RUN.finditer(text) if any(said in m[0] for said in _ENCODED))
    return found


def _behind(text: str, lines: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the key in the lines after its first; the rest of each line is a launcher's prefix."""
    inside, headers = False, 5
    for begin, end in lines:
        key = _BODY.search(text, max(begin, end - _LONGEST), end)
        if key is None and inside:
            key = _LAST.search(text, max(begin, end - _LONGEST), end)
            if key and (key["key"].endswith("=") or is_opaque(key["key"])):
                yield key.span("key")
            return
        if key:
            inside = True
            yield key.span("key")
        else:
            headers -= 1
            if not headers or not _HEADER.search(text, max(begin, end - _LONGEST), end):
                return


def _before(text: str, lines: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the key in the lines before its last, from the end."""
    shape = _LAST
    for begin, end in reversed(lines):
        key = shape.search(text, max(begin, end - _LONGEST), end)
        if key is None:
            return
        yield key.span("key")
        shape = _BODY
