"""Handles front ends' requests in JSON; the server's own rules decide who may make them.

The reply to a request that can't be answered is one line: `{"message": ...}`.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Hashable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

from dtdebug.live.probe.deadline_threads import begin


class Turns:
    """Work in progress; used from the loop's thread only."""

    def __init__(self) -> None:
        self._running: dict[Hashable, tuple[Hashable, asyncio.Future[bytes]]] = {}

    async def take(self, subject: Hashable, kind: Hashable, work: Callable[[], bytes]) -> bytes:
        """Return the result of the work, or of work of the same kind on the same subject already in progress."""
        while (running := self._running.get(subject)) and running[0] != kind:
            await asyncio.wait([running[1]])
        if running is None:
            future = asyncio.wrap_future(begin([work], math.inf)[0])
            future.add_done_callback(lambda _: self._running.pop(subject, None))
            self._running[subject] = running = kind, future
        return await asyncio.shield(running[1])  # a caller that stops waiting does not cancel it for the others


if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from dtdebug.notebook.server.kernels import KernelProcess

BODY_LIMIT, TEXT_LIMIT = 4_096, 256_000
"""Maximum size in bytes of the body of a request to look, and of one with a text."""
_LINE = 500
T = TypeVar("T")


def handlers(base: str) -> list[tuple[str, type[web.RequestHandler], dict[str, Any]]]:
    """Return the handlers below a server's base URL; their shared state lives as long as the server."""
    turns = Turns()
    paths = {
        r"status": StatusHandler,
        r"kernels/([^/]+)/look": LookHandler,
        r"kernels/([^/]+)/left": LeftoversHandler,
        r"kernels/([^/]+)/end": EndHandler,
        r"abandoned": AbandonedHandler,
        r"diagnosis": DiagnosisHandler,
        r"lessons": LessonsHandler,
        r"lessons/([^/]+)": LessonHandler,
    }
    return [(url_path_join(base, "dtdebug", "api", path), handler, {"turns": turns}) for path, handler in paths.items()]


class _Handler(APIHandler):
    """Common base: work is done outside the server's loop, and errors are one line of JSON."""

    auth_resource = "dtdebug"
    _track_activity = False  # a front end's polling must not keep an idle server from being culled

    def initialize(self, turns: Turns) -> None:
        """Store the shared state; called by tornado."""
        self.turns = turns

    def body(self, limit: int) -> bytes:
        """Return the body of the request.

        Raises:
            web.HTTPError: it is too long.

        """
        if len(self.request.body) > limit:
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, f"the body is longer than {limit} bytes")
        return self.request.body

    async def reply(self, subject: Hashable, kind: Hashable, work: Callable[[], bytes]) -> None:
        """Do the work when its turn comes and send the JSON that it returns; ValueError is the client's mistake."""
        try:
            content = await self.turns.take(subject, kind, work)
        except ValueError as error:
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, _line(error)) from None
        except Exception as error:
            self.log.exception("dtdebug")
            raise web.HTTPError(
                HTTPStatus.INTERNAL_SERVER_ERROR, f"dtdebug: {type(error).__name__}: {_line(error)}"
            ) from None
        self.finish(content)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Write one line instead of a page or a traceback."""
        error = kwargs.get("exc_info", (None, None))[1]
        told = (error.log_message or error.reason) if isinstance(error, web.HTTPError) else ""
        message = (told or "").replace("%%", "%") or HTTPStatus(status_code).phrase
        self.finish(json.dumps({"message": message}))


class StatusHandler(_Handler):
    """Reports that the extension is present, and its capabilities."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Return `{"v": 1, "version": "0.1.0", "pyspy": true}`."""
        await self.reply("status", "", _status)


class _KernelHandler(_Handler):
    """Base for requests about a kernel; requires the right to run code there, because ranks may be stopped or ended."""

    auth_resource = "kernels"

    async def process(self, kernel_id: str) -> KernelProcess:
        """Return the kernel's process on this machine.

        Raises:
            web.HTTPError: it has none.

        """
        from dtdebug.notebook.server import kernels

        if kernel_id not in self.kernel_manager:
            raise web.HTTPError(HTTPStatus.NOT_FOUND, f"this server has no kernel {_line(kernel_id)}")
        process = await kernels.process_of(self.kernel_manager.get_kernel(kernel_id))
        if process is None:
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, kernels.ELSEWHERE)
        return process

    def decode_body(self, decode: Callable[[bytes], T]) -> T:
        """Decode the body of the request.

        Raises:
            web.HTTPError: the body is not a valid request.

        """
        try:
            return decode(self.body(BODY_LIMIT))
        except ValueError as error:
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, _line(error)) from None


