"""Runs work outside an event loop, one piece at a time per subject; concurrent equal requests share the result."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Hashable

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
