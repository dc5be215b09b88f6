"""Contrasts in what users paste: tables of runs with their outcome, lists of settings, runs below and from a release.

A column (or key) is the factor if runs that work and runs that fail, or values far apart, differ in it and in nothing
else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, islice

from dtdebug_taxonomy.text.contrasts import Contrast, contrast_at
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.outcomes import outcome_of
from dtdebug_taxonomy.text.pattern_matcher import clip_lines, plain
from dtdebug_taxonomy.text.stated_settings import NO_PACKAGE, Kind, settings_of

_ROWS, _COLUMNS, _PAIRS = 40, 12, 200
_WORKS = lazy_re(
    r"(?i)^\W*(?:works?|ok(?:ay)?|yes|pass(?:es|ed)?|fine|good|success\w{0,4}|right|correct|stable|converges"
    r"|no (?:hang|error|problem|oom)|\u2713|\u2705|\u2714)\W*$"
)
_FAILS = lazy_re(
    r"(?i)^\W*(?:fail(?:s|ed|ure)?|hangs?|stuck|no|bad|wrong|errors?|crash(?:es|ed)?|nan|oom|broken|deadlock"
    r"|diverges|time-?out|\u2717|\u2718|\u274c|x)\W*$"
)
_NUMBER = lazy_re(r"^[+-]?\d{1,9}(?:\.\d{1,9})?(?:[eE][+-]?\d{1,3})?$")
_MEASURED = lazy_re(
    r"(?i)loss|(?<!grad )(?<!gradient )(?<!grad_)(?<!gradient_)(?<!grad-)acc(?!um)|time|"
    r"speed|sec|s/it|it/s|throughput|tok|samples|mem|gib|gb|norm|reward|score|ppl|mfu|bandwidth"
    r"|result"
)
_LEAST, _CLEAR = 0.03, 4.0
"""Least relative change of a measured column, and how many times that of any other factor it has to be."""
_STEADY, _WIDE, _ENOUGH = 1.5, 4.0, 3
"""Largest spread of the quotient of a value and a column that it follows, least spread of both, fewest rows."""
_RULE = lazy_re(r"^[\s|:+=-]*-[\s|:+=-]*$")
_LABEL = lazy_re(
    r"(?im)^[ \t#*>-]{0,8}(?:log |output |config |env(?:ironment)? |run |the |a )*(?:(?P<good>works?|working|good"
    r"|fine|ok|success\w{0,4}|before|passes|passing)"
    r"|(?P<bad>fails?|failing|failed|broken|bad|hangs?|hanging|crashes|crashing|after|does not work|not working))"
    r"(?: (?:log|output|config|env(?:ironment)?|run|setup|one|case|node|machine))?[ \t*]{0,3}:[ \t*]{0,3}$"
)
_KEY = lazy_re(
    r"^[\s|*>-]{0,8}[`'\"]?(?P<key>[A-Za-z][\w ./-]{1,40}?)[`'\"]? ?(?:==?|:) ?[`'\"]?(?P<value>[^\s`'\","
    r"|][^\n`'\",|]{0,60}?)[`'\",|]{0,2}\s*$"
)
_VARIES = lazy_re(
    r"(?i)\b(?:time|date|pid|host(?:name)?|port|addr\w{0,4}|path|dir|file|id|uuid|seed|run[_ ]name|wandb\w{0,8}"
    r"|elapsed|loss|step)\b"
)
"""Keys that differ between any two runs."""
_NAME = r"(?<![\w/.-])(?P<name>[A-Za-z][\w-]{1,30})"
_BOUND = r"v?(?P<release>\d{1,4}\.\d{1,4}(?:\.\d{1,5})?)(?![\w.]\d)"
_BELOW = lazy_re(rf"(?i){_NAME} ?(?:(?:version|release)s? )?(?:<|before|below|older than|prior to|up to) ?{_BOUND}")
_FROM_ON = lazy_re(
    rf"(?i){_NAME} ?(?:to )?(?:(?:version|release)s? )?"
    rf"(?:>=|\u2265|since|from|as of|starting (?:with|from)) ?{_BOUND}(?P<rest>[^\n]{{0,120}})"
)
_PRINTED = lazy_re(
    r"(?i)\b(loss|grad_?norm|acc(?:uracy)?|reward|throughput|tokens/s) ?[=:] ?"
    r"(\d{1,9}(?:\.\d{1,9})?(?:e[+-]?\d{1,3})?)(?![\w.])"
)
_BELOW_LABEL = 400
"""Characters below a label in which its values are printed."""
_RATIO = 1.25
_LINES = 80
_FACTORS = 3


def find_in_tables(text: str) -> Iterator[Contrast]:
    """Yield the factor of each table of runs."""
    text = clip_lines(text)
    start = at = 0
    rows: list[list[str]] = []
    for line in (*text.split("\n"), ""):
        cells = [c.strip() for c in line.strip().strip("|").split("|")] if line.count("|") >= 2 else []
        if cells and len(rows) < _ROWS:
            start = start if rows else at
            if not _RULE.match(line):
                rows.append(cells[:_COLUMNS])
        elif rows:
            yield from _of_table(text, rows, (start, at))
            rows = []
        at += len(line) + 1


def _of_table(text: str, rows: Sequence[Sequence[str]], span: tuple[int, int]) -> Iterator[Contrast]:
    heads, runs = rows[0], [r for r in rows[1:] if len(r) == len(rows[0])]
    if len(runs) < 2:
        return
    columns = range(len(heads))
    outcome = next((n for n in columns if all(_WORKS.match(r[n]) or _FAILS.match(r[n]) for r in runs)), None)
    found = _by_outcome(runs, outcome, columns) if outcome is not None else _by_value(heads, runs, columns)
    if found is not None:
        column, good, bad = found
        line = text.count("\n", 0, span[0]) + 1
        words = plain(" | ".join(heads))[:200]
        yield Contrast("option", plain(heads[column])[:60], plain(good)[:80], plain(bad)[:80], *span, line, words)


def _by_outcome(runs: Sequence[Sequence[str]], outcome: int, columns: range) -> tuple[int, str, str] | None:
    """Return the only column in which a run that works and one that fails differ, and that parts all of them."""
    good = [r for r in runs if _WORKS.match(r[outcome])]
    bad = [r for r in runs if not _WORKS.match(r[outcome])]
    parting = [
        n for n in columns if n != outcome and good and bad and {r[n] for r in good}.isdisjoint(r[n] for r in bad)
    ]
    return (parting[0], good[0][parting[0]], bad[0][parting[0]]) if len(parting) == 1 else None


def _by_value(heads: Sequence[str], runs: Sequence[Sequence[str]], columns: range) -> tuple[int, str, str] | None:
    """Return the column that changes a measured value most, among pairs of runs that differ in this column alone."""
    numbers = [n for n in columns if all(_NUMBER.match(r[n]) for r in runs)]
    measured = next((n for n in numbers if _MEASURED.search(heads[n]) and len({r[n] for r in runs}) > 1), None)
    if measured is None:
        return None
    factors = [n for n in columns if n != measured and not _MEASURED.search(heads[n])]
    if (column := _followed(runs, measured, [n for n in factors if n in numbers])) is not None:
        low, *_, high = sorted((r[column] for r in runs), key=float)
        return column, "", f"{low} and {high}"
    effect: dict[int, tuple[float, str, str]] = {}
    for one, other in islice(combinations(runs, 2), _PAIRS):
        differing = [n for n in factors if one[n] != other[n]]
        a, b = float(one[measured]), float(other[measured])
        change = abs(a - b) / abs(a) if a else 0.0
        if len(differing) == 1 and change >= effect.get(differing[0], (-1.0,))[0]:
            effect[differing[0]] = (change, one[differing[0]], other[differing[0]])
    if not effect:
        return None
    best = max(effect, key=lambda n: effect[n][0])
    rest = max((v[0] for n, v in effect.items() if n != best), default=0.0)
    change, first, second = effect[best]
    return (best, first, second) if len(effect) > 1 and change >= _LEAST and change >= _CLEAR * rest else None


def _followed(runs: Sequence[Sequence[str]], measured: int, factors: Sequence[int]) -> int | None:
    """Return the only column to which a measured value is proportional, if both vary widely."""

    def spread(values: Sequence[float]) -> float:
        return max(values) / min(values) if min(values) > 0 else 0.0

    values = [float(r[measured]) for r in runs]
    if spread(values) < _WIDE:
        return None
    found = [
        n
        for n in factors
        if len({r[n] for r in runs}) >= _ENOUGH
        and spread(column := [float(r[n]) for r in runs]) >= _WIDE
        and spread([v / c for v, c in zip(values, column, strict=True)]) <= _STEADY
    ]
    return found[0] if len(found) == 1 else None


def find_in_blocks(text: str) -> Iterator[Contrast]:
    """Yield the settings in which two labelled blocks ("works:", "fails:") differ, if they are few."""
    text = clip_lines(text)
    labels = [*_LABEL.finditer(text)]
    good, bad = (next((m for m in labels if m[side]), None) for side in ("good", "bad"))
    if good is None or bad is None:
        return
    one, other = (_settings(text, m, labels) for m in (good, bad))
    differing = [k for k in one if k in other and one[k] != other[k] and not _VARIES.search(k)]
    if not 0 < len(differing) <= _FACTORS:
        return
    start, end = min(good.start(), bad.start()), max(good.end(), bad.end())
    for key in differing:
        kind: Kind = "release" if re.match(r"v?\d{1,4}\.\d", one[key]) else "option"
        line = text.count("\n", 0, start) + 1
        yield Contrast(
            kind, plain(key)[:60], plain(one[key])[:80], plain(other[key])[:80], start, end, line, plain(bad[0].strip())
        )


def _settings(text: str, label: re.Match[str], labels: Sequence[re.Match[str]]) -> dict[str, str]:
    """Return the keys and values below a label, up to the next one."""
    stop = min((m.start() for m in labels if m.start() > label.start()), default=len(text))
    lines = text[label.end() : stop].split("\n")[:_LINES]
    return {m["key"].strip().lower(): m["value"].strip() for m in map(_KEY.match, lines) if m is not None}


def find_bounds(text: str) -> Iterator[Contrast]:
    """Yield a release below which and from which on runs print other values, and another setting that is right."""
    text = clip_lines(text)
    for low in islice(_BELOW.finditer(text), 8):
        name, release = low["name"].lower(), low["release"]
        above = [m for m in _FROM_ON.finditer(text) if m["name"].lower() == name and m["release"] == release]
        before = text[low.end() : low.end() + _BELOW_LABEL]
        shown = next((s for m in above if (s := _parting_value(before, text[m.end() : m.end() + _BELOW_LABEL]))), "")
        if name in NO_PACKAGE or not shown:
            continue
        span = (low.start(), low.end())
        yield contrast_at(text, "release", name, (f"before {release}", f"{release} ({shown})"), span)
        mine = [*settings_of(before.partition("\n")[0], low.end())]
        for m in above:
            if outcome_of(m["rest"], None):
                others = settings_of(m["rest"], m.start("rest"))
                pairs = ((a, b) for a in mine for b in others if a.factor == b.factor and a.value != b.value)
                for a, b in islice(pairs, 1):
                    yield contrast_at(text, a.kind, a.factor, (b.value, a.value), span)
        return


def _parting_value(before: str, after: str) -> str:
    """Return the value whose first prints of two runs are far apart: `grad_norm 4.7 -> 1.6 at equal loss`."""
    one, two = ({k: float(v) for k, v in reversed(_PRINTED.findall(part))} for part in (before, after))
    for key in (k for k in one if k in two):
        a, b = one[key], two[key]
        if min(a, b) > 0 and max(a, b) / min(a, b) >= _RATIO:
            equal = key != "loss" and "loss" in one and one["loss"] == two.get("loss")
            return f"{key} {a:.4g} -> {b:.4g}{' at equal loss' if equal else ''}"
    return ""
