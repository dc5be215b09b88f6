"""Presents curves: the short answer to the gravest finding, a line on healthy ones, the table, and the JSON."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import msgspec

from dtdebug.privacy.sanitize import clean, one_line
from dtdebug.recorded.curves import judge_counters
from dtdebug.recorded.curves.curve import Curve, Curves, spell
from dtdebug.recorded.curves.finding import CurveFinding
from dtdebug.recorded.curves.judge import findings
from dtdebug.recorded.curves.picture import sparkline
from dtdebug.recorded.curves.read import read_curves, read_printed
from dtdebug_taxonomy.model.answer import Answer, Spot, Step

VERSION = 1
_WIDE, _NARROW, _ROWS = 60, 24, 40
_LEAST = 5
"""Values from which a curve is worth a line."""
MORE = "all curves: --full"


class CurveReading(NamedTuple):
    """Curves of one question, and what is wrong with them."""

    curves: list[Curve]
    findings: list[CurveFinding]
    notes: list[str]

    @property
    def faulty(self) -> bool:
        """True if a fault was found."""
        return any(row.grave for row in self.findings)

    @property
    def main(self) -> Curve | None:
        """The loss with most values, else the curve with most."""
        losses = [c for c in self.curves if c.kind == "loss" and not c.name.held_out]
        return max(losses or self.curves, key=len, default=None)


def read(paths: Sequence[str], text: str = "") -> CurveReading:
    """Read and judge the curves of files, or of a text that was printed."""
    found = read_printed(text, "standard input") if not paths else read_curves(paths)
    return judge(found)


def judge(found: Curves) -> CurveReading:
    """Return curves with what is wrong with them."""
    return CurveReading(found.curves, findings(found.curves), [one_line(note, 200) for note in found.notes])


def short_answer(reading: CurveReading, stream: TextIO) -> Answer:
    """Return the answer to the gravest finding, with the picture of its curve."""
    first, *others = reading.findings
    curve = _curve_of(first, reading.curves)
    also = [f"Also: {row.says}" for row in others if row.kind != first.kind] or reading.notes
    run = f"Run {first.run}: " if first.run else ""
    return Answer(
        headline=clean(f"{run}{first.says}"),
        spots=(_spot(first, curve, plain=not is_unicode(stream)),),
        why=clean(first.why),
        sure="likely" if first.cause else "unknown",
        next=Step(text=first.next, command=first.command) if first.next else None,
        notes=tuple(clean(note) for note in also[:1]),
    )


def is_unicode(stream: TextIO) -> bool:
    """True if a stream can show more than ASCII."""
    return (getattr(stream, "encoding", "") or "").lower().startswith("utf")


def _curve_of(row: CurveFinding, curves: Sequence[Curve]) -> Curve | None:
    ranks = row.ranks
    same = [c for c in curves if c.name.name == row.curve and c.owner.file == row.file and c.owner.run == row.run]
    return next((c for c in same if not ranks or c.owner.rank in ranks), same[0] if same else None)


def _spot(row: CurveFinding, curve: Curve | None, *, plain: bool) -> Spot:
    file = clean(row.file)
    if curve is None:
        state = f"{clean(row.curve)}: {row.values[-1].value}" if row.values else ""
        return Spot(ranks=row.ranks, file=file, line=row.line, state=state)
    drawn, begins = sparkline(curve, _WIDE, plain=plain)
    place = next((i for i, line in enumerate(curve.lines) if line == row.line and curve.label(i) == row.step), 0)
    column = max(0, bisect_right(begins, place) - 1)
    _, values = curve.finite()
    least = f", least {spell(min(values))}" if values else ""
    state = f"{clean(curve.name.name)}: {spell(curve.values[0])} at first{least}, {spell(curve.values[-1])} at the end"
    return Spot(ranks=row.ranks, file=file, line=row.line, state=state, code=drawn, mark=(column, column + 1))


def summary_line(reading: CurveReading, stream: TextIO) -> str:
    """Return one line on curves in which nothing is wrong; "" where there is none."""
    curve = reading.main
    if curve is None or len(curve) < _LEAST:
        return ""
    _, values = curve.finite()
    if not values:
        return ""
    drawn, _ = sparkline(curve, _NARROW, plain=not is_unicode(stream))
    parts = f" in {len(curve.attempts)} parts" if len(curve.attempts) > 1 and not curve.mixed else ""
    mixed = ": several counters run through each other, not judged" if curve.mixed else ""
    fallen = next((f for c in reading.curves if c.kind == "count" and (f := judge_counters.fall(c))), "")
    mixed = mixed or (f"; {fallen}, which is not judged" if fallen else "")
    return clean(
        f"{curve.name.name} {drawn} {spell(values[0])} -> {spell(values[-1])}, {curve.label(0)} to "
        f"{curve.label(len(curve) - 1)}{parts}{mixed or '; nothing found in ' + _count(reading)}"
    )


def _count(reading: CurveReading) -> str:
    count = sum(len(c) >= _LEAST for c in reading.curves)
    return f"{count} curve{'s' * (count != 1)}"


def also_line(reading: CurveReading) -> str:
    """Return one line on a finding where something else is the answer."""
    first = reading.findings[0]
    where = f" ({Path(first.file).name}:{first.line})" if first.line else ""
    return clean(f"Curves: {first.says}{where}")


def table(reading: CurveReading, stream: TextIO) -> str:
    """Return all findings and curves."""
    lines = []
    for row in reading.findings:
        where = f" [{row.file}:{row.line}]" if row.line else f" [{row.file}]"
        lines.append(f"  {row.kind}: {row.says}; {row.why}{where}")
    for curve in sorted(reading.curves, key=lambda c: (-len(c), c.name.name))[:_ROWS]:
        drawn, _ = sparkline(curve, _NARROW, plain=not is_unicode(stream))
        who = f" rank {curve.owner.rank}" if curve.owner.rank is not None else ""
        who += f" {curve.owner.run}" if curve.owner.run else ""
        restarts = f", {len(curve.attempts) - 1} restarts" if len(curve.attempts) > 1 else ""
        lines.append(
            f"  {drawn:<{_NARROW}} {curve.name.name}{who}: {spell(curve.values[0])} -> {spell(curve.values[-1])}, "
            f"{len(curve)} values, {curve.label(0)} to {curve.label(len(curve) - 1)}{restarts}"
        )
    if len(reading.curves) > _ROWS:
        lines.append(f"  ... and {len(reading.curves) - _ROWS} more with --format json")
    lines += [f"  note: {note}" for note in reading.notes[:8]]
    return "\n".join(clean(line) for line in lines)


def as_json(reading: CurveReading) -> dict[str, Any]:
    """Return the JSON form."""
    rows = [
        {
            "name": clean(c.name.name), "kind": c.kind, "evaluation": c.name.held_out, "file": clean(c.owner.file),
            "rank": c.owner.rank, "run": clean(c.owner.run), "values": len(c), "first_step": c.label(0),
            "last_step": c.label(len(c) - 1), "first": _number(c.values[0]), "last": _number(c.values[-1]),
            "not_finite": sum(not math.isfinite(v) for v in c.values), "restarts": len(c.attempts) - 1,
            "mixed": c.mixed,
        }
        for c in reading.curves
    ]  # fmt: skip
    found = [
        {k: clean(v) if isinstance(v, str) else v for k, v in msgspec.to_builtins(f).items()} for f in reading.findings
    ]
    return {"v": VERSION, "findings": found, "curves": rows, "notes": reading.notes}


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else spell(value)
