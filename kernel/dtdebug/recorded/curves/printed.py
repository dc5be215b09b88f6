"""Reads curves from printed lines: pairs of a name and a number on lines that repeat with a growing counter.

No trainer has a pattern of its own. A line is read if it holds a word of a value that is judged; the number behind each
`:` or `=` belongs to the name before it, and a few names (`loss 2.3`, `lr 1e-4`) are read without a sign. The step is
the number behind a word for it, in the brackets of an epoch, or in a progress bar; the counter of an earlier line
counts for lines below it that have none, as where a logger prints one value a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dtdebug.recorded.curves.curve import Curve, Owner
from dtdebug.recorded.curves.names import Name, meaning
from dtdebug.recorded.curves.series import MOST_VALUES, Series, put
from dtdebug.recorded.log_files.lines_with_words import LinesWithWords

_NUMBER = (
    rb"[-+]?(?:\d[\d,]{0,15}(?:\.\d{0,20})?(?:[eE][-+]?\d{1,3})?|\.\d{1,20}"
    rb"|0{0,8}(?i:nan|inf(?:inity)?)(?![a-zA-Z]))"
)
_PAIR = re.compile(
    rb"[:=] {0,12}[\['\"(]{0,2}(?:tensor\()?(" + _NUMBER + rb")(?![\d:]|\.\d|/\d|[a-zA-Z_]{3})( ?ms\b|)", re.ASCII
)
_BARE = re.compile(
    rb"(?i)(?<![\w/])((?:(?:train|val|valid|validation|test|eval|training|lm)[ _]?)?loss|lr|(?:grad[ _])?norm|time"
    rb"|(?:(?:consumed|seen|processed|total)[ _])?(?:samples|tokens)(?:[ _](?:seen|consumed|processed))?"
    rb"|(?:tokens?|toks?|samples?|images?|examples?|words|frames)(?:[ _]per[ _]|/)s(?:ec(?:ond)?)?(?:/\w{1,10})?"
    rb"|(?:step|iter(?:ation)?|batch)[ _](?:time|ms)|throughput|dt)"
    rb"[ \t]{1,6}(" + _NUMBER + rb")(?![\d:]|\.\d|/\d)( ?ms\b|)",
    re.ASCII,
)
_MEMORY = re.compile(
    rb"(?i)(?<![a-z0-9/])((?:[a-z]{2,12}[ _./-]){0,3}(?:rss|[up]ss|mem|memory|vram|ram)(?:[ _./-][a-z]{2,12}){0,2})"
    rb"(?: ?\((?P<of>[kmgt]i?b)\))?['\"]?[ \t]{0,4}[:= ][ \t]{0,4}['\"]?(" + _NUMBER + rb")"
    rb"(?: ?([kmgt]i?b?|bytes|b))?(?![a-z0-9/%]|[.:]\d)",
    re.ASCII,
)
_MEMORY_WORDS = (b"rss", b"RSS", b"mem", b"Mem", b"MEM", b"vram", b"VRAM", b" ram", b"RAM")
_UNITS = frozenset(size + unit for size in b"k m g t".split() for unit in (b"b", b"ib")) | {b"bytes"}
_MIB = {b"": 1.0, b"k": 2.0**-10, b"m": 1.0, b"g": 2.0**10, b"t": 2.0**20, b"b": 2.0**-20}
_RATE = re.compile(rb"(?i)(?<![\w.])(\d{1,9}(?:\.\d{1,9})?) ?(s/it|it/s|ms/step|s/step|ms/it)\b", re.ASCII)
_STEP = re.compile(
    rb"(?i)\b(?:(?:global|train|training|optimizer|completed)[ _]?)?"
    rb"(?:iteration|iter|step|batch|it|update|num_updates)s?\b"
    rb"['\"]?(?:\(train\)|\(val\))?[ _:=#\[(\"']{0,12}(\d{1,12})(?!\d|[:,]\d|\.\d*[1-9]|ms|s\b|it/s)(?:\.0{1,6})?"
    rb"(?: {0,4}/ {0,9}(\d{1,12}))?",
    re.ASCII,
)
_GLOBAL_STEP = re.compile(rb"(?i)\bglobal[ _]step\b['\"]?[ _:=#\[(]{0,12}(\d{1,12})(?![\d.:])", re.ASCII)
_EPOCH = re.compile(
    rb"(?i)\bepochs?\b['\"]?(?:\(train\)|\(val\))?[ _:=#\[(\"']{0,6}(\d{1,6}(?:\.\d{1,18})?)(?![\d:])", re.ASCII
)
_OF = re.compile(rb"(?:^|[\[|:(\]]) {0,8}(\d{1,9}) ?/ ?(\d{1,9})(?![\d/])(?=[\] )(:|,\t]|$)", re.ASCII)
_BAR = re.compile(rb"\d%\|[^|\n]{0,200}\| {0,8}(\d{1,12})/(\d{1,12}) \[", re.ASCII)
_RANK = re.compile(
    rb"(?i)^.{0,80}?\brank[ _=:#\[-]{0,3}(\d{1,6})\b|^ {0,6}(\d{1,6}): |^\[(\d{1,6})\]: ?"
    rb"|^.{0,40}?\[default(\d{1,4})\]",
    re.ASCII,
)
_ZERO = re.compile(
    rb"(?<![\w.])([A-Za-z][\w/.]{1,30})['\"]?[ \t]{0,3}[:= ][ \t]{0,3}(0(?:\.0{0,20})?[eE][-+]?\d{1,3})(?![\d.])",
    re.ASCII,
)
"""A zero in the form in which rates are printed, whatever its name is."""
_KEY_VALUE = re.compile(rb'"key": "([^"\n]{1,60})", "value": "?(' + _NUMBER + rb")", re.ASCII)
_HELD_OUT = re.compile(rb"(?i)\b(?:validation|validating|valid|val|eval|evaluation|evaluating|test)\b", re.ASCII)
_ESCAPE = re.compile(rb"\x1b\[[0-9;]{0,12}[A-Za-z]")
_VALUES = (b"oss", b"OSS", b"norm", b"lr", b"LR", b"earning", b"tim", b"seconds", b"elapsed", *_MEMORY_WORDS)
"""Each line that is read holds one of these."""
_LOAD_WORDS = (b"esum", b"heckpoint", b"estor")
_LOADS = re.compile(
    rb"(?i)\b(?:resum(?:ed|ing) (?:the )?(?:training |run |job )?(?:from|at)"
    rb"|(?:re-?)?load(?:ed|ing) (?:the |model |a )?checkpoint"
    rb"|restor(?:ed|ing) (?:the |model |training )?(?:checkpoint|states?|weights|from)"
    rb"|(?:continu|restart)ing (?:training )?from (?:the |a )?checkpoint)\b"
    rb"|[\"'](?:event|type|msg|message)[\"']: ?[\"']resumed?\b|\bevent[=:] ?resumed?\b",
    re.ASCII,
)
_NOT_LOADED = re.compile(
    rb"(?i)\b(?:no|not|without|n't|fail(?:ed|ure)?|unable|skip\w{0,4}|if|eval\w{0,7}|test\w{0,3})\b", re.ASCII
)
"""Words of a line that loads nothing into the training."""
_HEADS = (b"%|", b"[batch=", b"[step=", b"lobal_step", b"lobal step", b"GLOBAL_STEP", b"GLOBAL STEP")
"""Lines that count for those below them hold one of these."""
_ALL_WORDS = sorted({word.lower() for word in (*_VALUES, *_LOAD_WORDS, b"epoch", *_HEADS)})
_MANY, _EACH = 12_000, 4
"""Lines of one shape that are read; after them, each fourth is. NaN is another shape, and so is never left out."""
_WHOLE, _LAST = 400_000, 16
"""Lines with a word of a value that are looked at; after them, those in the last sixteenth of each block are."""
_NEVER_SKIPPED = (*_LOAD_WORDS, b"nan", b"NaN", b"NAN", b" inf", b"=inf", b"-inf", b" Inf", b"-Inf")
"""No line that holds one of these is left out, nor the lines above it that may name its step."""
_BARREN, _AMONG = 64, 16
"""Lines of one shape without a value, such as errors, that are read; after them, each sixteenth is, until one has."""
_EPOCH_HEADS = (b"Epoch", b"epoch")
_VARYING = b"0123456789.+-, \t"
_ONE_NUMBER = re.compile(_NUMBER, re.ASCII).match
_BEFORE = 24
"""Bytes before a number by which it is found again."""
_GLOBAL_STEPS = ("global_step", "global step", "num_updates", "trainer/global_step")
_CUT = 4000
"""Bytes of a line that are read."""
_BELOW = 64
"""Lines below one that names a step alone for which it counts."""
_CACHE = 4096
_NUMBERS = re.compile(r"(?<![\w@])\d[\d.,%:/]{0,20}\s")
_SEPARATORS = re.compile(rb"[|,;{}\t\]\[>]|  +| - |: |\) ")


class Head(NamedTuple):
    """Step that the lines before have named."""

    step: float
    total: float
    line: int


class Value(NamedTuple):
    """A number of a line, with what it means and where it is printed."""

    name: Name
    text: bytes
    at: int


class Count(NamedTuple):
    """The step of a line, and where it is printed; -1 where it is not on the line."""

    step: float
    unit: str
    at: int
    total: float = 0.0
    epoch: float = -1.0
    epoch_at: int = -1
    rounded: bool = False
    """True if the step is a fraction of an epoch."""


class Place(NamedTuple):
    """Place at which a number is printed: behind a text without digits, and up to the byte that ends it."""

    before: bytes
    end: bytes
    role: int
    """Index of its value, or one of the roles below."""


_STEP_ROLE, _EPOCH_ROLE, _RANK_ROLE = -1, -2, -3


class Plan(NamedTuple):
    """Places of the numbers that matter in lines that differ in nothing but numbers, in their order."""

    places: tuple[Place, ...]
    names: tuple[Name, ...]
    unit: str
    curves: dict[int | None, list[Curve]]
    read: list[int]
    """Number of lines that were read by it."""


class PrintedLines:
    """Reader of one log."""

    def __init__(self, series: Series, file: str, rank: int | None = None) -> None:
        self._series, self._file, self._rank = series, file, rank
        self._keys: dict[bytes, Name | None] = {}
        self._plans: dict[bytes, Plan | None] = {}
        self._barren: dict[bytes, int] = {}
        """Shape -> number of lines of it since the last one with a value."""
        self._head: Head | None = None
        self._epoch = -1.0
        self._words = LinesWithWords(_ALL_WORDS)
        self._looked = 0
        """Number of lines that were looked at."""
        self._is_huge = False

    def read(self, block: bytes, number: int = 1) -> int:
        """Read a run of lines, of which the first has this number; return the number of the next one.

        Only lines with one of the words are looked at, and of a huge log the last ones of each block: a trend shows in
        fewer lines than it has.
        """
        lines = block.split(b"\n")
        levels = self._words.levels(block, lines)
        begin = len(lines) - 1 - len(lines) // _LAST if self._is_huge else 0
        if 2 in levels[:begin]:
            near = {j for i in range(begin) if levels[i] == 2 for j in range(max(i - _BELOW, 0), i + 1)}
            levels[:begin] = [level if i in near else 0 for i, level in enumerate(levels[:begin])]
            begin = 0
        for i, level in enumerate(levels[begin:], begin):
            if level:
                self._looked += 1
                line = lines[i]
                for part in line.split(b"\r") if b"\r" in line else (line,):
                    self._part(part, number + i)
        if self._looked >= _WHOLE and not self._is_huge:
            self._is_huge, self._words = True, LinesWithWords(_ALL_WORDS, _NEVER_SKIPPED)
        return number + len(lines) - (not lines[-1])

    def _part(self, line: bytes, number: int) -> None:
        """Read one line, or one state of a line that is printed over and over."""
        shape = line[:_CUT].translate(None, _VARYING)
        if barren := self._barren.get(shape, 0):
            self._barren[shape] = barren + 1
            if barren >= _BARREN and barren % _AMONG:
                return
        tells = False
        if line[:5] in _EPOCH_HEADS and (found := _EPOCH.match(line)) is not None:
            self._epoch, tells = float(found[1]), True
        for word in _LOAD_WORDS:
            if word in line and _LOADS.search(line, 0, _CUT) and not _NOT_LOADED.search(line, 0, _CUT):
                self._series.note_load(self._file, number)
                tells = True
                break
        if any(word in line for word in _VALUES):
            tells = self._line(line, number, shape) or tells
        elif any(word in line for word in _HEADS):
            self._counter(line, number)
            tells = True
        if tells:
            self._barren.pop(shape, None)
        elif not barren:
            if len(self._barren) >= _CACHE:
                self._barren.clear()
            self._barren[shape] = 1

    def _line(self, line: bytes, number: int, shape: bytes) -> bool:
        """Read a line with a word of a value; return whether it holds one."""
        if len(line) > _CUT:
            line = line[:_CUT]
        if b"\x1b" in line:
            line = _ESCAPE.sub(b"", line)
            shape = line.translate(None, _VARYING)
        plan = self._plans.get(shape)
        return (plan is not None and self._follow(plan, line, number)) or self._read_line(line, number, shape)

    def _follow(self, plan: Plan, line: bytes, number: int) -> bool:  # noqa: PLR0912 - each call would cost too much
        """Read a line as one of its shape was read before; return False if it is not laid out like it."""
        plan.read[0] += 1
        if plan.read[0] > _MANY and plan.read[0] % _EACH:
            return True
        step, epoch, rank, at = 0.0, -1.0, self._rank, 0
        values: list[float] = []
        try:
            for before, end, role in plan.places:
                at = line.index(before, at) + len(before)
                if end == b" ":
                    text = line[at : at + 40].split(None, 1)[0]
                else:
                    text = line[at : line.index(end, at)] if end else line[at:]
                try:
                    value = float(text)
                except ValueError:
                    value = float(text.replace(b",", b""))
                if role >= 0:
                    values.append(value)
                elif role == _STEP_ROLE:
                    step = value
                elif role == _EPOCH_ROLE:
                    epoch = value
                else:
                    rank = int(value)
        except (ValueError, IndexError):
            return False
        if 0.0 in values:  # whether it is rounded is seen where all is read
            return False
        curves = plan.curves.get(rank)
        if curves is None:
            found = self._curves_of(plan.names, rank, plan.unit)
            if None in found:
                return False
            curves = plan.curves[rank] = [curve for curve in found if curve is not None]
        last = curves[0].steps
        if epoch >= 0 or not last or last[-1] == step:
            for curve, value, name in zip(curves, values, plan.names, strict=True):
                put(curve, value, step, number, epoch, factor=name.factor)
            return True
        for curve, value, name in zip(curves, values, plan.names, strict=True):
            if len(curve.steps) >= MOST_VALUES:
                continue
            if curve.epochs:  # other lines of it name an epoch
                curve.epochs.append(-1.0)
            curve.steps.append(step)
            curve.values.append(value * name.factor)
            curve.lines.append(number)
        return True

    def _curves_of(self, names: Iterable[Name], rank: int | None, unit: str) -> list[Curve | None]:
        owner = Owner(self._file, rank)
        return [self._series.curve(owner, name, unit) for name in names]

    def _read_line(self, line: bytes, number: int, shape: bytes) -> bool:
        """Read a line of a shape that was not seen before; return whether it holds a value."""
        pairs = list(self._pairs(line))
        values = [pair for pair in pairs if pair.name.kind not in ("step", "epoch")]
        if not values:
            return False
        count = self._count(line, pairs, number)
        if count is None and all(pair.name.kind == "memory" for pair in values):
            count = Count(float(number), "line", -1)
        if count is None:
            return True
        rank, rank_at = self._rank, -1
        if rank is None and (found := _RANK.match(line)) is not None:
            group = next(i for i in range(1, 5) if found[i] is not None)
            rank, rank_at = int(found[group]), found.start(group)
        for pair, curve in zip(values, self._curves_of([v.name for v in values], rank, count.unit), strict=True):
            if curve is None:
                continue
            curve.total = count.total or curve.total
            curve.rounded = curve.rounded or count.rounded
            value = _value(pair.text)
            put(curve, value, count.step, number, count.epoch, factor=pair.name.factor)
            if value == 0 and not _is_exact_zero(pair.text):
                curve.exact = False
        if shape in self._plans:
            return True
        if len(self._plans) >= _CACHE:
            self._plans.clear()
        self._plans[shape] = self._plan(line, values, count, rank_at)
        return True

    def _plan(self, line: bytes, values: list[Value], count: Count, rank_at: int) -> Plan | None:
        """Return how to read the next line of this shape; None where its step is not on the line."""
        if count.at < 0 or (count.epoch >= 0 and count.epoch_at < 0):
            return None
        wanted = [v for v in values if v.name.kind not in ("skipped", "metric")]
        wanted.sort(key=lambda value: value.at)
        roles = [(v.at, i) for i, v in enumerate(wanted)] + [(count.at, _STEP_ROLE)]
        if count.epoch_at >= 0 and count.epoch_at != count.at:
            roles.append((count.epoch_at, _EPOCH_ROLE))
        if rank_at >= 0:
            roles.append((rank_at, _RANK_ROLE))
        places, done = [], 0
        for at, role in sorted(roles):
            found = _ONE_NUMBER(line, at)
            if found is None:
                return None
            begin = at
            while begin > done and at - begin < _BEFORE and not 48 <= line[begin - 1] <= 57:
                begin -= 1
            before = line[begin:at].rstrip(b" ")
            end = line[found.end() : found.end() + 1]
            if not before or line.find(before, done) != begin or end in (b".", b"-", b"+"):
                return None
            places.append(Place(before, end, role))
            done = found.end()
        return Plan(tuple(places), tuple(v.name for v in wanted), count.unit, {}, [0]) if wanted else None

    def _counter(self, line: bytes, number: int) -> None:
        if (whole := _GLOBAL_STEP.search(line)) is not None:
            self._head = Head(float(whole[1]), 0.0, number)
        elif (found := _BAR.search(line) or _STEP.search(line)) is not None and found[2]:
            self._head = Head(float(found[1]), float(found[2]), number)

    def _pairs(self, line: bytes) -> Iterator[Value]:
        """Yield what is known of the pairs of a line."""
        if b'"key"' in line and (keyed := _KEY_VALUE.search(line)) is not None:
            name = self._meaning(keyed[1])
            if name is not None:
                yield Value(name, keyed[2], keyed.start(2))
        before, held_out, first = 0, False, True
        seen: set[str] = set()
        for found in _PAIR.finditer(line):
            at = found.start()
            segment = line[max(before, at - 64) : at]
            before = found.end()
            name = self._meaning(segment)
            if name is None or name.kind == "memory":  # with its unit, below
                continue
            if first and name.kind not in ("step", "epoch"):
                first, held_out = False, _HELD_OUT.search(line, 0, at) is not None and not name.held_out
            if name.name in seen:
                continue
            seen.add(name.name)
            yield Value(self._unit(name, found[2], held_out=held_out), found[1], found.start(1))
        known = {name.lower() for name in seen}
        for found in _BARE.finditer(line):
            name = self._meaning(found[1])
            if name is None or name.name.lower() in known or (name.kind == "step_time" and b"." not in found[2]):
                continue
            known.add(name.name.lower())
            if first:
                first, held_out = False, _HELD_OUT.search(line, 0, found.start()) is not None and not name.held_out
            yield Value(self._unit(name, found[3], held_out=held_out), found[2], found.start(2))
        yield from self._zeros(line)
        if any(word in line for word in _MEMORY_WORDS):
            yield from self._memory(line, known)
        if (b"it" in line or b"/step" in line) and (rate := _RATE.search(line)) is not None:
            name = (
                Name("throughput", "it/s")
                if rate[2].lower() == b"it/s"
                else Name("step_time", rate[2].decode(), factor=1e-3 if rate[2][:1].lower() == b"m" else 1.0)
            )
            yield Value(name, rate[1], rate.start(1))

    def _zeros(self, line: bytes) -> Iterator[Value]:
        """Yield the zeros of unknown names."""
        if b"0e" in line or b"0E" in line:
            for found in _ZERO.finditer(line):
                if self._meaning(found[1]) is None:
                    yield Value(Name("zero", found[1].decode()), found[2], found.start(2))

    def _memory(self, line: bytes, known: set[str]) -> Iterator[Value]:
        """Yield the amounts of memory of a line, by their units; amounts without one are compared as they are."""
        for found in _MEMORY.finditer(line):
            name = meaning(found[1].decode("utf-8", "replace"))
            if name is None or name.kind != "memory" or name.name.lower() in known:
                continue
            known.add(name.name.lower())
            unit = (found["of"] or found[4] or _last_unit(found[1])).lower()
            factor = _MIB[unit[:1]]
            yield Value(name._replace(factor=factor, unit="MiB" if unit else ""), found[3], found.start(3))

    def _unit(self, name: Name, unit: bytes, *, held_out: bool) -> Name:
        if unit and name.kind == "step_time":
            name = name._replace(factor=1e-3)
        if held_out and name.kind in ("loss", "part", "metric"):
            return name._replace(held_out=True)
        return name

    def _meaning(self, segment: bytes) -> Name | None:
        """Return what the name at the end of a segment means."""
        try:
            return self._keys[segment]
        except KeyError:
            pass
        text = segment.rstrip(b" '\"\t")
        parts = _SEPARATORS.split(text)
        last = (parts[-1] or (parts[-2] if len(parts) > 1 else b"")) if parts else b""
        words = _NUMBERS.split(last.decode("utf-8", "replace"))[-1]  # `epoch 3 step 120 loss`
        name = meaning(words)
        if name is None and " " in words.strip():  # `saved, now loss`
            name = meaning(words.split()[-1])
        if len(self._keys) >= _CACHE:
            self._keys.clear()
        self._keys[segment] = name
        return name

    def _count(self, line: bytes, pairs: list[Value], number: int) -> Count | None:
        """Return the step that a line names, or that one before it has named."""
        named = {pair.name.name.lower(): pair for pair in pairs if pair.name.kind == "step"}
        at, at_place = -1.0, -1
        epoch = _EPOCH.search(line) if b"poch" in line or b"POCH" in line else None
        if epoch is not None:
            at, at_place = float(epoch[1]), epoch.start(1)
        for name in _GLOBAL_STEPS:
            if name in named:
                return Count(_value(named[name].text), "update" if name == "num_updates" else "step", named[name].at)
        found = _BAR.search(line) if b"%|" in line else None
        if found is not None:
            return Count(float(found[1]), "step", found.start(1), float(found[2]), at, at_place)
        found = _STEP.search(line)
        if found is not None:
            unit = "iteration" if b"iter" in found[0].lower() else "step"
            return Count(float(found[1]), unit, found.start(1), float(found[2] or 0), at, at_place)
        if named:
            pair = next(iter(named.values()))
            return Count(_value(pair.text), "step", pair.at, 0.0, at, at_place)
        if (found := _OF.search(line, epoch.end() if epoch is not None else 0)) is not None and float(found[2]) > 1:
            at = self._epoch if at < 0 else at
            if float(found[1]) <= float(found[2]):
                return Count(float(found[1]), "step", found.start(1), float(found[2]), at, at_place)
        if self._head is not None and number - self._head.line <= _BELOW:
            return Count(self._head.step, "step", -1, self._head.total)
        if at >= 0:
            return Count(at, "epoch", at_place, rounded=epoch is not None and b"." in epoch[1])
        return None


def _last_unit(name: bytes) -> bytes:
    """Return the unit at the end of a name: `rss_mb`, `mem GiB`."""
    last = re.split(rb"[ _./-]", name.lower())[-1]
    return last if last in _UNITS else b""


def _value(text: bytes) -> float:
    try:
        return float(text.replace(b",", b"") if b"," in text else text)
    except ValueError:
        return float("nan")


def _is_exact_zero(text: bytes) -> bool:
    """True if a zero is printed in a form that would show a small number: `0`, `0.0`, `0.000E+00`, not `0.0000`."""
    low = text.lower()
    return b"e" in low or len(low.partition(b".")[2]) <= 1
