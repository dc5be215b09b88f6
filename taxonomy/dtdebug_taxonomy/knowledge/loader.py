"""Loads the knowledge next to this module, and indexes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import TypeVar

import msgspec

from dtdebug_taxonomy.knowledge.cache import load_cached
from dtdebug_taxonomy.knowledge.schema import (
    STRENGTHS,
    Cause,
    Evidence,
    KnowledgeRecord,
    Measure,
    MessageFile,
    Observation,
    Pattern,
    Release,
    Strength,
    Symptom,
)
from dtdebug_taxonomy.knowledge.word_classes import expand_classes

HOME = Path(__file__).parents[1]
STUDY = "tosem23"

R = TypeVar("R", bound=KnowledgeRecord)


class KnowledgeError(ValueError):
    """Unreadable knowledge file: the message names file, place and what was expected."""


class _PatternFile(KnowledgeRecord, frozen=True):
    pattern: tuple[Pattern, ...]


class _MeasureFile(KnowledgeRecord, frozen=True):
    measure: tuple[Measure, ...] = ()


class _ReleaseFile(KnowledgeRecord, frozen=True):
    release: tuple[Release, ...] = ()


class Knowledge:
    """All symptoms, evidence, observations and fix patterns, indexed. Immutable by habit."""

    def __init__(  # noqa: PLR0917 - as many kinds of files
        self,
        symptoms: tuple[Symptom, ...],
        messages: dict[str, MessageFile],
        observations: tuple[Observation, ...],
        patterns: tuple[Pattern, ...],
        measures: tuple[Measure, ...] = (),
        releases: tuple[Release, ...] = (),
    ) -> None:
        self.symptoms = {s.code: s for s in sorted(symptoms, key=lambda s: sort_key(s.code))}
        self.messages = messages
        self.observations = {o.key: o for o in observations}
        self.patterns = {p.id: p for p in patterns}
        self.measures = measures
        self.releases = releases
        self._likelihoods: dict[str, dict[str, dict[str, float]]] = {}

    @cached_property
    def evidence(self) -> dict[str, Evidence]:
        """Every evidence by id: the shared messages, and those local to a symptom."""
        found = {e.id: e for m in self.messages.values() for e in m.evidence}
        found.update((e.id, e) for s in self.symptoms.values() for e in s.evidence)
        return found

    @cached_property
    def causes(self) -> dict[str, tuple[Symptom, Cause]]:
        """Every cause by id, with its symptom."""
        return {c.id: (s, c) for s in self.symptoms.values() for c in s.cause}

    @cached_property
    def prior(self) -> dict[str, float]:
        """Published share of each symptom, each count raised by 1/2 (Jeffreys)."""
        weight = {code: s.counts[STUDY].faults + 0.5 for code, s in self.symptoms.items()}
        total = math.fsum(weight.values())
        return {code: w / total for code, w in weight.items()}

    def symptom(self, name: str) -> Symptom:
        """Return the symptom with a code (any case) or file id.

        Raises:
            KeyError: no symptom has this name.

        """
        wanted = name.strip().lower()
        for s in self.symptoms.values():
            if wanted in (s.code.lower(), s.id):
                return s
        raise KeyError(name)

    def likelihood(self, key: str, value: str) -> dict[str, float]:
        """Return P(observation = value | symptom) for each code."""
        if key not in self._likelihoods:
            o = self.observations[key]
            usual = self._shares[key]
            said = {code: s.observed.get(key) for code, s in self.symptoms.items()}
            rows = {code: spread(row, o) if row else usual for code, row in said.items()}
            self._likelihoods[key] = {v.value: {code: row[v.value] for code, row in rows.items()} for v in o.value}
        return self._likelihoods[key][value]

    @cached_property
    def _shares(self) -> dict[str, dict[str, float]]:
        return {key: spread({}, o) for key, o in self.observations.items()}

    @cached_property
    def pattern_ids(self) -> dict[str, str]:
        """Published name of a fix pattern -> its id."""
        return {p.name: p.id for p in self.patterns.values()}

    def share(self, key: str, value: str) -> float:
        """Return P(observation = value) over all faults, if nothing else is known."""
        return self._shares[key][value]


def spread(given: Mapping[str, Strength], observation: Observation) -> dict[str, float]:
    """Return a distribution over the values: worded ones as given, the others share the rest."""
    named = {v: STRENGTHS[w] for v, w in given.items()}
    rest = {v.value: STRENGTHS[v.share] for v in observation.value if v.value not in named}
    total = math.fsum(named.values())
    left = max(1.0 - total, 0.02) if rest else 0.0
    scale = math.fsum(rest.values()) or 1.0
    weight = {**named, **{v: left * w / scale for v, w in rest.items()}}
    norm = math.fsum(weight.values())
    return {v.value: weight[v.value] / norm for v in observation.value}


def sort_key(code: str) -> tuple[str | int, ...]:
    """Return a key that orders codes as the study does: D.1.2 before D.1.10, `other` last."""
    return tuple(int(part) if part.isdigit() else 999 if part == "other" else ord(part[0]) for part in code.split("."))


def read_record(path: Path, kind: type[R]) -> R:
    """Read one TOML file as a record.

    Raises:
        KnowledgeError: not TOML, an unknown or missing key, a wrong type.

    """
    try:
        return msgspec.convert(expand_classes(msgspec.toml.decode(path.read_bytes())), kind)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise KnowledgeError(f"{path}: {error}") from error


def load(home: Path = HOME) -> Knowledge:
    """Load the knowledge in a folder (default: the one that is shipped).

    Raises:
        KnowledgeError: a file is broken; the text names file, place and what was expected.

    """
    with _lock:
        return _load(home)


_lock = Lock()
"""Serialises decoding: msgspec inspects a type without a lock, and two threads that do so first crash the process."""


class _Files(msgspec.Struct, frozen=True, array_like=True):
    """Contents of the files of a folder."""

    symptoms: tuple[Symptom, ...]
    messages: dict[str, MessageFile]
    observations: tuple[Observation, ...]
    patterns: tuple[Pattern, ...]
    measures: tuple[Measure, ...]
    releases: tuple[Release, ...]


@lru_cache(maxsize=4)
def _load(home: Path) -> Knowledge:
    files = load_cached("knowledge", _Files, lambda: _files(home)) if home == HOME else _files(home)
    return Knowledge(files.symptoms, files.messages, files.observations, files.patterns, files.measures, files.releases)


def _files(home: Path) -> _Files:
    replace = msgspec.structs.replace
    files = sorted((home / "symptoms").glob("*.toml"))
    symptoms = tuple(replace(read_record(f, Symptom), id=f.stem) for f in files)
    observations = tuple(
        replace(read_record(f, Observation), key=f.stem) for f in sorted((home / "observations").glob("*.toml"))
    )
    messages = {f.stem: read_record(f, MessageFile) for f in sorted((home / "messages").glob("*.toml"))}
    patterns = read_record(home / "patterns.toml", _PatternFile).pattern
    measures = read_record(home / "measures.toml", _MeasureFile).measure if (home / "measures.toml").is_file() else ()
    releases = tuple(
        r for f in sorted((home / "versions").glob("*.toml")) for r in read_record(f, _ReleaseFile).release
    )
    return _Files(_with_named(symptoms, messages), messages, observations, patterns, measures, releases)


def _with_named(symptoms: tuple[Symptom, ...], messages: Mapping[str, MessageFile]) -> tuple[Symptom, ...]:
    """Add each message that names a cause to that cause's evidence, so that it is not written twice."""
    replace = msgspec.structs.replace
    naming: dict[tuple[str, str], dict[str, Strength]] = {}
    for e in (*(e for m in messages.values() for e in m.evidence), *(e for s in symptoms for e in s.evidence)):
        for code in e.symptoms or [s.code for s in symptoms]:
            for cause in (*e.names, *(c.cause for c in e.cure)):
                naming.setdefault((code, cause), {})[e.id] = "often"
    return tuple(
        replace(s, cause=tuple(replace(c, evidence={**naming.get((s.code, c.id), {}), **c.evidence}) for c in s.cause))
        for s in symptoms
    )
