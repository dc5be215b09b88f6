"""How a verdict compares with the truth, and the table of many."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from truth import Injection, Seen

from dtdebug_taxonomy.model.ranks import CallSite, Verdict

_NOBODY = ("none", "fabric")
"""Kinds without a culprit."""


@dataclass(frozen=True)
class Score:
    """What was right about one verdict: None where there is nothing to be right about."""

    injection: Injection
    culprit: bool
    kind: bool
    where: bool | None
    said: str
    void: str = ""
    """Why this job says nothing about the analyser, if it does not."""
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        """All that can be right is."""
        return self.culprit and self.kind and self.where is not False


def score(
    injection: Injection,
    verdict: Verdict,
    now: dict[int, tuple[str, int]],
    seen: Seen | None = None,
    seconds: float = 0.0,
    void: str = "",
) -> Score:
    """Compares; `now` is where each rank stood by its own account, `seen` what dumps show if there was nothing else."""
    kinds, marked, culprits = injection.kinds(seen), injection.where(), injection.culprits
    places = [(site.file, site.line) for site in verdict.sites if site.rank in culprits]
    accepted = [place for place in (marked, *(now.get(rank) for rank in culprits)) if place is not None]
    unknown = injection.kind == "dead" or not accepted
    if seen is not None:
        unknown |= injection.own or culprits[0] not in seen.dumps or culprits[0] in seen.exchanging
    alike = seen.exchanging if seen and verdict.kind in ("not_arrived", "dead") else set()
    if verdict.kind in _NOBODY and verdict.kind in kinds:
        culprits, unknown = [], True
    return Score(
        injection,
        culprit=set(culprits) <= set(verdict.culprits) <= {*culprits, *alike},
        kind=verdict.kind in kinds,
        where=None if unknown else any(place in accepted for place in places),
        said=f"{verdict.kind} {sorted(verdict.culprits)} at {_short(verdict.sites)} ({verdict.summary[:100]}); "
        f"expected {'/'.join(kinds)} {culprits} at "
        f"{' or '.join(f'{_base(p[0])}:{p[1]}' for p in dict.fromkeys(accepted)) or '-'}",
        seconds=seconds,
        void=void,
    )


def table(scores: Sequence[Score]) -> str:
    """Fault and layout by culprit, kind and call site, then every miss."""
    counted = [one for one in scores if not one.void]
    rows: dict[str, list[Score]] = defaultdict(list)
    for one in counted:
        rows[one.injection.fault].append(one)
    layouts: dict[str, list[Score]] = defaultdict(list)
    for one in counted:
        layouts[f"{one.injection.layout} x{one.injection.world}"].append(one)
    lines = [f"{'':16}{'jobs':>6}{'culprit':>9}{'kind':>9}{'where':>9}{'all':>9}"]
    for name, some in [*rows.items(), *sorted(layouts.items()), ("all", counted)]:
        lines.append(f"{name:16}{len(some):6}{_share(s.culprit for s in some):>9}{_share(s.kind for s in some):>9}"
                     f"{_share(s.where for s in some):>9}{_share(s.right for s in some):>9}")  # fmt: skip
    lines += [
        "",
        *(f"miss  {one.injection.name} ({one.injection.spot}): {one.said}" for one in counted if not one.right),
    ]
    lines += [f"void  {one.injection.name} ({one.injection.spot}): {one.void}" for one in scores if one.void]
    return "\n".join(lines)


def _share(values: Iterable[bool | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{sum(known)}/{len(known)}" if known else "-"


def _short(sites: Sequence[CallSite]) -> str:
    return ", ".join(f"{site.rank}={_base(site.file)}:{site.line}" for site in sites[:2]) or "-"


def _base(path: str) -> str:
    return path.rsplit("/", 1)[-1]