class LookHandler(_KernelHandler):
    """Inspects a kernel of this server and the ranks below it.

    It is a POST because a look may stop the kernel for some milliseconds.
    """

    @web.authenticated
    @authorized(action="execute")  # type: ignore[untyped-decorator]
    async def post(self, kernel_id: str) -> None:
        """Answer `{"kind": "hang"}` with `{"view": ..., "text": ..., "report": ...}`."""
        from dtdebug.notebook.server import kernels

        asked = self.decode_body(kernels.decode_request)
        process = await self.process(kernel_id)

        def work() -> bytes:
            from dtdebug.notebook.server import observe_kernel

            return observe_kernel.look_at_kernel(process, asked)

        # A glance sends nothing to the kernel and need not wait for a look that does.
        await self.reply((kernel_id, asked.kind == "glance"), asked.kind, work)


class LeftoversHandler(_KernelHandler):
    """Reports ranks of earlier cells that still run: after an interrupt, a failure, or a restart of the kernel."""

    @web.authenticated
    @authorized(action="execute")  # type: ignore[untyped-decorator]
    async def post(self, kernel_id: str) -> None:
        """Answer an empty request with `{"left": [{"line": ..., "pids": [...]}]}`."""
        from dtdebug.notebook.server import kernels

        process = await self.process(kernel_id)
        idle, mine = kernels.is_idle(self.kernel_manager.get_kernel(kernel_id)), kernels.of_server(self.kernel_manager)

        def work() -> bytes:
            from dtdebug.notebook.server import observe_kernel

            return observe_kernel.left_behind(process, mine, idle=idle)

        await self.reply((kernel_id, "left"), "", work)


class EndHandler(_KernelHandler):
    """Ends ranks of a kernel at the user's request, even if the kernel does not answer; nothing else."""

    @web.authenticated
    @authorized(action="execute")  # type: ignore[untyped-decorator]
    async def post(self, kernel_id: str) -> None:
        """Answer `{"pids": [...]}` with `{"ended": [...], "text": ...}`."""
        from dtdebug.notebook.server import kernels

        asked = self.decode_body(kernels.to_end)
        process = await self.process(kernel_id)
        mine = kernels.of_server(self.kernel_manager)

        def work() -> bytes:
            from dtdebug.notebook.server import observe_kernel

            return observe_kernel.end(process, mine, asked.pids)

        await self.reply((kernel_id, "end"), tuple(asked.pids), work)


class AbandonedHandler(_KernelHandler):
    """Handles ranks of ended kernels without a successor on this server, as after a restart of the server."""

    @web.authenticated
    @authorized(action="execute")  # type: ignore[untyped-decorator]
    async def post(self) -> None:
        """Answer as `LeftHandler`; with `{"pids": [...]}` as `EndHandler`."""
        from dtdebug.notebook.server import kernels

        mine = kernels.of_server(self.kernel_manager)
        asked = self.decode_body(kernels.to_end) if self.request.body not in (b"", b"{}") else None

        def work() -> bytes:
            from dtdebug.notebook.server import observe_kernel

            return observe_kernel.end_abandoned(mine, asked.pids) if asked else observe_kernel.list_abandoned(mine)

        await self.reply("abandoned", tuple(asked.pids) if asked else "", work)


class DiagnosisHandler(_Handler):
    """Diagnoses a text alone: a pasted log, a kernel that has died or has no dtdebug."""

    @web.authenticated
    @authorized(action="read")  # type: ignore[untyped-decorator]
    async def post(self) -> None:
        """Answer `Asked` with `{"loaded": false, "told": ..., "diagnosis": ...}`."""
        body = self.body(TEXT_LIMIT)

        def work() -> bytes:
            from dtdebug.notebook.server import diagnose_text

            return diagnose_text.diagnosis(body)

        await self.reply("diagnosis", body, work)


class LessonsHandler(_Handler):
    """Lists the lessons and labs in the package."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Return `{"lessons": [{"id", "title", "summary"}], "labs": [...]}`."""
        from dtdebug.notebook.server import diagnose_text

        await self.reply("lessons", "", diagnose_text.lessons)


class LessonHandler(_Handler):
    """Returns one lesson, for the front end to save where its user may write."""

    @web.authenticated
    @authorized
    async def get(self, name: str) -> None:
        """Return `{"file": "01_first_failure.ipynb", "content": the notebook}`."""

        def work() -> bytes:
            from dtdebug.notebook.server import diagnose_text

            return diagnose_text.lesson(name)

        await self.reply("lessons", name, work)


def _line(value: object) -> str:
    """Return one line that is safe to show."""
    from dtdebug.privacy.sanitize import clean

    return " ".join(clean(str(value)).split())[:_LINE]


def _status() -> bytes:
    from dtdebug.live.probe.pyspy import can_spy
    from dtdebug_taxonomy import __version__

    return json.dumps({"v": 1, "version": __version__, "pyspy": can_spy()}).encode()
