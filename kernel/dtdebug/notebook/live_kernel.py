"""State of a kernel for questions about its ranks: its cells, its folder of records, the last observation."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtdebug.notebook.extension_state import ShellState

if TYPE_CHECKING:
    from dtdebug.notebook.ended_children import EndedChild
    from dtdebug.notebook.ranks_seen import RanksSeen
    from dtdebug.storage.run_folder import RunFolder


_MOST_READ = 64
"""Maximum number of records read below a cell that passed."""


class Live:
    """Knowledge about the kernel of one shell and its ranks."""

    def __init__(self, shell: Any, output: Callable[[], str] = str) -> None:
        from dtdebug.notebook.cells import Cells
        from dtdebug.notebook.open_store import StoreWatch

        self.shell = shell
        self.output = output
        """Returns the output of the running cell so far."""
        self.cells = Cells(shell)
        self.kernel = getattr(shell, "kernel", None)
        self.thread = (threading.main_thread().ident if self.kernel else None) or threading.get_ident()
        """Thread that runs cells."""
        self.run: RunFolder | None = None
        self.since = time.time()
        """Start time of the last cell that was not a question to us."""
        self.seen: RanksSeen | None = None
        """Result of the last look for a hang, of this cell or of ranks from an earlier one that still run."""
        self.request: Any = None
        """Front end's request whose cell runs in the main thread."""
        self.known_children: set[int] = set()
        """Processes that had failed before this cell."""
        self.store = StoreWatch()
        """Rendezvous store that a failed cell left open in this kernel."""
        self.note = ""
        """Reason that nothing is armed, or ""."""

    @property
    def has_ranks(self) -> bool:
        """True if a rank has written a record since the cell started."""
        with suppress(OSError):
            return self.run is not None and any(p.stat().st_mtime >= self.since for p in self.run.ranks.glob("*.json"))
        return False

    @property
    def has_failed_ranks(self) -> bool:
        """True if a rank has ended badly since the cell started: `Process.join` raises nothing then."""
        if self.run is None or not self.has_ranks:
            return False
        from dtdebug.storage.run_folder import read_record

        with suppress(OSError):
            recent = [p for p in self.run.ranks.glob("*.json") if p.stat().st_mtime >= self.since]
            records = (read_record(path) for path in recent[:_MOST_READ])
            return any(r is not None and r.alive is False and (r.exit_code or r.signal or r.exception) for r in records)
        return False

    def failed_children(self) -> list[EndedChild]:
        """Return the processes of this cell that multiprocessing has seen fail."""
        from dtdebug.notebook.ended_children import find_failed

        found = find_failed(getattr(self.shell, "user_ns", None) or {})
        return [child for child in found if child.pid not in self.known_children]

    @property
    def has_records(self) -> bool:
        """True if a rank has left a record or a dump, in this cell or an earlier one."""
        return self.run is not None and has_files(self.run)

    @property
    def name(self) -> str:
        """Name of the kernel's connection file, which survives restarts; "" in a terminal."""
        file = getattr(getattr(self.kernel, "parent", None), "connection_file", "") or ""
        return Path(file).name


def has_files(run: RunFolder) -> bool:
    """True if ranks have left records or dumps in the folder."""
    return any(any(part.glob("*")) for part in (run.ranks, run.flight, run.errors))


class LiveExtension(ShellState):
    """Extension as seen by code that asks for its ranks."""

    live: Live | None = None
    """Armed kernel and its ranks."""

    def require_live(self) -> Live:
        """Return the armed kernel.

        Raises:
            ValueError: the extension was created but not installed.

        """
        if self.live is None:
            raise ValueError("the ranks of this kernel are not armed: %load_ext dtdebug does that")
        return self.live
