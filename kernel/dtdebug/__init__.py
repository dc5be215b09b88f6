"""dtdebug: why did my distributed training fail?

In a notebook `%load_ext dtdebug`, then `%dtdebug`; in a terminal `dtdebug diagnose train.log`.
Importing this package imports nothing heavy, and never torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dtdebug.capture import capture
    from dtdebug.live.agent.arm import arm
    from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
    from dtdebug_taxonomy.model.snapshot import Snapshot

__all__ = ["Diagnosis", "Snapshot", "arm", "capture", "diagnose", "load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: Any) -> None:
    """Implement `%load_ext dtdebug`."""
    from dtdebug.notebook.extension import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Implement `%unload_ext dtdebug`: remove everything that loading has set up."""
    from dtdebug.notebook.extension import unload

    unload(shell)


def diagnose(
    snapshot: Snapshot | None = None, *, situation: str = "", output: str = "", answers: dict[str, str] | None = None
) -> Diagnosis:
    """Diagnose a snapshot, or a user's words and program output.

    Raises:
        KnowledgeError: a knowledge file is broken.

    """
    from dtdebug.presentation.diagnosis_card import card
    from dtdebug.privacy import boundary
    from dtdebug_taxonomy.knowledge import loader
    from dtdebug_taxonomy.model.snapshot import Snapshot

    if snapshot is None:
        snapshot = Snapshot(situation=boundary.plain(situation), output=boundary.plain(output))
    return card(boundary.diagnose(loader.load(), snapshot, answers), snapshot)


def __getattr__(name: str) -> Any:
    """Import `arm`, `capture`, `Snapshot` and `Diagnosis` when they are first used."""
    if name == "arm":
        from dtdebug.live.agent.arm import arm

        return arm
    if name == "capture":
        from dtdebug.capture import capture

        return capture
    if name in ("Diagnosis", "Snapshot"):
        import dtdebug_taxonomy

        return getattr(dtdebug_taxonomy, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
