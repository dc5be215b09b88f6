"""A kernel as the questions about its ranks see it: its cells, the folder of its records, what was seen last."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtdebug.loaded import Loaded

if TYPE_CHECKING:
    from dtdebug.notebook.seen import RanksSeen
    from dtdebug.records.folder import RunFolder


class Live:
    """What is known of the kernel of one shell, and of the ranks that it has to do with."""

    def __init__(self, shell: Any, output: Callable[[], str] = str) -> None:
        from dtdebug.notebook.cells import Cells

        self.shell = shell
        self.output = output
        """What the running cell has printed so far."""
        self.cells = Cells(shell)
        self.kernel = getattr(shell, "kernel", None)
        self.thread = (threading.main_thread().ident if self.kernel else None) or threading.get_ident()
        """The thread that runs cells."""
        self.run: RunFolder | None = None
        self.since = time.time()
        """When the last cell began that was not a question to us."""
        self.seen: RanksSeen | None = None
        """What the last look for a hang found since then, or before of ranks that still run."""
        self.request: Any = None
        """The front end's request whose cell runs in the thread that runs cells."""
        self.note = ""
        """Why nothing is armed, if so."""

    @property
    def has_ranks(self) -> bool:
        """Some rank has written a record since the cell began."""
        with suppress(OSError):
            return self.run is not None and any(p.stat().st_mtime >= self.since for p in self.run.ranks.glob("*.json"))
        return False

    @property
    def used(self) -> bool:
        """Some rank has left a record or a dump, in this cell or an earlier one."""
        return self.run is not None and used(self.run)

    @property
    def name(self) -> str:
        """The name of the kernel's connection file, which outlives restarts; '' in a terminal."""
        file = getattr(getattr(self.kernel, "parent", None), "connection_file", "") or ""
        return Path(file).name


def used(run: RunFolder) -> bool:
    """Ranks have left records or dumps in the folder."""
    return any(any(part.glob("*")) for part in (run.ranks, run.flight, run.errors))


class LiveExtension(Loaded):
    """The extension as whoever asks for its ranks sees it."""

    live: Live | None = None
    """What arms this kernel and its ranks."""

    def armed(self) -> Live:
        """What arms this kernel.

        Raises:
            ValueError: the extension was made and not installed.

        """
        if self.live is None:
            raise ValueError("the ranks of this kernel are not armed: %load_ext dtdebug does that")
        return self.live
