"""Guided questions: one pure session (`session`) and two views of it (`terminal`, `widgets`).

A view saves the session after every transition, so that a restarted kernel, Ctrl-C or a
closed terminal loses no answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dtdebug.wizard.session import Session

_FILE = "wizard.json"


def keep(session: Session) -> bool:
    """Save a session in the user's state directory; False if it can't be saved."""
    import msgspec

    from dtdebug.storage import state_dir
    from dtdebug.wizard.session import to_json

    try:
        return state_dir.save(_FILE, msgspec.Raw(to_json(session)))
    except UnicodeError:  # half a surrogate pair in captured text has no JSON form
        return False


def resume() -> Session | None:
    """Return the last saved session, or None if there is none that can be read."""
    import msgspec

    from dtdebug.storage import state_dir
    from dtdebug.wizard.session import from_json

    found = state_dir.load(_FILE, msgspec.Raw)
    return from_json(bytes(found)) if found is not None else None
