"""Builds findings from a catalogue entry and a measurement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

from dtdebug.doctor.report_types import HostFinding, Remedy
from dtdebug.doctor.types import Arrival, Severity
from dtdebug.privacy.sanitize import one_line
from dtdebug_taxonomy.knowledge.preflight import load

_TEXT = 400


def finding(
    name: str,
    text: str,
    *,
    hosts: Sequence[str] = (),
    pairs: Sequence[tuple[str, str]] = (),
    measured: str = "",
    expected: str = "",
    severity: Severity | None = None,
    fix: str = "",
    commands: Sequence[str] = (),
    export: Mapping[str, str] | None = None,
) -> HostFinding:
    """Return a finding, completed from the catalogue entry of its id."""
    known = load()[name]
    return HostFinding(
        id=name,
        area=known.area,
        severity=severity or known.severity,
        text=one_line(text, _TEXT),
        hosts=tuple(dict.fromkeys(hosts)),
        pairs=tuple(pairs),
        measured=one_line(measured, _TEXT),
        expected=one_line(expected, _TEXT),
        symptom=known.symptom,
        fix=Remedy(text=fix or known.fix, commands=tuple(commands), export=dict(export or {})),
    )


def labels(came: Sequence[Arrival]) -> list[str]:
    """Return display names of hosts, with an index if two share a name."""
    names = [c.look.host for c in came]
    twice = {name for name, count in Counter(names).items() if count > 1}
    return [f"{name}#{i}" if name in twice else name for i, name in enumerate(names)]


def fold_names(names: Sequence[str]) -> str:
    """Abbreviate names that differ in their last number: `h[0-2,7]`."""
    heads: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        digits = len(name) - len(name.rstrip("0123456789"))
        heads.setdefault(name[: len(name) - digits], []).append(name[len(name) - digits :])
    said = []
    for head, tails in heads.items():
        if len(tails) < 3 or "" in tails:
            said += [head + t for t in tails]
            continue
        said.append(f"{head}[{','.join(_runs(sorted(tails, key=int)))}]")
    return ", ".join(said)


def _runs(numbers: list[str]) -> list[str]:
    found: list[list[str]] = []
    for number in numbers:
        if found and int(number) == int(found[-1][-1]) + 1 and len(number) == len(found[-1][-1]):
            found[-1].append(number)
        else:
            found.append([number])
    return [run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in found]


def split_majority(values: Sequence[Hashable]) -> tuple[Hashable, list[int]]:
    """Return (most common value, indices of the other values); in a tie all values count as others."""
    counts = Counter(values).most_common(2)
    most = counts[0][0]
    tie = len(counts) > 1 and counts[0][1] == counts[1][1]
    return most, [i for i, v in enumerate(values) if tie or v != most]
