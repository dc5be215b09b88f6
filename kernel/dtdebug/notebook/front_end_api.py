"""Answers a front end's "Diagnose" button: takes a failed cell as the notebook shows it, returns a diagnosis.

Works without `%load_ext dtdebug` and for notebooks that ran elsewhere, because it uses the text alone: no cell runs and
nothing is armed. A front end evaluates `look` among the `user_expressions` of a silent request, which no hook sees.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

import msgspec

from dtdebug.notebook import extension_state
from dtdebug.notebook.front_end_answers import FailedCell, session_after
from dtdebug.process.cell_text import compiled_text

if TYPE_CHECKING:
    from dtdebug.notebook.extension_state import ShellState
    from dtdebug.wizard.session import Session
    from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Snapshot

_lock = threading.RLock()
_SPAWNED = re.compile(r"-- Process (\d{1,5}) (?:terminated|exited)")
"""Line of `torch.multiprocessing.spawn` that names the failed rank."""


class Reply:
    """Data displayed as JSON to the front end that evaluates it."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"application/json": self.content}


def look(request: str) -> Reply:
    """Return the diagnosis of a request; `%dtdebug` continues from it if the extension is loaded.

    Raises:
        msgspec.MsgspecError: the request has another form.
        ValueError: no such question or answer.

    """
    return Reply(diagnose(msgspec.json.decode(request, type=FailedCell)))


def diagnose(asked: FailedCell) -> dict[str, Any]:
    """Return the diagnosis of a decoded request, from any thread; answers missing from it are withdrawn.

    Raises:
        ValueError: no such question or answer; nothing is changed in this case.

    """
    from dtdebug.presentation.diagnosis_card import card

    with _lock:
        extension = extension_state.extension
        known = _known_session(extension, asked)
        session = session_after(known or _from_text(asked), asked, extension.given if extension and known else None)
        if extension is not None and session.has_description:
            if known is None:
                extension.snapshot, extension.session, extension.wizard = session.snapshot, None, None
            extension.given = asked
            if session.steps if known is None else session != known:
                _go_on(extension, session)
        return {
            "loaded": extension is not None,
            "told": session.has_description,
            "diagnosis": msgspec.to_builtins(card(session.diagnosis(), session.snapshot)),
        }


def _go_on(extension: ShellState, session: Session) -> None:
    """Let `%dtdebug` and `%dtdebug resume` continue from a session."""
    from dtdebug.wizard import keep

    extension.snapshot, extension.session = session.snapshot, session
    if extension.wizard is not None:
        extension.wizard.update(session)
    else:
        keep(session)


def _known_session(extension: ShellState | None, asked: FailedCell) -> Session | None:
    """Return the session about this failure, if the extension saw the cell fail."""
    from dtdebug.privacy.sanitize import clean, mask
    from dtdebug.wizard.session import Session

    if extension is None or extension.snapshot is None:
        return None
    open_one: Session | None = extension.wizard.session if extension.wizard is not None else extension.session
    if asked.cell and clean(asked.cell) != mask(extension.snapshot.cell):
        return None
    if not asked.cell and (asked.output or asked.ename):  # a pasted text
        given = _from_text(asked).snapshot
        if _failure_key(given) != _failure_key(extension.snapshot):
            return None
    return open_one or Session(snapshot=extension.snapshot)


def _failure_key(snapshot: Snapshot) -> tuple[str, str]:
    """Return the key that identifies a failure across save and reload."""
    from dtdebug.privacy.sanitize import mask

    return mask(snapshot.output), mask(snapshot.cell)


def _from_text(asked: FailedCell) -> Session:
    from dtdebug.privacy.sanitize import plain
    from dtdebug.wizard.session import Session
    from dtdebug_taxonomy.model.snapshot import Snapshot

    output = plain(asked.output)
    return Session(
        snapshot=Snapshot(
            output=output,
            source="cell output" if output else "",
            exception=_exception(plain(asked.ename), plain(asked.evalue)) if asked.ename else None,
            cell=compiled_text(plain(asked.cell)),
        )
    )


def _exception(name: str, message: str) -> ExceptionInfo:
    """Return the exception as it would have been captured: notebooks store only the last part of its class's name."""
    from dtdebug_taxonomy.knowledge.loader import load
    from dtdebug_taxonomy.model.snapshot import ExceptionInfo

    known = (full for e in load().evidence.values() for full in e.exception if full.rpartition(".")[2] == name)
    spawned = _SPAWNED.search(message)
    if spawned is None:
        return ExceptionInfo(type=next(known, name), message=message)
    from dtdebug.capture import from_traceback

    rank = int(spawned[1])
    child = from_traceback(message[spawned.end() :], rank)
    return ExceptionInfo(
        type=next(known, name), message=message, rank=rank, causes=(child,) if child.type != "unknown" else ()
    )
