"""The second study (arXiv 2512.20345) as a second labelling of dtdebug's knowledge.

Its full lists could not be obtained: `labels.toml` states for each name whether it was read or is a reconstruction,
`ours.toml` maps our symptoms, causes and fix patterns to it. No diagnosis rests on it, so it is read only when
it is shown.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from dtdebug_taxonomy.knowledge.loader import read_record
from dtdebug_taxonomy.knowledge.schema import KnowledgeRecord

HOME = Path(__file__).parent


class Label(KnowledgeRecord, frozen=True, kw_only=True):
    """Symptom (S), root cause (R) or fix pattern (F) of the study."""

    id: str
    """Our id: it stays when the name changes to the published one."""
    name: str
    provenance: Literal["read", "reconstructed"]
    """Provenance of the name: read in the abstract or in notes that cite the paper, or reconstructed by us."""
    stage: str = ""
    """Stage of a symptom or root cause."""
    share: str = ""
    """Published figure for it, with its source."""
    distributed: Literal["", "yes", "no", "partly"] = ""
    """For a symptom: our judgement whether it needs several processes."""
    causes: tuple[str, ...] = ()
    """For a symptom: its root causes in our judgement."""
    fixes: tuple[str, ...] = ()
    """For a symptom: its fix patterns in our judgement."""
    issues: tuple[str, ...] = ()
    """For a symptom: addresses of issues of the studied projects that show it."""

    @property
    def label_text(self) -> str:
        """Name as it is shown: always with its provenance."""
        return f"{self.name} ({self.provenance})"

    def __str__(self) -> str:
        return f"{self.id} {self.label_text}"


class About(KnowledgeRecord, frozen=True, kw_only=True):
    """The study itself."""

    title: str
    url: str
    wording: str
    """Our statement about it."""
    read: tuple[str, ...]
    """Facts from its abstract."""
    secondary: tuple[str, ...]
    """Facts from a reader's notes that cite it."""


class Without(KnowledgeRecord, frozen=True, kw_only=True):
    """Entries of ours without a fitting label."""

    symptoms: tuple[str, ...]
    causes: tuple[str, ...]
    fixes: tuple[str, ...]


class Ours(KnowledgeRecord, frozen=True, kw_only=True):
    """`ours.toml`."""

    symptoms: dict[str, tuple[str, ...]]
    """Our code -> symptoms of the study."""
    causes: dict[str, tuple[str, ...]]
    """Root cause of the study -> ids of our causes."""
    fixes: dict[str, tuple[str, ...]]
    """Fix pattern of the study -> ids of ours."""
    without: Without
    unreached: dict[str, str]
    """Label without a counterpart of ours -> reason."""


class _LabelFile(KnowledgeRecord, frozen=True, kw_only=True):
    study: About
    symptom: tuple[Label, ...]
    cause: tuple[Label, ...]
    fix: tuple[Label, ...]


class SecondStudy:
    """All labels by id, with their counterparts of ours."""

    def __init__(self, home: Path = HOME) -> None:
        file = read_record(home / "labels.toml", _LabelFile)
        self.about = file.study
        self.labels = {label.id: label for label in (*file.symptom, *file.cause, *file.fix)}
        self.ours = read_record(home / "ours.toml", Ours)

    def of_kind(self, letter: str) -> list[Label]:
        """Return all symptoms (S), root causes (R) or fix patterns (F)."""
        return [label for name, label in self.labels.items() if name.startswith(letter)]

    def of_symptom(self, code: str) -> list[Label]:
        """Return the symptoms of the study that correspond to one of ours."""
        return [self.labels[name] for name in self.ours.symptoms.get(code, ())]

    def of_cause(self, cause: str) -> list[Label]:
        """Return the root causes of the study that include one of our causes; empty if no label fits."""
        return [self.labels[name] for name, ids in self.ours.causes.items() if cause in ids]

    def of_fix(self, pattern: str) -> Label | None:
        """Return the fix pattern of the study that includes one of ours, or None."""
        return next((self.labels[name] for name, ids in self.ours.fixes.items() if pattern in ids), None)

    def own(self, label: str) -> list[str]:
        """Return our counterparts of a label: codes of symptoms, ids of causes, or ids of fix patterns."""
        codes = [code for code, names in self.ours.symptoms.items() if label in names]
        return [*codes, *self.ours.causes.get(label, ()), *self.ours.fixes.get(label, ())]

    def row(self, symptom: str, cause: str, pattern: str) -> dict[str, Any]:
        """Return the labels of a piece of advice, for programs; `pattern` is the published name of its fix pattern."""
        fix = self.of_fix(re.sub("[ /]", "-", pattern))
        return {
            "symptoms": [_row(label) for label in self.of_symptom(symptom)],
            "causes": [_row(label) for label in self.of_cause(cause)],
            "fix": _row(fix) if fix else None,
        }


def _row(label: Label) -> dict[str, str]:
    return {"id": label.id, "name": label.name, "provenance": label.provenance}


_lock = Lock()
"""Serialises decoding, as in `knowledge`: msgspec inspects a type without a lock."""


def load() -> SecondStudy:
    """Return the study as it is shipped.

    Raises:
        KnowledgeError: a file is broken; the text names file, place and what was expected.

    """
    with _lock:
        return _load()


@lru_cache(maxsize=1)
def _load() -> SecondStudy:
    return SecondStudy()
