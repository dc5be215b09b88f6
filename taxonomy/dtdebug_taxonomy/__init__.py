"""Knowledge about failures of distributed training, and inference from it.

Data (symptoms, evidence, observations, fix patterns), findings, engine, diagnosis.
No I/O but its own files; no notebook, terminal, torch or subprocess.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dtdebug_taxonomy.diagnosis import Diagnosis, diagnose
    from dtdebug_taxonomy.knowledge import Knowledge, KnowledgeError, load
    from dtdebug_taxonomy.model import Cause, Evidence, Symptom
    from dtdebug_taxonomy.render import to_markdown
    from dtdebug_taxonomy.snapshot import Snapshot

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
    "Cause": "model",
    "Diagnosis": "diagnosis",
    "Evidence": "model",
    "Knowledge": "knowledge",
    "KnowledgeError": "knowledge",
    "Snapshot": "snapshot",
    "Symptom": "model",
    "diagnose": "diagnosis",
    "load": "knowledge",
    "to_markdown": "render",
}


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that loading the extension stays cheap."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
