"""Words a forecast of memory."""

from __future__ import annotations

from collections.abc import Callable

from dtdebug.experiments.memory.forecast import Forecast, RankPeak, by_class, growth, of_batch, usable
from dtdebug_taxonomy.model.answer import Answer, Fix, Spot
from dtdebug_taxonomy.model.rank_ranges import spell
from dtdebug_taxonomy.model.sizes import spell_bytes

_SAME = 0.01
"""Share of a peak by which ranks may differ and be called alike."""


def answer(found: Forecast, code_at: Callable[[str, int], str]) -> Answer:
    """Return the short answer."""
    worst = found.peaks[found.worst]
    site = worst.site
    where = f"{worst.phase}{f' of {worst.module}' if worst.module else ''}"
    spots = (
        Spot(file=site[0], line=site[1], code=code_at(*site), state=f"at the peak, in {where}"),
    ) if site[0] else ()  # fmt: skip
    more = growth(worst)
    if more and worst.kept[0][1]:
        size, file, line = worst.kept[0]
        made = f"makes {spell_bytes(size)} of what is kept"
        spots = (Spot(file=file, line=line, code=code_at(file, line), state=made), *spots)
    others = [rank for rank, peak in found.peaks.items() if peak.peak < worst.peak * (1 - _SAME)]
    notes = ["A forecast from sizes: no GPU was asked, and the allocator's fragments are not in it."]
    if others:
        low = min(found.peaks[rank].peak for rank in others)
        notes.insert(0, f"{spell(tuple(others), 6)} need less, from {spell_bytes(low)} on.")
    if found.failed:
        rank, why = next(iter(found.failed.items()))
        notes.insert(0, f"Rank {rank} was not rehearsed: {why}")
    return Answer(
        headline=_headline(found, worst),
        spots=spots,
        why=", ".join(f"{name} {spell_bytes(value)}" for name, value in by_class(worst)) + ".",
        fix=_fix_of_growth(worst) if more else _fix(found),
        sure="well",
        notes=(" ".join(notes[:2]),),
    )


def _headline(found: Forecast, worst: RankPeak) -> str:
    alike = [r for r, p in found.peaks.items() if p.peak >= worst.peak * (1 - _SAME)]
    who = f"each of {found.world} ranks" if len(alike) == len(found.peaks) else spell(tuple(alike), 6)
    peak = f"{spell_bytes(worst.peak)} at the peak on {who}"
    if more := growth(worst):
        left = max(0, usable(found.gpu) - worst.peak) if found.gpu else 0
        ends = f" {spell_bytes(found.gpu)} are full after about {2 + left // more} steps." if found.gpu else ""
        return f"Each step keeps {spell_bytes(more)} more; {peak} in the second step.{ends}"
    if not found.gpu:
        return f"{peak[:1].upper()}{peak[1:]}."
    room = usable(found.gpu)
    fits = worst.peak <= room
    batch = ""
    if found.largest_batch and worst.batch:
        batch = f" A batch of up to about {found.largest_batch} fits (now {worst.batch})."
    elif not fits and worst.batch:
        batch = f" No batch fits: {spell_bytes(worst.peak - of_batch(worst))} do not depend on it."
    return (
        f"{'It fits' if fits else 'It does not fit'} in {spell_bytes(found.gpu)}: "
        f"{peak}, of {spell_bytes(room)} for tensors.{batch}"
    )


def _fix_of_growth(peak: RankPeak) -> Fix:
    held = f"`{peak.holder}` holds tensors of earlier steps: keep" if peak.holder else "Keep"
    return Fix(text=f"{held} numbers instead (`loss.item()`), or copies without a graph on the CPU.")


def _fix(found: Forecast) -> Fix | None:
    rows = [s for s in found.savings if s.bytes > found.peaks[found.worst].peak // 50][:3]
    if not rows:
        return None
    return Fix(text="It would save: " + "; ".join(f"{spell_bytes(s.bytes)} {s.what}" for s in rows) + ".")
