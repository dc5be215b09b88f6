"""Shorter texts of whole parts: a sentence, a clause or an aside goes as a whole, and the figures stay."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SENTENCE_END = re.compile(r"[.!?](?= [A-Z`])")
_CLAUSE_END = re.compile(r";(?= )|,(?= (?:or|and|then) )|:(?= )")
_ITEM_END = re.compile(r"[;,](?= )")
_SAID_BESIDE = re.compile(r"`[^`]*`|\([^()]*:\d+\)|#\d+")
"""Code, places and numbers of calls: other parts of an answer show them too."""
_ITEM = r"(?:'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|[A-Za-z_]\w{0,60}(?:\.\w{1,60}){1,12})"
_QUOTED_LIST = re.compile(rf"(?<![\w.'\"])(?P<first>{_ITEM}), ?(?:{_ITEM}, ?)+(?P<last>{_ITEM})")
"""List of at least three names in quotes or with dots."""
_LEAST = 20
"""Least number of characters that say something."""


def first_statement(message: str) -> str:
    """Return the first line of a message, with the second one if the sentence continues there."""
    first, *rest = (line.strip() for line in message.strip().split("\n", 2)[:2])
    goes_on = bool(rest) and (first.endswith(":") or (rest[0][:1].islower() and first[-1:] not in ".!?;"))
    return f"{first} {rest[0]}".strip() if goes_on else first


def first_parts(text: str, most: int) -> str:
    """Return the first whole sentences of at most `most` characters, else the first one without asides, else clauses.

    Return the text itself if no part of it is short enough.
    """
    if len(text) <= most:
        return text
    ends = [m.end() for m in _SENTENCE_END.finditer(text)]
    if fits := [end for end in ends if end <= most]:
        return text[: fits[-1]]
    first = text[: ends[0]] if ends else text
    for start, end in reversed([*_asides(first)]):
        first = first[:start] + first[end:]
        if len(first) <= most:
            return first
    cut = max((at for at in _open_ends(first, _CLAUSE_END) if _LEAST <= at < most), default=0)
    return f"{first[:cut]}." if cut else text


def message_parts(text: str, most: int) -> str:
    """Return a message of at most `most` characters: without the sentences after its first, else without its middle."""
    text = _shorten_list(text, most)
    if len(text) <= most:
        return text
    ends = [m.end() for m in _SENTENCE_END.finditer(text[: most + 1])]
    if ends:
        return text[: ends[-1]]
    first = _SENTENCE_END.search(text)
    text = text[: first.end()] if first is not None else text
    for start, stop in reversed([*_asides(text)]):
        if not re.search(r"\d", text[start:stop]):
            text = text[:start] + text[stop:]
        if len(text) <= most:
            return text
    for at in reversed([at for at in _open_ends(text, _ITEM_END) if _LEAST <= at < most]):
        if text[at] == ";" or not re.search(r"\d", _SAID_BESIDE.sub("", text[at:])):
            return f"{text[:at]}."
    end = text[-(most // 3) :]
    if re.search(r"\d", end):  # figures decide
        end = text[-(most // 2 - 2) :]
    tail = end.partition(" ")[2] or end
    head = text[: most - len(tail) - 4]
    return f"{head.rpartition(' ')[0] or head} ... {tail}"


def _shorten_list(text: str, most: int) -> str:
    """Return a text of more than `most` characters with only the ends of its lists, or with none of their items."""
    ends = shorten_lists(text, most)
    return ends if len(ends) <= most else _QUOTED_LIST.sub("...", text)


def shorten_lists(text: str, most: int) -> str:
    """Return a message that is longer than `most` with only the ends of its lists; what it says comes after them."""
    return _QUOTED_LIST.sub(r"\g<first>, ..., \g<last>", text) if len(text) > most else text


def _asides(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of outer brackets with the blank before them, those of code excluded."""
    depth, begin, code = 0, 0, False
    for at, c in enumerate(text):
        code ^= c == "`"
        if c == "(" and not code:
            begin = at if not depth else begin
            depth += 1
        elif c == ")" and not code and depth:
            depth -= 1
            if not depth and text[begin - 1 : begin] == " ":
                yield begin - 1, at + 1


def _open_ends(text: str, ends: re.Pattern[str]) -> Iterator[int]:
    """Yield where a part ends outside code, quotes and brackets."""
    at, depth, code = 0, 0, False
    for found in ends.finditer(text):
        for c in text[at : found.start()]:
            code ^= c in '`"'
            depth += (c in "([{") - (c in ")]}" and depth > 0)
        at = found.start()
        if not code and not depth:
            yield at
