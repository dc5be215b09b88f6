"""The prefixes that a file uses and no list holds, learnt from the file itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice, pairwise

from dtdebug_taxonomy.failure.grammar import LONGEST, other_rank, without_prefixes

_TRACEBACK = re.compile(r'(?P<start>Traceback \(most recent call last\))|  File "[^"\n]{1,500}", line \d')
_NO_PREFIX = re.compile(
    r"(?:Original|Exception Group|traceback {0,8}:|Remote|[╭│─|+ ]{1,200})\s{0,3}$|.*\w(?:Error|Exception)\b"
)
_LABEL = re.compile(
    r"(?m)^([A-Za-z][\w.-]{0,80}(?:: ?| {1,20}\| ?)|[a-z0-9][a-z0-9.]{0,60}-[a-z0-9.-]{1,60} [a-z][a-z0-9-]{0,60} )"
    r"\[(?:rank|default)\d{1,7}\]:"
)
"""A host's name before the prefix of torch, or a pod's and its container's, as stern prints them."""
_LABEL_OF_JSON = re.compile(
    r"(?m)^((?:[a-z][a-z0-9.-]{0,60}\d(?:: ?| {1,20}\| ?)"
    r"|[a-z0-9][a-z0-9.]{0,60}-[a-z0-9.-]{1,60} [a-z][a-z0-9-]{0,60} ))"
    r'\{"[\w@.]{1,60}":'
)
"""The same before a record of JSON; a name with a number in it, for `ValueError: {"code": 5}` is no record."""
_BEGINS = re.compile(r"[\[(]|\b\d")
_NAMES_RANK = re.compile(
    r"(?i)(?P<before>[^\n]{0,80}?)(?<![a-z])rank[ _=:#-]{0,4}(?P<number>\d{1,7})(?P<more>[^\n\[\](){}<>:\t]{0,80}?)"
    r"(?:(?::\d{1,6})?[\])>}][:|]?|(?:\[[^\]\s]{1,60}\]){0,4}[:|]|\t| -(?= ))(?:[ \t]|$|(?=\[))"
)
"""What a line begins with, up to the end of the prefix in which the word rank stands."""
_FIELD = re.compile(
    r"(?i)[\w.=#-]{0,60}\d[\w.-]{0,60}|of|on|(?:local_|node_)?rank|local|world(?:_size)?|size|host|node|gpu|device|pid|process"
)
"""A word of what may stand there beside the rank."""
_SENTENCE = re.compile(r"[a-z]{2,} [a-z]{2,}|NCCL|\.cpp:|[\"']")
"""Not in a prefix."""
_NUMBERED = re.compile(
    r"(?P<label>[A-Za-z][\w.-]{0,100}:? |\d{1,3}(?:\.\d{1,3}){3} )?"
    r"(?:[\[(<](?P<closed>\d{1,5})[\])>]:?(?: |$)|(?P<open>\d{1,5})(?:: ?|\t))"
)
_FEW, _SEEN, _TEXTS, _MOST_RANKS = 6, 3_000, 4, 4_096
_SHAPES = 32
_ANCHORS = 4_000


def learn(text: str) -> re.Pattern[str] | None:
    """The prefixes that this text puts before its lines and that no list holds, or None.

    What stands before `Traceback` in one line and before `  File "` in another is a prefix: neither has any other text
    before it. So is what names a rank at the beginning of many lines whose texts differ, or numbers nearly all lines
    among each other. Digits vary, for they number processes or count time.
    """
    before: tuple[set[str], set[str]] = (set(), set())
    labels = {_shape(m[1]) for m in islice(_LABEL.finditer(text), _ANCHORS)} if "]:" in text else set()
    labels |= {_shape(m[1]) for m in islice(_LABEL_OF_JSON.finditer(text), _ANCHORS)} if ' {"' in text else set()
    labels |= _repeated(text)
    for number, found in enumerate(_TRACEBACK.finditer(text)):
        if number >= _ANCHORS or len(before[0]) > _SHAPES * 8:
            break
        begin = text.rfind("\n", 0, found.start()) + 1
        if found.start() - begin > LONGEST or found.start() == begin:
            continue
        left = _unknown(without_prefixes(text[begin : found.start()]).body)
        if left.strip() and len(left) <= 120 and not _NO_PREFIX.match(left):
            before[0 if found["start"] else 1].add(_shape(left))
    shapes = sorted((before[0] & before[1]) | labels, key=lambda s: (-len(s), s))[:_SHAPES]
    return re.compile("|".join(shapes)) if shapes else None


def _unknown(prefix: str) -> str:
    """The part of a prefix before those that are known."""
    for found in _BEGINS.finditer(prefix[:120]):
        if not without_prefixes(prefix[found.start() :]).body:
            return prefix[: found.start()]
    return prefix


def _shape(prefix: str) -> str:
    """A pattern for a prefix in which only digits vary."""
    return "".join(r"\d{1,20}" if part.isdigit() else re.escape(part) for part in re.split(r"(\d{1,20})", prefix))


def _repeated(text: str) -> set[str]:
    """What begins many lines and names a rank, or numbers those who print."""
    rows = text.split("\n", _SEEN)[:_SEEN]
    bodies = [body for row in rows if (body := without_prefixes(row[:LONGEST]).body).strip()]
    return _with_the_word(bodies) | _numbers(bodies)


def _with_the_word(bodies: Sequence[str]) -> set[str]:
    ranks: dict[str, list[tuple[int, str]]] = {}
    for body in bodies:
        if "rank" not in body[:120].lower() or (found := _NAMES_RANK.match(body)) is None:
            continue
        words = re.split(r"[ ,/|]{1,4}", found["more"].strip(" ,/|"))
        if (
            other_rank(found["before"])
            or _SENTENCE.search(found["before"])
            or not all(not word or _FIELD.fullmatch(word) for word in words)
        ):
            continue
        rest = re.sub(r"\d{1,20}", "0", body[found.end() : found.end() + 60])
        ranks.setdefault(_shape(found[0]), []).append((int(found["number"]), rest))
    return {
        shape
        for shape, seen in ranks.items()
        if len(seen) >= _FEW and len({rank for rank, _ in seen}) > 1 and len({rest for _, rest in seen}) >= _TEXTS
    }


def _numbers(bodies: Sequence[str]) -> set[str]:
    """Numbers from 0 up before nearly all lines, in any order: of those who print, not of steps or of a list's rows."""
    found = [_NUMBERED.match(body) for body in bodies]
    heads = [head for head in found if head is not None]
    numbers = [int(head["closed"] or head["open"]) for head in heads]
    used = {*numbers}
    falls = sum(before > after for before, after in pairwise(numbers))
    in_turn = sum((before + 1) % len(used) == after for before, after in pairwise(numbers)) if used else 0
    if len(heads) < max(4 * _FEW, 0.9 * len(bodies)) or not 1 < len(used) <= _MOST_RANKS:
        return set()
    if (
        used != {*range(len(used))}
        or falls * 10 < len(numbers)
        or in_turn * 10 > len(numbers) * 7
        or len(numbers) < len(used) * 3
    ):
        return set()
    return {_shape(head["label"] if head["open"] and head["label"] else head[0]) for head in heads}
