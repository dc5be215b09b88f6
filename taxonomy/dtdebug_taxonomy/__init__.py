"""Knowledge about failures of distributed training, and inference from it.

Data (symptoms, evidence, observations, fix patterns), findings, engine, diagnosis.
No I/O but its own files; no notebook, terminal, torch or subprocess.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis, diagnose
    from dtdebug_taxonomy.knowledge.loader import Knowledge, KnowledgeError, load
    from dtdebug_taxonomy.knowledge.schema import Cause, Evidence, Symptom
    from dtdebug_taxonomy.model.snapshot import Snapshot
    from dtdebug_taxonomy.presentation.text import to_markdown

__version__ = "0.1.0"

__all__ = [
    "Cause",
    "Diagnosis",
    "Evidence",
    "Knowledge",
    "KnowledgeError",
    "Snapshot",
    "Symptom",
    "diagnose",
    "load",
    "to_markdown",
]

_HOMES = {
    "Cause": "knowledge.schema",
    "Diagnosis": "diagnosis.diagnose",
    "Evidence": "knowledge.schema",
    "Knowledge": "knowledge.loader",
    "KnowledgeError": "knowledge.loader",
    "Snapshot": "model.snapshot",
    "Symptom": "knowledge.schema",
    "diagnose": "diagnosis.diagnose",
    "load": "knowledge.loader",
    "to_markdown": "presentation.text",
}


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that loading the extension stays cheap."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
