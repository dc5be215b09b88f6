"""Answers on the kernel's control channel, which is served while a cell runs.

A front end sends `dtdebug_request` with `{"kind": "state" | "hang", "timeout": seconds}` and gets a `dtdebug_reply`
with `{"status": "ok", "text": ..., "html": ..., "verdict": ..., "ranks": [...]}`, or `{"status": "error", "evalue":
...}`. The work is done on a thread of its own: interrupts and shutdowns come by the same channel and must not wait.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from dtdebug.live import look, show

if TYPE_CHECKING:
    from dtdebug.live.armed import Live

REQUEST, REPLY = "dtdebug_request", "dtdebug_reply"
LONGEST = 10.0
"""Seconds that a request may ask the ranks to be waited for."""


def install(live: Live, kernel: Any) -> Callable[[], None]:
    """Adds the message to a kernel that has handlers for its control channel; returns what takes it away again."""
    handlers = getattr(kernel, "control_handlers", None)
    if not isinstance(handlers, dict) or not hasattr(kernel, "session"):
        return lambda: None

    def handle(stream: Any, ident: Any, parent: Any) -> None:
        loop = asyncio.get_running_loop()

        def send(content: dict[str, Any]) -> None:
            with suppress(Exception):  # the channel has been closed meanwhile
                kernel.session.send(stream, REPLY, content, parent, ident=ident)

        def work() -> None:
            content = answer(live, parent.get("content"))
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(send, content)

        threading.Thread(target=work, name="dtdebug-control", daemon=True).start()

    handlers[REQUEST] = handle

    def remove() -> None:
        if handlers.get(REQUEST) is handle:
            del handlers[REQUEST]

    return remove


def answer(live: Live, content: Any) -> dict[str, Any]:
    """The content of the reply to a request; never raises, whatever was sent."""
    try:
        asked = content if isinstance(content, dict) else {}
        kind, timeout = asked.get("kind", "hang"), asked.get("timeout", look.TIMEOUT)
        if kind not in get_args(look.Kind):
            return {"status": "error", "ename": "ValueError", "evalue": f"kind is one of {get_args(look.Kind)}"}
        if not isinstance(timeout, (int, float)) or not 0 < timeout <= LONGEST:
            timeout = look.TIMEOUT
        seen = look.look(live, kind, timeout)
        return {"status": "ok", "text": show.text(seen), "html": show.html(seen), **msgspec.to_builtins(seen)}
    except Exception as error:
        return {"status": "error", "ename": type(error).__name__, "evalue": str(error)[:500]}
