"""Rules of the second study's labels: they exist, they name things that exist, and each is used or says why not.

Nothing needs a label: contributors of symptoms, causes and fix patterns are not asked for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.knowledge.second_study import HOME, SecondStudy

COUNTS = {"S": 34, "R": 28, "F": 6}
"""Symptoms, root causes and fix patterns that the study's abstract counts."""


def study_problems(knowledge: Knowledge, home: Path = HOME) -> Iterator[str]:
    """Every broken rule, as `file: what to do`."""
    study = SecondStudy(home)
    ours, labels = study.ours, study.labels
    for letter, count in COUNTS.items():
        if (found := len(study.of_kind(letter))) != count:
            yield f"second_study/labels.toml: {found} labels {letter}..; the study has {count}"
    used = [*ours.symptoms.values(), tuple(ours.causes), tuple(ours.fixes), tuple(ours.unreached)]
    used += [(*label.causes, *label.fixes) for label in labels.values()]
    if unknown := {name for names in used for name in names} - set(labels):
        yield f"second_study: no label {sorted(unknown)}"
    yield from _with_place("symptom", knowledge.symptoms, ours.symptoms, ours.without.symptoms)
    yield from _with_place("cause", knowledge.causes, _flat(ours.causes), ours.without.causes)
    yield from _with_place("fix pattern", knowledge.patterns, _flat(ours.fixes), ours.without.fixes)
    reached = {name for names in ours.symptoms.values() for name in names}
    reached |= {name for table in (ours.causes, ours.fixes) for name, ids in table.items() if ids}
    for name in labels:
        if (name in reached) == (name in ours.unreached):
            yield f"second_study/ours.toml: {name}: either something of ours leads to it or `unreached` says why not"


def _flat(table: Mapping[str, tuple[str, ...]]) -> set[str]:
    return {name for names in table.values() for name in names}


def _with_place(kind: str, known: Iterable[str], placed: Iterable[str], without: tuple[str, ...]) -> Iterator[str]:
    placed = set(placed)
    for name in sorted((placed | {*without}) - {*known}):
        yield f"second_study/ours.toml: no {kind} {name!r}"
    for name in sorted(placed & {*without}):
        yield f"second_study/ours.toml: {kind} {name}: it has a label, so take it out of `without`"
