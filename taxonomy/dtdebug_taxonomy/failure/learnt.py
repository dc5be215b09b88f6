"""The prefixes that a file uses and no list holds, learnt from the file itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice, pairwise

from dtdebug_taxonomy.failure.grammar import LONGEST, digits_alike, other_rank, without_prefixes

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
_NUMBER = re.compile(
    r"(?<![\d.,+])(?P<number>\d{1,5})(?![\d.])"
    r"(?=(?P<size>(?: of |[/:])(?:world(?:_size)?[ =:]{0,2})?\d{1,5})?)(?=(?P<after>[\])>}|:@/\t]|[ ][|>)o]|))"
)
_LABEL_OF_NUMBER = re.compile(r"(?P<word>[A-Za-z][\w.-]{0,80}(?<=[A-Za-z_]))?[ =:#-]{0,2}$")
_WHO = re.compile(r"(?i)(?:rank|r|p|pe|proc|process|task|trainer)_?")
"""What may stand before the number of who prints, beside a host; other words count nodes, devices, steps or places."""
_DIGITS = re.compile(r"\d{1,20}")
_SEPARATOR = re.compile(r"[ \t]?(?:[|:>-]{1,3}[ \t])?")
_BRACKETS = {"[": 1, "(": 1, "{": 1, "]": -1, ")": -1, "}": -1}
_FEW, _SEEN, _TEXTS, _MOST_RANKS = 6, 3_000, 4, 4_096
_SHAPES, _SAMPLE = 32, 200
_HEAD = 120
"""Characters in which a prefix ends that numbers lines."""
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


def _shape(prefix: str, number: re.Match[str] | None = None) -> str:
    """A pattern for a prefix in which only digits vary; `number` is that of who prints."""
    if number is not None:
        before, after = prefix[: number.start("number")], prefix[number.end("number") :]
        return rf"{_shape(before)}(?P<task>\d{{1,7}}){_shape(after)}"
    return "".join(r"\d{1,20}" if part.isdigit() else re.escape(part) for part in re.split(r"(\d{1,20})", prefix))


def _repeated(text: str) -> set[str]:
    """What begins many lines and names a rank, or numbers those who print."""
    rows = text.split("\n")
    rows = rows if len(rows) <= _SEEN else [*rows[: _SEEN // 2], *rows[-_SEEN // 2 :]]
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
    some = bodies[:: max(len(bodies) // _SAMPLE, 1)]
    if not any("0" in shape and 2 * len(heads) > len(some) for shape, heads in _cuts(some).items()):
        return set()
    cuts, most = _cuts(bodies), max(4 * _FEW, 0.9 * len(bodies))
    for shape in sorted((shape for shape, heads in cuts.items() if "0" in shape and len(heads) >= most), key=len):
        if number := _who_prints(cuts[shape]):
            return {_shape(cuts[shape][0][0], number)}
    return set()


def _cuts(bodies: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """(prefix, text after it) by the shape that the prefix has."""
    found: dict[str, list[tuple[str, str]]] = {}
    for body in bodies:
        for end in _ends(digits_alike(body[:_HEAD])):
            found.setdefault(_digits_out(body[:end]), []).append((body[:end], _digits_out(body[end : end + 60])))
    return found


def _digits_out(text: str) -> str:
    return _DIGITS.sub("0", text)


@lru_cache(maxsize=4096)
def _ends(alike: bytes) -> list[int]:
    """Where a prefix may end: after a word, or a bracket that is closed, and what separates it from the text."""
    body = alike.decode(errors="surrogatepass")
    found: list[int] = []
    depth = 0
    for at, sign in enumerate(body[:80], 1):
        depth += _BRACKETS.get(sign, 0)
        if depth < 0 or len(found) == 5:
            break
        if not depth and (sign in "])>:|" or body[at : at + 1].isspace()):
            end = _SEPARATOR.match(body, at).end()  # type: ignore[union-attr]  # matches anything
            if end not in found:
                found.append(end)
    return found


def _who_prints(heads: Sequence[tuple[str, str]]) -> re.Match[str] | None:
    """Which of the numbers in prefixes of one shape is that of who prints: as it stands in the first of them."""
    rows = [[*_NUMBER.finditer(head)] for head, _ in heads]
    found: list[tuple[re.Match[str], list[str]]] = []
    for column in zip(*rows, strict=False):
        if _may_name(column[0]) and _any_order(column):
            texts: dict[str, set[str]] = {}
            for number, (_, text) in zip(column, heads, strict=True):
                texts.setdefault(number["number"], set()).add(text)
            if len(set().union(*texts.values())) >= _TEXTS and 2 * sum(len(t) > 1 for t in texts.values()) > len(texts):
                found.append((column[0], [number["number"] for number in column]))
    return next((first for first, own in found if all(_decides(own, other) for _, other in found)), None)


def _may_name(number: re.Match[str]) -> bool:
    before = number.string[: number.start()]
    label = _LABEL_OF_NUMBER.search(before)
    word = (label["word"] or "") if label is not None else ""
    is_host = before.endswith(" ") and any(sign.isdigit() or sign == "." for sign in word)
    return bool(number["after"]) if not word or is_host else bool(_WHO.fullmatch(word))


def _decides(own: Sequence[str], other: Sequence[str]) -> bool:
    """Whether each number goes with one other: that of a rank with its node, not that of a node with its ranks."""
    return len({*zip(own, other, strict=True)}) == len({*own})


def _any_order(column: Sequence[re.Match[str]]) -> bool:
    numbers = [int(found["number"]) for found in column]
    used = {*numbers}
    if not 1 < len(used) <= _MOST_RANKS or used != {*range(len(used))} or len(numbers) < len(used) * 3:
        return False
    sizes = {int(re.sub(r"\D", "", found["size"])) for found in column if found["size"]}
    changes = [(before, after) for before, after in pairwise(numbers) if before != after]  # one may print many lines
    falls = sum(before > after for before, after in changes)
    in_turn = sum((before + 1) % len(used) == after for before, after in changes)
    same_size = sizes <= {len(used)} or (column[0]["size"] or "").startswith(":")
    often = len(changes) >= 2 * len(used)
    turns = len(changes) if len(used) > 2 else len(numbers)  # of two each change is in turn
    return same_size and often and falls * 10 >= len(changes) and in_turn * 10 <= turns * 7
