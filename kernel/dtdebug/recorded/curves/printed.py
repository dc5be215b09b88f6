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

from dtdebug.recorded.curves.curve import Name, Owner, meaning
from dtdebug.recorded.curves.series import Series

_NUMBER = rb"[-+]?(?:\d[\d,]{0,15}(?:\.\d{0,20})?(?:[eE][-+]?\d{1,3})?|\.\d{1,20}|(?i:nan|inf(?:inity)?)(?![a-zA-Z]))"
_PAIR = re.compile(
    rb"[:=] {0,12}[\['\"(]{0,2}(?:tensor\()?(" + _NUMBER + rb")(?![\d:]|\.\d|/\d|[a-zA-Z_]{3})(ms\b|)", re.ASCII
)
_BARE = re.compile(
    rb"(?i)(?<![\w/])((?:(?:train|val|valid|validation|test|eval|training|lm)[ _]?)?loss|lr|(?:grad[ _])?norm|time)"
    rb"[ \t]{1,6}(" + _NUMBER + rb")(?![\d:]|/\d)(ms\b|)",
    re.ASCII,
)
_RATE = re.compile(rb"(?i)(?<![\w.])(\d{1,9}(?:\.\d{1,9})?) ?(s/it|it/s|ms/step|s/step|ms/it)\b", re.ASCII)
_STEP = re.compile(
    rb"(?i)\b(?:(?:global|train|training|optimizer|completed)[ _]?)?(?:iteration|iter|step|batch|it|update|num_updates)s?\b"
    rb"['\"]?(?:\(train\)|\(val\))?[ _:=#\[(\"']{0,12}(\d{1,12})(?!\d|[:,]\d|\.\d*[1-9]|ms|s\b|it/s)(?:\.0{1,6})?"
    rb"(?: {0,4}/ {0,9}(\d{1,12}))?",
    re.ASCII,
)
_EPOCH = re.compile(
    rb"(?i)\bepochs?\b['\"]?(?:\(train\)|\(val\))?[ _:=#\[(\"']{0,6}(\d{1,6}(?:\.\d{1,18})?)(?![\d:])", re.ASCII
)
_OF = re.compile(rb"(?:^|[\[|:(\]]) {0,8}(\d{1,9}) ?/ ?(\d{1,9})(?![\d/])(?=[\] )(:|,\t]|$)", re.ASCII)
_BAR = re.compile(rb"\d%\|[^|\n]{0,200}\| {0,8}(\d{1,12})/(\d{1,12}) \[", re.ASCII)
_RANK = re.compile(
    rb"(?i)^.{0,80}?\brank[ _=:#\[-]{0,3}(\d{1,6})\b|^ {0,6}(\d{1,6}): |^\[(\d{1,6})\]: ?|^.{0,40}?\[default(\d{1,4})\]",
    re.ASCII,
)
_KEY_VALUE = re.compile(rb'"key": "([^"\n]{1,60})", "value": "?(' + _NUMBER + rb")", re.ASCII)
_HELD_OUT = re.compile(rb"(?i)\b(?:validation|validating|valid|val|eval|evaluation|evaluating|test)\b", re.ASCII)
_ESCAPE = re.compile(rb"\x1b\[[0-9;]{0,12}[A-Za-z]")
_WORDS = (b"oss", b"OSS", b"lr", b"LR", b"orm", b"earning", b"scale", b"seconds", b"tep", b"iter")
"""Each line that is read holds one of these."""
_VALUES = (b"oss", b"OSS", b"norm", b"lr", b"LR", b"earning", b"timing", b"seconds", b"elapsed", b"time")
_CUT = 4000
"""Bytes of a line that are read."""
_BELOW = 64
"""Lines below one that names a step alone for which it counts."""
_CACHE = 4096
_NUMBERS = re.compile(r"(?<![\w@])\d[\d.,%:/]{0,20}\s")
_SEPARATORS = re.compile(rb"[|,;{}\t\]\[>]|  +| - |: |\) ")


class Head(NamedTuple):
    """What the lines before have said of the step."""

    step: float
    total: float
    line: int


