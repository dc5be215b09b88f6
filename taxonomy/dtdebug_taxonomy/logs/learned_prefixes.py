"""Learns prefixes that no list contains from the file that uses them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice, pairwise

from dtdebug_taxonomy.logs.prefixes import LONGEST, digits_alike, other_rank, without_prefixes

_TRACEBACK = re.compile(r'(?P<start>Traceback \(most recent call last\))|  File "[^"\n]{1,500}", line \d')
_NO_PREFIX = re.compile(
    r"(?:Original|Exception Group|traceback {0,8}:|Remote|[╭│─|+ ]{1,200})\s{0,3}$|.*\w(?:Error|Exception)\b"
)
_LABEL = re.compile(
    r"(?m)^([A-Za-z][\w.-]{0,80}(?:: ?| {1,20}\| ?)|[a-z0-9][a-z0-9.]{0,60}-[a-z0-9.-]{1,60} [a-z][a-z0-9-]{0,60} )"
    r"\[(?:rank|default)\d{1,7}\]:"
)
"""Host name before torch's prefix, or names of pod and container, as stern prints them."""
_LABEL_OF_JSON = re.compile(
    r"(?m)^((?:[a-z][a-z0-9.-]{0,60}\d(?:: ?| {1,20}\| ?)"
    r"|[a-z0-9][a-z0-9.]{0,60}-[a-z0-9.-]{1,60} [a-z][a-z0-9-]{0,60} ))"
    r'\{"[\w@.]{1,60}":'
)
"""The same before a JSON record; the name has a digit, because `ValueError: {"code": 5}` is not a record."""
_BEGINS = re.compile(r"[\[(]|(?<![\w.-])\d")
"""Beginning of a known prefix; the number of `gpu-a100-07: ` is part of the host's name."""
_NAMES_RANK = re.compile(
    r"(?i)(?P<before>[^\n]{0,80}?)(?<![a-z])rank[ _=:#-]{0,4}(?P<number>\d{1,7})(?P<more>[^\n\[\](){}<>:\t]{0,80}?)"
    r"(?:(?::\d{1,6})?[\])>}][:|]?|(?:\[[^\]\s]{1,60}\]){0,4}[:|]|\t| -(?= ))(?:[ \t]|$|(?=\[))"
)
"""Beginning of a line, up to the end of the prefix that contains the word rank."""
_FIELD = re.compile(
    r"(?i)[\w.=#-]{0,60}\d[\w.-]{0,60}|of|on|(?:local_|node_)?rank|local|world(?:_size)?|size|host|node|gpu|device|pid|process"
)
"""Word that may appear next to the rank."""
_SENTENCE = re.compile(r"[a-z]{2,} [a-z]{2,}|NCCL|\.cpp:|[\"']")
"""Text that never occurs in a prefix."""
_NUMBER = re.compile(
    r"(?<![\d.,+])(?P<number>\d{1,5})(?![\d.])"
    r"(?=(?P<size>(?: of |[/:])(?:world(?:_size)?[ =:]{0,2})?\d{1,5})?)(?=(?P<after>[\])>}|:@/\t]|[ ][|>)o]|))"
)
_LABEL_OF_NUMBER = re.compile(r"(?P<word>[A-Za-z][\w.-]{0,80}(?<=[A-Za-z_]))?[ =:#-]{0,2}$")
_WHO = re.compile(r"(?i)(?:rank|r|p|pe|proc|process|task|trainer)_?")
"""Words that may precede the number of a process, besides a host; others count nodes, devices, steps or positions."""
_CLOCK = re.compile(r"\d{1,2}:\d\d(?::\d\d)?")
_DIGITS = re.compile(r"\d{1,20}")
_SEPARATOR = re.compile(r"[ \t]?(?:[|:>-]{1,3}[ \t])?")
_BRACKETS = {"[": 1, "(": 1, "{": 1, "]": -1, ")": -1, "}": -1}
_FEW, _SEEN, _TEXTS, _MOST_RANKS = 6, 3_000, 4, 4_096
_SHAPES, _SAMPLE = 32, 200
_HEAD = 120
"""Maximum length, in characters, of a prefix that numbers lines."""
_ANCHORS = 4_000


