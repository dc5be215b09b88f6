"""What a front end's "Diagnose" button asks: a failed cell as the notebook shows it in, a diagnosis out.

Works without `%load_ext dtdebug` and for notebooks that ran elsewhere, for it goes by the text alone: no cell runs and
nothing is armed. A front end evaluates `look` among the `user_expressions` of a silent request, which no hook sees.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from dtdebug.extension import Extension
    from dtdebug.wizard.session import Session
    from dtdebug_taxonomy.snapshot import ExceptionInfo

_SPAWNED = re.compile(r"-- Process (\d{1,5}) (?:terminated|exited)")
"""How `torch.multiprocessing.spawn` names the rank that failed."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A failed cell, and the questions that were answered about it."""

    cell: str = ""
    """Its source; empty to go on with the failure that the extension knows."""
    output: str = ""
    """What it printed, with the traceback."""
    ename: str = ""
    evalue: str = ""
    answers: dict[str, str] = {}
    """Where no extension is loaded that keeps them."""


class Reply:
    """Data that comes as JSON to whoever evaluates it."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"application/json": self.content}


def look(request: str) -> Reply:
    """The diagnosis of what is asked; `%dtdebug` goes on from it where the extension is loaded.

    Raises:
        msgspec.MsgspecError: the request has another form.
        ValueError: no such question or answer.

    """
    from dtdebug.extension import installed

    asked = msgspec.json.decode(request, type=Asked)
    extension = installed()
    known = _known(extension, asked)
    session = known or _from_text(asked)
    if extension is None:
        for key, value in asked.answers.items():
            session = session.answer(key, value)
    elif known is None and session.told:
        extension.snapshot, extension.session, extension.wizard = session.snapshot, None, None
    return Reply(
        {
            "loaded": extension is not None,
            "told": session.told,
            "diagnosis": msgspec.to_builtins(session.diagnosis()),
        }
    )


def _known(extension: Extension | None, asked: Asked) -> Session | None:
    """The session about this failure, if the extension saw the cell fail."""
    from dtdebug.clean import clean
    from dtdebug.wizard.session import Session

    if extension is None or extension.snapshot is None:
        return None
    if asked.cell and clean(asked.cell) != extension.snapshot.cell:
        return None
    open_one: Session | None = extension.wizard.session if extension.wizard is not None else extension.session
    return open_one or Session(snapshot=extension.snapshot)


def _from_text(asked: Asked) -> Session:
    from dtdebug.clean import clean
    from dtdebug.wizard.session import Session
    from dtdebug_taxonomy.snapshot import Snapshot

    output = clean(asked.output)
    return Session(
        snapshot=Snapshot(
            output=output,
            source="cell output" if output else "",
            exception=_exception(clean(asked.ename), clean(asked.evalue)) if asked.ename else None,
            cell=clean(asked.cell),
        )
    )


def _exception(name: str, message: str) -> ExceptionInfo:
    """The exception as it would have been captured: a notebook keeps only the last part of its class's name."""
    from dtdebug_taxonomy.knowledge import load
    from dtdebug_taxonomy.snapshot import ExceptionInfo

    known = (full for e in load().evidence.values() for full in e.exception if full.rpartition(".")[2] == name)
    spawned = _SPAWNED.search(message)
    return ExceptionInfo(type=next(known, name), message=message, rank=int(spawned[1]) if spawned else None)
