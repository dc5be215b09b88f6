"""The second study (arXiv 2512.20345) as a second labelling of what dtdebug knows.

Its full lists could not be obtained: `labels.toml` says of each name whether it was read or is a reconstruction,
`ours.toml` where our symptoms, causes and fix patterns stand in it. No diagnosis rests on it, so it is read only when
it is shown.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from dtdebug_taxonomy.knowledge import read_record
from dtdebug_taxonomy.model import KnowledgeRecord

HOME = Path(__file__).parent


class Label(KnowledgeRecord, frozen=True, kw_only=True):
    """A symptom (S), root cause (R) or fix pattern (F) of the study."""

    id: str
    """Ours: the name can change to the published one without it."""
    name: str
    provenance: Literal["read", "reconstructed"]
    """Of the name: read in the abstract or in notes that cite the paper, or ours."""
    stage: str = ""
    """Of a symptom or root cause."""
    share: str = ""
    """The figure that was read of it, with its source."""
    distributed: Literal["", "yes", "no", "partly"] = ""
    """Of a symptom: whether it needs several processes, as we judge."""
    causes: tuple[str, ...] = ()
    """Of a symptom: its root causes, as we judge."""
    fixes: tuple[str, ...] = ()
    """Of a symptom: its fix patterns, as we judge."""
    issues: tuple[str, ...] = ()
    """Of a symptom: addresses of issues of the studied projects that show it."""

    @property
    def said(self) -> str:
        """The name as it is shown: never without its provenance."""
        return f"{self.name} ({self.provenance})"

    def __str__(self) -> str:
        return f"{self.id} {self.said}"


class About(KnowledgeRecord, frozen=True, kw_only=True):
    """The study itself."""

    title: str
    url: str
    wording: str
    """What we claim of it."""
    read: tuple[str, ...]
    """Facts of its abstract."""
    secondary: tuple[str, ...]
    """Facts of a reader's notes that cite it."""


class Without(KnowledgeRecord, frozen=True, kw_only=True):
    """Ours that no label fits."""

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
    """Label that nothing of ours leads to -> why."""


class _LabelFile(KnowledgeRecord, frozen=True, kw_only=True):
    study: About
    symptom: tuple[Label, ...]
    cause: tuple[Label, ...]
    fix: tuple[Label, ...]


class SecondStudy:
    """All labels by id, and what of ours they stand for."""

    def __init__(self, home: Path = HOME) -> None:
        file = read_record(home / "labels.toml", _LabelFile)
        self.about = file.study
        self.labels = {label.id: label for label in (*file.symptom, *file.cause, *file.fix)}
        self.ours = read_record(home / "ours.toml", Ours)

    def of_kind(self, letter: str) -> list[Label]:
        """All symptoms (S), root causes (R) or fix patterns (F)."""
        return [label for name, label in self.labels.items() if name.startswith(letter)]

    def of_symptom(self, code: str) -> list[Label]:
        """The symptoms of the study that one of ours shows as."""
        return [self.labels[name] for name in self.ours.symptoms.get(code, ())]

    def of_cause(self, cause: str) -> list[Label]:
        """The root causes of the study under which one of our causes falls; none where no label fits."""
        return [self.labels[name] for name, ids in self.ours.causes.items() if cause in ids]

    def of_fix(self, pattern: str) -> Label | None:
        """The fix pattern of the study under which one of ours falls."""
        return next((self.labels[name] for name, ids in self.ours.fixes.items() if pattern in ids), None)

    def own(self, label: str) -> list[str]:
        """What of ours leads to a label: codes of symptoms, ids of causes, or ids of fix patterns."""
        codes = [code for code, names in self.ours.symptoms.items() if label in names]
        return [*codes, *self.ours.causes.get(label, ()), *self.ours.fixes.get(label, ())]

    def row(self, symptom: str, cause: str, pattern: str) -> dict[str, Any]:
        """The labels of a piece of advice, for programs; `pattern` is the published name of its fix pattern."""
        fix = self.of_fix(re.sub("[ /]", "-", pattern))
        return {
            "symptoms": [_row(label) for label in self.of_symptom(symptom)],
            "causes": [_row(label) for label in self.of_cause(cause)],
            "fix": _row(fix) if fix else None,
        }


def _row(label: Label) -> dict[str, str]:
    return {"id": label.id, "name": label.name, "provenance": label.provenance}


_lock = Lock()
"""As in `knowledge`: msgspec learns a type without one."""


def load() -> SecondStudy:
    """The study as it is shipped.

    Raises:
        KnowledgeError: a file is broken; the text names file, place and what was expected.

    """
    with _lock:
        return _load()


@lru_cache(maxsize=1)
def _load() -> SecondStudy:
    return SecondStudy()
