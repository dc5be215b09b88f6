"""Answers on the kernel's control channel, which is served while a cell runs.

A front end sends `dtdebug_request` with one of these and gets a `dtdebug_reply`:

`{"kind": "state" | "hang", "timeout": seconds}`: `{"status": "ok", "text", "html", "view", "verdict", "ranks", ...}`
`{"kind": "diagnose", "asked": Asked}`: `{"status": "ok", "loaded", "told", "diagnosis"}`, as from `front.look`
`{"kind": "end_ranks", "pids": [...]}`: `{"status": "ok", "ended": [...], "text"}`, only at the user's request
any other: `{"status": "error", "ename", "evalue"}`

The work is done on a separate thread: interrupts and shutdowns use the same channel and must not wait.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from dtdebug.notebook import observe_ranks, render_ranks
from dtdebug.notebook.cell_journal import read_journal
from dtdebug.notebook.ranks_seen import Kind
from dtdebug.privacy.sanitize import clean
from dtdebug.process.switch_interval import short_switch_interval

if TYPE_CHECKING:
    from dtdebug.notebook.live_kernel import Live

REQUEST, REPLY = "dtdebug_request", "dtdebug_reply"
LONGEST = 10.0
"""Maximum number of seconds that a request may wait for the ranks."""
_first = threading.Lock()
"""Held while a kind is answered for the first time: msgspec crashes if two threads first decode a type at once."""
_known: set[str] = set()
"""Kinds answered at least once, so that all their types have been built."""
_Pids = Annotated[list[Annotated[int, msgspec.Meta(gt=0, lt=1 << 31)]], msgspec.Meta(max_length=4096)]


def install(live: Live, kernel: Any) -> Callable[[], None]:
    """Add the message to a kernel with control-channel handlers; return a function that removes it again."""
    handlers = getattr(kernel, "control_handlers", None)
    if not isinstance(handlers, dict) or not hasattr(kernel, "session"):
        return lambda: None

    def handle(stream: Any, ident: Any, parent: Any) -> None:
        loop = asyncio.get_running_loop()

        def send(content: dict[str, Any]) -> None:
            with suppress(Exception):  # the channel has been closed in the meantime
                kernel.session.send(stream, REPLY, content, parent, ident=ident)

        def work() -> None:
            content = answer(live, parent.get("content"))
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(send, content)

        threading.Thread(target=work, name="dtdebug-control", daemon=True).start()
        loop.call_soon(stay_busy, live, kernel)  # after the kernel itself reports this message as done

    handlers[REQUEST] = handle

    def remove() -> None:
        if handlers.get(REQUEST) is handle:
            del handlers[REQUEST]

    return remove


def stay_busy(live: Live, kernel: Any) -> None:
    """Report again that a cell runs: servers take the end of any message for the cell's end, and may cull kernels."""
    request = live.request
    if request is None:
        return
    with suppress(Exception):  # the channel has been closed in the meantime
        _tell(kernel, "busy", request)
        if live.request is not request:  # it has ended in the meantime, and reported so before us
            _tell(kernel, "idle", request)


def _tell(kernel: Any, state: str, request: Any) -> None:
    topic = b"kernel.%s.status" % kernel.ident.encode()
    kernel.session.send(kernel.iopub_socket, "status", {"execution_state": state}, parent=request, ident=topic)


def answer(live: Live, content: Any) -> dict[str, Any]:
    """Return the content of the reply to a request; never raises, whatever was sent."""
    try:
        asked = content if isinstance(content, dict) else {}
        kind = asked.get("kind", "hang")
        reply = _KINDS.get(kind) if isinstance(kind, str) else None
        if reply is None:
            return {"status": "error", "ename": "ValueError", "evalue": f"kind is one of {', '.join(_KINDS)}"}
        with nullcontext() if kind in _known else _first:
            content = reply(live, asked)
    except Exception as error:
        return {"status": "error", "ename": type(error).__name__, "evalue": clean(str(error))[:500]}
    _known.add(kind)
    return {"status": "ok", **content}


def _look(live: Live, asked: dict[str, Any]) -> dict[str, Any]:
    from dtdebug.notebook.panel_view import view

    kind: Kind = "state" if asked.get("kind") == "state" else "hang"
    timeout = asked.get("timeout", observe_ranks.TIMEOUT)
    if not isinstance(timeout, (int, float)) or not 0 < timeout <= LONGEST:
        timeout = observe_ranks.TIMEOUT
    seen = observe_ranks.look_at_ranks(live, kind, timeout)
    drawn = view(seen, entry=read_journal(live.run.path) if live.run else None)
    if kind == "hang" and drawn.hangs:
        from dtdebug.notebook.hang_answer import answer_hang

        with short_switch_interval():
            drawn = msgspec.structs.replace(drawn, answer=answer_hang(live, seen))
    rest = msgspec.to_builtins(msgspec.structs.replace(seen, timeline=None))
    return {
        "text": render_ranks.plain_text(seen),
        "html": render_ranks.html(seen),
        **rest,
        "view": msgspec.to_builtins(drawn),
    }


def _diagnose(_live: Live, asked: dict[str, Any]) -> dict[str, Any]:
    from dtdebug.notebook import front_end_answers, front_end_api

    with short_switch_interval():
        return front_end_api.diagnose(msgspec.convert(asked.get("asked"), front_end_answers.FailedCell))


def _end_ranks(live: Live, asked: dict[str, Any]) -> dict[str, Any]:
    from dtdebug.notebook import leftover_ranks

    ended, text = leftover_ranks.end(live.name, msgspec.convert(asked.get("pids"), _Pids), os.getpid())
    return {"ended": ended, "text": text}


_KINDS: dict[str, Callable[[Live, dict[str, Any]], dict[str, Any]]] = {
    "state": _look,
    "hang": _look,
    "diagnose": _diagnose,
    "end_ranks": _end_ranks,
}