class PrintedLines:
    """Reader of one log."""

    def __init__(self, series: Series, file: str, rank: int | None = None) -> None:
        self._series, self._file, self._rank = series, file, rank
        self._keys: dict[bytes, Name | None] = {}
        self._owners: dict[int | None, Owner] = {}
        self._head: Head | None = None
        self._epoch = -1.0
        self._places: dict[Owner, int] = {}

    def read(self, lines: Iterable[bytes], begin: int = 1) -> int:
        """Read lines; return the number of the next one."""
        number = begin
        for line in lines:
            if b"\r" in line:
                for part in line.split(b"\r"):
                    self._line(part, number)
            else:
                self._line(line, number)
            number += 1
        return number

    def _line(self, line: bytes, number: int) -> None:
        if line[:5] in (b"Epoch", b"epoch") and (found := _EPOCH.match(line)) is not None:
            self._epoch = float(found[1])
        for word in _VALUES:
            if word in line:
                break
        else:
            if b"[batch=" in line or b"%|" in line:
                self._counter(line, number)
            return
        line = line[:_CUT]
        if b"\x1b" in line:
            line = _ESCAPE.sub(b"", line)
        pairs = list(self._pairs(line))
        if not pairs:
            return
        values = [pair for pair in pairs if pair[0].kind not in ("step", "epoch")]
        if not values:
            return
        step, total, epoch, unit = self._step(line, pairs, number)
        if step is None:
            return
        owner = self._owner(line)
        for name, value, text in values:
            curve = self._series.add(
                owner, name, value, step, line=number, epoch=epoch, total=total, unit=unit
            )
            if curve is not None and value == 0 and not _is_exact_zero(text):
                curve.exact = False

    def _counter(self, line: bytes, number: int) -> None:
        found = _BAR.search(line) or _STEP.search(line)
        if found is not None and found[2]:
            self._head = Head(float(found[1]), float(found[2]), number)

    def _pairs(self, line: bytes) -> Iterator[tuple[Name, float, bytes]]:
        """Yield what is known of the pairs of a line."""
        if b'"key"' in line and (keyed := _KEY_VALUE.search(line)) is not None:
            name = self._meaning(keyed[1])
            if name is not None:
                yield name, _value(keyed[2]), keyed[2]
        before, held_out, first = 0, False, True
        seen: set[str] = set()
        for found in _PAIR.finditer(line):
            at = found.start()
            segment = line[max(before, at - 64) : at]
            before = found.end()
            name = self._meaning(segment)
            if name is None:
                continue
            if first and name.kind not in ("step", "epoch"):
                first, held_out = False, _HELD_OUT.search(line, 0, at) is not None and not name.held_out
            if name.name in seen:
                continue
            seen.add(name.name)
            yield self._unit(name, found[2], held_out=held_out), _value(found[1]), found[1]
        known = {name.lower() for name in seen}
        for found in _BARE.finditer(line):
            name = self._meaning(found[1])
            if name is None or name.name.lower() in known or (name.kind == "step_time" and b"." not in found[2]):
                continue
            known.add(name.name.lower())
            if first:
                first, held_out = False, _HELD_OUT.search(line, 0, found.start()) is not None and not name.held_out
            yield self._unit(name, found[3], held_out=held_out), _value(found[2]), found[2]
        if (b"it" in line or b"/step" in line) and (rate := _RATE.search(line)) is not None:
            if rate[2].lower() == b"it/s":
                yield Name("throughput", "it/s"), float(rate[1]), rate[1]
            else:
                milli = rate[2][:1].lower() == b"m"
                yield Name("step_time", rate[2].decode(), factor=1e-3 if milli else 1.0), float(rate[1]), rate[1]

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

    def _step(
        self, line: bytes, pairs: list[tuple[Name, float, bytes]], number: int
    ) -> tuple[float | None, float, float, str]:
        """Return step, total, epoch and unit of a line."""
        named = {name.name.lower(): value for name, value, _ in pairs if name.kind == "step"}
        epochs = [value for name, value, _ in pairs if name.kind == "epoch"]
        epoch = _EPOCH.search(line) if b"poch" in line or b"POCH" in line else None
        at = float(epoch[1]) if epoch is not None else (epochs[0] if epochs else -1.0)
        for name in ("global_step", "global step", "num_updates", "trainer/global_step"):
            if name in named:
                return named[name], 0.0, -1.0, "update" if name == "num_updates" else "step"
        found = _BAR.search(line) if b"%|" in line else None
        if found is not None:
            return float(found[1]), float(found[2]), at, "step"
        found = _STEP.search(line)
        if found is not None:
            unit = "iteration" if b"iter" in found[0].lower() else "step"
            return float(found[1]), float(found[2] or 0), at, unit
        if named:
            return next(iter(named.values())), 0.0, at, "step"
        if (found := _OF.search(line, epoch.end() if epoch is not None else 0)) is not None and float(found[2]) > 1:
            if at < 0:
                at = self._epoch
            if float(found[1]) <= float(found[2]):
                return float(found[1]), float(found[2]), at, "step"
        if self._head is not None and number - self._head.line <= _BELOW:
            return self._head.step, self._head.total, -1.0, "step"
        if at >= 0:
            return at, 0.0, -1.0, "epoch"
        return None, 0.0, -1.0, ""

    def _owner(self, line: bytes) -> Owner:
        rank = self._rank
        if rank is None and (found := _RANK.match(line)) is not None:
            rank = int(next(group for group in found.groups() if group is not None))
        owner = self._owners.get(rank)
        if owner is None:
            owner = self._owners[rank] = Owner(self._file, rank)
        return owner


def _value(text: bytes) -> float:
    try:
        return float(text.replace(b",", b"") if b"," in text else text)
    except ValueError:
        return float("nan")


def _is_exact_zero(text: bytes) -> bool:
    """True if a zero is printed in a form that would show a small number: `0`, `0.0`, `0.000E+00`, not `0.0000`."""
    low = text.lower()
    return b"e" in low or len(low.partition(b".")[2]) <= 1
