"""A grammar of contrasts in users' words: two runs that differ in one thing, of which one works.

A text is cut into clauses. Each has an outcome (it works, it fails, a time) and settings: a release, the value of an
option, one of several alternatives, a number of devices, a place. Two neighbouring clauses with opposite outcomes and
different values of one setting are a contrast. A comparison without outcomes ("faster than") is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.number_words import NUMBERS
from dtdebug_taxonomy.text.outcomes import outcome_of
from dtdebug_taxonomy.text.pattern_matcher import clip_lines, plain
from dtdebug_taxonomy.text.stated_settings import Kind, Setting, alternatives_in, settings_of

KINDS: tuple[Kind, ...] = ("release", "option", "choice", "part", "place", "count")
"""Kinds of factors, the most telling first: a number of devices says least of what is wrong."""


class Contrast(NamedTuple):
    """A factor with the value that works and the one that does not."""

    kind: Kind
    factor: str
    """`torch`, `--zero`, `backend`; the part itself, if one run is without it."""
    good: str
    """Empty if it is only known that the results differ, or that the other runs work."""
    bad: str
    start: int
    """Span of the text that states it."""
    end: int
    line: int
    words: str


class _Clause(NamedTuple):
    at: int
    text: str
    works: bool | None
    settings: tuple[Setting, ...]


_MOST, _CLAUSES = 20_000, 400
_APART = 3
"""Clauses within which the other side of a contrast is searched."""
_BREAK = lazy_re(
    r"[.!?;](?=\s|$)|\n|\s[-\u2013\u2014]+\s|,\s"
    r"|\s(?=(?:but|while|whereas|whilst|yet|although|however|once|unless|except)\b)"
    r"|\sand\s(?=(?:with|without|in|on|under|when|now|then|not|another|the|i|we|our|it|only|do|does|did|works?"
    r"|fails?|hangs|crashes)\b)"
    r"|\s(?=not (?:with|when|on|in|under|for|if|using)\b)",
    re.IGNORECASE,
)
_ITEM = lazy_re(r"\W*(?:\d{1,2}|[a-z])?\W*")
"""Number of an item of a list, or nothing."""
_GOES_ON = lazy_re(r"(?i)\W*(?:but|and|then|later|after\w{0,5})\b")
_STEM = 4
"""Least number of letters that a word has in common with its longer form."""
_SEVERAL = 1_000
"""Number for a count of devices that is not said."""
_HARD = frozenset(".!?;\n")
_HYPOTHETICAL = lazy_re(
    r"(?i)\b(?:should|supposed|expect\w{0,3}|would|could|might|may|whether|hope|please|does (?:it|this|anyone)"
    r"|can (?:i|we)|how"
    r"|want|need|trying to|in order|make sure|so that)\b"
)
_DIFFERENT = lazy_re(
    r"(?i)\b(?:different|differ(?:s|ences?)?|discrepanc\w{1,3}|(?:do|does) not match|mismatch\w{0,2}|disagree)\b"
)
_RATE = lazy_re(
    r"(?i)(?<![\w.])(?P<n>\d{1,6}(?:\.\d{1,4})?) ?(?P<unit>s/it\b|it/s\b|sec(?:ond)?s?\b|s\b|ms\b|min(?:ute)?s?\b"
    r"|hours?\b"
    r"|(?:samples|tokens|tok|images|imgs)/s(?:ec)?\b)"
)
_UP = ("it/s", "/s")
_RATIO = 1.25
"""Quotient of two times from which they differ."""

_PACKAGE = lazy_re(
    r"(?i)(?<![\w/.-])(?:py)?torch\b|(?<![\w/.-])(?:deepspeed|accelerate|transformers|lightning|nccl|horovod|jax"
    r"|tensorflow|keras|megatron"
    r"|ray|vllm|trl|peft|cuda|driver)\b(?![./-])"
)
_NEAR = 120
"""Characters around a release in which its package is looked for."""
UNNAMED = "the release"
_BARE = lazy_re(
    r"(?i)^\W*(?:but |and |while )?(?:with|at|for) (?P<value>\d{1,6}),? (?:it|this|that|everything|all|the)\b"
)
"""The other value of the option that the sentence before names: "with 1 it is normal"."""
_NOT_WITH = lazy_re(r"(?i)^\W*(?:but |and )?not (?:with|on|for|at|if (?:I|we) use) (?:only )?(?P<value>\d{1,6})\W*$")
"""The same after a failure: "hangs with 4, but not with 2"."""
_NAMED = (
    r"[`'\"]{{0,2}}(?P<{0}>(?:--?[a-z][\w-]{{2,40}}|[A-Za-z][a-z0-9]{{0,30}}(?:_\w{{1,30}}){{1,6}})"
    r"(?:[ =][\w.,:]{{1,24}}(?=[`'\"]))?)"
)
_UNSET = lazy_re(
    r"(?i)\b(?:if|when|whenever|unless|as long as|because)\b[^.;\n]{0,40}?"
    r"(?:(?:(?:do|does|did|have|is|was)(?: not|n['\u2019]t)|forget to|forgot to|without) "
    r"(?:set(?:ting)?|pass(?:ing)?|giv(?:e|ing)|specify(?:ing)?|export(?:ing)?|us(?:e|ing)|add(?:ing)?)"
    rf" (?:the )?(?:\w{{2,12}} )?{_NAMED.format('thing')}"
    rf"|{_NAMED.format('thing2')}[`'\"]{{0,2}} (?:is|was|are|were) (?:not|n['\u2019]t|un)[ -]?"
    r"(?:set|given|passed|exported|specified)\b)"
)
"""Setting that is missing where it fails."""
_BUG = lazy_re(r"(?i)\bbugs?\b")
_ONLY = lazy_re(
    r"(?i)\bonly(?: (?:ever|occurs?|happens?|appears?|fails?|hangs?|crashes|shows? up|breaks|seen))?"
    r" (?P<how>with|when|if|on|for|in|under|after|while) (?P<thing>[^\n,.;:!?()]{3,80}?)(?: (?:it|this"
    r"|the (?:hang|error|problem|job|run)) .{2,40})?$"
)
_FROM_TO = lazy_re(
    r"(?i)\b(?P<verb>upgrad|updat|mov|switch|chang|go|went|migrat|downgrad"
    r"|revert)\w{0,4}\b[^\n.;]{0,40}? from (?P<old>[^\n,.;]{1,40}?(?:\.\d{1,4}){0,3}) to "
    r"(?P<new>[^\n,;]{1,40}?)(?=\s|[,;.](?:\s|$)|$)"
)
_INSTEAD = lazy_re(r"(?i) (?:instead of|rather than|in place of) ")
_COMPARES = lazy_re(r"(?i)\b(?:differences?|differs?|different|in contrast|discrepanc\w{1,3}|impact\w{0,3}|affects?)\b")
_BARE_COUNT = lazy_re(r"\d{1,4}\b(?![.\d%])")
_END = lazy_re(r"[.!?](?:\s|$)|\n")
_THAN = lazy_re(r"(?i)\b(?:slow(?:er)?|worse|longer|more memory|higher)\b[^\n.;]{0,30}\bthan (?=[^\n])")
_THEN = lazy_re(
    r"(?i)\b(?:before|previously|earlier|formerly|until|originally|in the past|used to|last (?:week|month|year)"
    r"|(?:the|my|our) (?:old|former|previous|colleagues?))\b"
)
_NOW = lazy_re(
    r"(?i)(?:\b(?:I|we) (?:now |currently )?(?:run|train|use|launch|start|work|are|am)\b|\bnow\b"
    r"|\bcurrently\b|\btoday\b|\b(?:I|we)(?:'ve| have)? (?:since )?(?:moved|switched|migrated|changed)\b)"
)
_WENT_WELL = lazy_re(
    r"(?i)\b(?:(?:near\w{0,2}|almost) )?(?:perfect|linear|ideal|good|great|full|fast|faster)(?: \w{2,12})?"
    r" (?:scaling|speed-?up|speed|throughput|bandwidth|utili[sz]ation|results?|accuracy)\b"
    r"|\bscaled (?:well|linearly|perfectly)\b"
)
"""Praise of a run: it counts only beside a clause on what was before."""


def find_contrasts(text: str) -> tuple[Contrast, ...]:
    """Return the contrasts that a text states, the most telling first; each factor once."""
    text = clip_lines(text)[:_MOST]
    clauses = [*islice(_clauses(text), _CLAUSES)]
    rows = [
        *_pairs(text, clauses),
        *_then_and_now(text, clauses),
        *_changes(text),
        *_only(text, clauses),
        *_unset(text),
        *_instead(text),
        *_differences(text, clauses),
    ]
    rows.sort(key=lambda c: (KINDS.index(c.kind), not c.good, c.start))
    found: dict[str, Contrast] = {}
    for c in rows:
        found.setdefault("release" if c.kind == "release" else c.factor, c)
    return tuple(found.values())


def _clauses(text: str) -> Iterator[_Clause]:
    """Yield the clauses with their outcomes and settings; questions, and what is only wished, have no outcome.

    What has no outcome belongs to what comes next in its sentence ("with X, it works"); the settings of a sentence
    without one, to the next sentence.
    """
    begin = start = 0
    before: bool | None = None
    carried: tuple[Setting, ...] = ()
    last: tuple[Setting, ...] = ()
    named: Setting | None = None
    counted: Setting | None = None
    for end, stop in (*((m.start(), m[0]) for m in _BREAK.finditer(text)), (len(text), "\n")):
        part = text[start:end]
        hard = stop[:1] in _HARD
        works = None if stop[:1] == "?" or _HYPOTHETICAL.search(part) else outcome_of(part, before)
        if works is not None:
            whole = text[begin:end]
            settings = (*settings_of(whole, begin), *carried)
            other = _other_value(whole, begin, named, counted)
            bare = other if _NOT_WITH.match(whole) else ()  # "but not on 8" names no part
            settings = bare or settings or other or (last if _GOES_ON.match(whole) else ())
            yield _Clause(begin, whole, works, settings)
            last = settings
            named = next((s for s in settings if s.kind == "option"), named)
            counted = max((s for s in settings if s.kind in {"option", "count"}), key=lambda s: s.at, default=counted)
        elif _RATE.search(part) is not None:
            whole = text[begin:end]
            yield _Clause(begin, whole, None, (*settings_of(whole, begin), *carried))
        elif hard and not _ITEM.fullmatch(part):
            whole = text[begin:end]
            settings = tuple(settings_of(whole, begin))
            yield _Clause(begin, whole, None, settings)
            carried = settings
        start = end + len(stop)
        if works is not None or hard or _RATE.search(part) is not None:
            begin = start
        if works is not None:
            before, carried = works, ()
        if stop[:1] == "\n":
            before = None


def _other_value(clause: str, at: int, named: Setting | None, last: Setting | None) -> tuple[Setting, ...]:
    """Return the bare number of a clause as another value: of the option named before, or of what is named last."""
    found = _BARE.match(clause)
    if found is None and (found := _NOT_WITH.match(clause)) is not None:
        named = last
    if found is None or named is None or not re.fullmatch(r"(?:> )?\d{1,6}", named.value):
        return ()
    return (named._replace(value=found["value"], at=at + found.start("value")),)


def _pairs(text: str, clauses: Sequence[_Clause]) -> Iterator[Contrast]:
    """Yield contrasts of clauses with opposite outcomes, or with times that differ, near each other."""
    for n, one in enumerate(clauses):
        for other in clauses[max(n - _APART, 0) : n]:
            sides = _sides(other, one)
            if sides is not None:
                yield from _of_sides(text, *sides)
                if one.works is not None:
                    break
            elif one.works is None and other.works is None:
                yield from _of_times(text, other, one)
    for one in clauses:
        if one.works is False and (than := _THAN.search(one.text)) is not None:
            at = than.end()
            worse = _Clause(one.at, one.text[:at], False, tuple(s for s in one.settings if s.at < one.at + at))
            better = _Clause(one.at + at, one.text[at:], True, tuple(s for s in one.settings if s.at >= one.at + at))
            yield from (c for c in _of_sides(text, better, worse) if c.kind == "release" or c.factor == "branch")


def _then_and_now(text: str, clauses: Sequence[_Clause]) -> Iterator[Contrast]:
    """Yield alternatives of which one was used when it went well, and the other is used now, when it does not."""
    for n, then in enumerate(clauses):
        if not (_THEN.search(then.text) and (then.works or _WENT_WELL.search(then.text))):
            continue
        for now in clauses[n + 1 : n + 1 + _APART]:
            if now.works or _THEN.search(now.text) or not _NOW.search(now.text):
                continue
            here = tuple(s for s in then.settings if s.at >= then.at)
            there = tuple(alternatives_in(now.text, now.at))
            good, bad = then._replace(settings=here), now._replace(settings=there)
            yield from (c for c in _of_sides(text, good, bad) if c.kind == "choice")
            break


def _sides(one: _Clause, other: _Clause) -> tuple[_Clause, _Clause] | None:
    """Return the clause that works and the one that does not, if they have opposite outcomes."""
    if one.works is None or other.works is None or one.works == other.works:
        return None
    return (one, other) if one.works else (other, one)


def _of_sides(text: str, good: _Clause, bad: _Clause) -> Iterator[Contrast]:
    """Yield what differs between the settings of two clauses."""
    taken: set[Kind] = set()
    for mine in good.settings:
        for theirs in bad.settings:
            if mine.kind != theirs.kind or mine.kind in taken or mine.value.lower() == theirs.value.lower():
                continue
            factor = _common(mine, theirs)
            if not factor or (mine.kind == "count" and not _is_fewer(mine.value, theirs.value)):
                continue
            if any(_common(mine, s) and s.value.lower() == mine.value.lower() for s in bad.settings):
                continue  # it fails with the same value too
            taken.add(mine.kind)
            yield _contrast(text, mine.kind, factor, (mine.value, theirs.value), (good, bad))


def _of_times(text: str, one: _Clause, other: _Clause) -> Iterator[Contrast]:
    """Yield releases, options and alternatives with which the same thing takes different times."""
    first, second = _RATE.search(one.text), _RATE.search(other.text)
    if first is None or second is None or first["unit"].lower()[:3] != second["unit"].lower()[:3]:
        return
    a, b = float(first["n"]), float(second["n"])
    if min(a, b) <= 0 or max(a, b) / min(a, b) < _RATIO:
        return
    larger_is_better = first["unit"].lower().endswith(_UP)
    good, bad = (one, other) if (a > b) == larger_is_better else (other, one)
    yield from (c for c in _of_sides(text, good, bad) if c.kind != "count")


def _common(one: Setting, other: Setting) -> str:
    """Return the factor of two settings; a release without a name is one of the package that the other names."""
    if one.kind == "release":
        if one.factor and other.factor and one.factor != other.factor:
            return ""
        return one.factor or other.factor or UNNAMED
    if one.kind == "part" and one.factor != other.factor:
        short, long = sorted((one.factor, other.factor), key=len)
        return short if long.startswith(short) or long.endswith(short) or _has_stems(short, long) else ""
    return one.factor if one.factor.lower() == other.factor.lower() else ""


def _has_stems(short: str, long: str) -> bool:
    """True if two names are alike word for word: overlap-param-gather, overlapping parameter gathering."""
    rows = [[w for w in re.split(r"[\W_]+", name) if w] for name in (short, long)]
    pairs = zip(*rows, strict=False)
    return len(rows[0]) == len(rows[1]) > 1 and all(a == b or (b.startswith(a) and len(a) >= _STEM) for a, b in pairs)


def _is_fewer(value: str, other: str) -> bool:
    """True if a number of devices is smaller than another."""
    one, two = (NUMBERS.get(v, int(v) if v.isdigit() else _SEVERAL) for v in (value, other))
    return one < two and (one == 1 or two < _SEVERAL)


def _instead(text: str) -> Iterator[Contrast]:
    """Yield two numbers of devices that are said to be the difference of runs with different results."""
    for m in islice(_INSTEAD.finditer(text), 8):
        begin, end = (max(text.rfind(c, 0, m.start()) for c in "\n.!?") + 1, _END.search(text, m.end()))
        stop = end.start() if end is not None else len(text)
        if not (_COMPARES.search(text[begin:stop]) or outcome_of(text[begin:stop], None) is False):
            continue
        sides = [
            next((s for s in settings_of(f"{part} ", at) if s.kind == "count"), None)
            for part, at in ((text[begin : m.start()], begin), (text[m.end() : stop][:60], m.end()))
        ]
        mine, usual = sides
        if mine is None or usual is None or mine.value == usual.value or "several" in {mine.value, usual.value}:
            bare = _BARE_COUNT.match(text, m.end())
            if mine is None or usual is not None or bare is None or not mine.value.isdigit() or mine.value == bare[0]:
                continue
            usual = mine._replace(value=bare[0])
        if mine.factor == usual.factor:
            yield contrast_at(text, "count", mine.factor, ("", f"{usual.value} and {mine.value}"), (begin, stop))
            return


def _changes(text: str) -> Iterator[Contrast]:
    """Yield what was changed from one value to another, if what follows fails, or differs."""
    for m in islice(_FROM_TO.finditer(text), 8):
        begin = max(text.rfind(c, 0, m.start()) for c in "\n.!?") + 1
        following = _END.split(text[m.end() : m.end() + 300], maxsplit=1)[0]
        rest = f"{text[begin : m.start()]} {following}"
        if m["verb"].lower() in {"downgrad", "revert"}:
            continue
        failed = outcome_of(rest, None) is False
        if not failed and not _DIFFERENT.search(rest):
            continue
        old, new = ([*settings_of(f"x {m[side].strip('`')} ", m.start(side))] for side in ("old", "new"))
        whole = [*settings_of(m[0], m.start())]
        for mine in old:
            theirs = next((s for s in new if s.kind == mine.kind and s.value.lower() != mine.value.lower()), None)
            if theirs is None or mine.kind in {"part", "count"}:
                continue
            factor = _common(mine, theirs)
            if factor == UNNAMED:
                factor = next((s.factor for s in whole if s.kind == "release" and s.factor), factor)
            if factor:
                good = mine.value if failed or mine.kind == "release" else ""
                bad = theirs.value if good else f"{mine.value} and {theirs.value}"
                yield contrast_at(text, mine.kind, factor, (good, bad), (m.start(), m.end()))
                break


def _only(text: str, clauses: Iterable[_Clause]) -> Iterator[Contrast]:
    """Yield the condition under which alone it fails, or works."""
    for c in clauses:
        found = _ONLY.search(c.text)
        if found is None or (c.works is None and not re.search(r"(?i)\bonly (?:occurs?|happens?|appears?)", c.text)):
            continue
        thing = " ".join(plain(found["thing"]).split())
        if len(thing.split()) > 10 or re.match(r"(?i)(?:one|1|a single|single|two|2|rank|it|this|that)\b", thing):
            continue
        how = found["how"].lower()
        works = c.works is True
        kind: Kind = "part"
        values = (f"only {how} {thing}", "") if works else ("", f"only {how} {thing}")
        yield contrast_at(text, kind, thing.lower(), values, (c.at + found.start(), c.at + found.end()))


def _unset(text: str) -> Iterator[Contrast]:
    """Yield the setting without which it fails, as the writer says of the sentence that states the failure."""
    for m in islice(_UNSET.finditer(text), 8):
        begin = max(text.rfind(c, 0, m.start()) for c in "\n.!?") + 1
        end = _END.search(text, m.end())
        stop = end.start() if end is not None else len(text)
        fails = outcome_of(text[begin:stop], None) is False or _BUG.search(text, begin, stop)
        if fails and text[stop : stop + 1] != "?":
            thing = plain(m["thing"] or m["thing2"])
            yield contrast_at(text, "part", thing, ("on", "off"), (begin, stop))


def _differences(text: str, clauses: Iterable[_Clause]) -> Iterator[Contrast]:
    """Yield alternatives that are said to give different results, if neither is said to be right."""
    for c in clauses:
        if not _DIFFERENT.search(c.text) or c.works is True:
            continue
        stages = re.search(
            r"(?i)\b(?P<name>zero|stages?)[- ]?(?P<a>[0-3])(?:,? (?:and|vs\.?|or) )(?:zero|stage)?[- ]?(?P<b>[0-3])\b",
            c.text,
        )
        if stages is not None:
            both = f"{stages['a']} and {stages['b']}"
            yield contrast_at(text, "option", "ZeRO stage", ("", both), (c.at, c.at + len(c.text)))
            continue
        for n, one in enumerate(c.settings):
            other = next(
                (
                    s
                    for s in c.settings[n + 1 :]
                    if s.kind == one.kind and _common(one, s) and s.value.lower() != one.value.lower()
                ),
                None,
            )
            if other is not None and one.kind in {"choice", "option"}:
                yield _contrast(text, one.kind, one.factor, ("", f"{one.value} and {other.value}"), (c, c))
                break


def _package(text: str, span: tuple[int, int]) -> str:
    """Return the only package that the sentences around a release name, or `the release`."""
    names = {m[0].lower() for m in _PACKAGE.finditer(text, max(span[0] - _NEAR, 0), span[1] + _NEAR)}
    names = {"torch" if n == "pytorch" else n for n in names}
    return names.pop() if len(names) == 1 else UNNAMED


def _contrast(
    text: str, kind: Kind, factor: str, values: tuple[str, str], clauses: tuple[_Clause, _Clause]
) -> Contrast:
    start = min(c.at for c in clauses)
    return contrast_at(text, kind, factor, values, (start, max(c.at + len(c.text) for c in clauses)))


def contrast_at(text: str, kind: Kind, factor: str, values: tuple[str, str], span: tuple[int, int]) -> Contrast:
    """Return a contrast that a span of a text states."""
    start, end = span
    factor = _package(text, span) if factor == UNNAMED else factor
    words = plain(" ".join(text[start:end].split()))[:200]
    good, bad = (plain(v)[:80] for v in values)
    return Contrast(kind, plain(factor)[:60], good, bad, start, end, text.count("\n", 0, start) + 1, words)