def learn(text: str) -> re.Pattern[str] | None:
    """Return a pattern for the prefixes of this text that no list contains, or None.

    Text before `Traceback` in one line and before `  File "` in another is a prefix: nothing else precedes both. So is
    text that names a rank at the beginning of many lines whose texts differ, or interleaved numbers before nearly all
    lines. Digits vary, since they number processes or count time.
    """
    before: tuple[set[str], set[str]] = (set(), set())
    labels = {_shape(m[1]) for m in islice(_LABEL.finditer(text), _ANCHORS)} if "]:" in text else set()
    labels |= {_shape(m[1]) for m in islice(_LABEL_OF_JSON.finditer(text), _ANCHORS)} if ' {"' in text else set()
    labels |= _repeated_prefixes(text)
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
    """Return the part of a prefix before the known prefixes."""
    for found in _BEGINS.finditer(prefix[:120]):
        if not without_prefixes(prefix[found.start() :]).body:
            return prefix[: found.start()]
    return prefix


def _shape(prefix: str, number: re.Match[str] | None = None) -> str:
    """Return a pattern for a prefix in which only digits vary; `number` is the number of the printing process."""
    if number is not None:
        before, after = prefix[: number.start("number")], prefix[number.end("number") :]
        return rf"{_shape(before)}(?P<task>\d{{1,7}}){_shape(after)}"
    return "".join(r"\d{1,20}" if part.isdigit() else re.escape(part) for part in re.split(r"(\d{1,20})", prefix))


def _repeated_prefixes(text: str) -> set[str]:
    """Return patterns of prefixes that begin many lines and name a rank, or number the printing processes."""
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
    """Return the pattern of numbers from 0 before nearly all lines, in any order: of processes, not steps or rows."""
    some = bodies[:: max(len(bodies) // _SAMPLE, 1)]
    if not any("0" in shape and 2 * len(heads) > len(some) for shape, heads in _cuts(some).items()):
        return set()
    cuts, most = _cuts(bodies), max(4 * _FEW, 0.9 * len(bodies))
    for shape in sorted((shape for shape, heads in cuts.items() if "0" in shape and len(heads) >= most), key=len):
        if number := _who_prints(cuts[shape]):
            return {_shape(cuts[shape][0][0], number)}
    return set()


def _cuts(bodies: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Return (prefix, text after it) by the shape of the prefix."""
    found: dict[str, list[tuple[str, str]]] = {}
    for body in bodies:
        for end in _ends(digits_alike(body[:_HEAD])):
            found.setdefault(_digits_out(body[:end]), []).append((body[:end], _digits_out(body[end : end + 60])))
    return found


def _digits_out(text: str) -> str:
    return _DIGITS.sub("0", text)


@lru_cache(maxsize=4096)
def _ends(alike: bytes) -> list[int]:
    """Return positions where a prefix may end: after a word or a closed bracket, and its separator."""
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
    """Return the match, in the first of the prefixes, of the number that identifies the printing process, or None."""
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
    if any(m.start() <= number.start() < m.end() for m in _CLOCK.finditer(number.string)):
        return False  # seconds of a time in no known form go round as the numbers of processes do
    before = number.string[: number.start()]
    label = _LABEL_OF_NUMBER.search(before)
    word = (label["word"] or "") if label is not None else ""
    is_host = before.endswith(" ") and any(sign.isdigit() or sign == "." for sign in word)
    return bool(number["after"]) if not word or is_host else bool(_WHO.fullmatch(word))


def _decides(own: Sequence[str], other: Sequence[str]) -> bool:
    """True if each number occurs with one other number: a rank with its node, but not a node with its ranks."""
    return len({*zip(own, other, strict=True)}) == len({*own})


def _any_order(column: Sequence[re.Match[str]]) -> bool:
    numbers = [int(found["number"]) for found in column]
    used = {*numbers}
    if not 1 < len(used) <= _MOST_RANKS or used != {*range(len(used))} or len(numbers) < len(used) * 3:
        return False
    sizes = {int(re.sub(r"\D", "", found["size"])) for found in column if found["size"]}
    changes = [(before, after) for before, after in pairwise(numbers) if before != after]  # one process may repeat
    falls = sum(before > after for before, after in changes)
    in_turn = sum((before + 1) % len(used) == after for before, after in changes)
    same_size = sizes <= {len(used)} or (column[0]["size"] or "").startswith(":")
    often = len(changes) >= 2 * len(used)
    turns = len(changes) if len(used) > 2 else len(numbers)  # with two processes, each change is in turn
    return same_size and often and falls * 10 >= len(changes) and in_turn * 10 <= turns * 7
