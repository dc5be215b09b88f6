"""Arms a notebook: its kernel and what it starts leave records in one folder, and the kernel answers while it hangs.

At load it sets up a folder, the variables that arm child processes, a message on the control channel, and a journal.
Everything is undone at unload; the folder is removed if no rank has left a file in it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any

from dtdebug.live.agent.membership import MARK
from dtdebug.notebook.cell_journal import FILES, Journal, folders, forget_death, prune
from dtdebug.notebook.live_kernel import Live, has_files
from dtdebug.notebook.ranks_seen import RanksSeen
from dtdebug.process.cell_text import compiled_text
from dtdebug.storage import state_dir
from dtdebug.storage.run_folder import Run, RunFolder

_MAKES_RANKS = frozenset(("torch.distributed", "horovod", "mpi4py", "jax", "tensorflow"))
_LISTS = ("PYTHONPATH",)
"""Variables that hold several paths; other code may have appended to them in the meantime."""
_AFTER = 0.2
"""Seconds within which a kernel reports that a cell of a subshell has ended."""


class ArmedKernel(Live):
    """Everything that is armed in one shell."""

    def __init__(self, shell: Any, output: Callable[[], str] = str) -> None:
        super().__init__(shell, output)
        self._made = False
        self._variables = Variables()
        self._journal: Journal | None = None
        self._noted = 0
        """Number of the first cell whose file is not in the journal yet."""
        self._undo: list[Callable[[], object]] = []
        self._take_back: Callable[[], None] | None = None
        self._pid = os.getpid()

    def begin(self) -> None:
        """Arm the kernel; without a folder for records nothing is armed, but questions still work on live processes."""
        try:
            self._make_folder()
        except OSError as error:
            self.note = f"nothing is armed, for there is no folder for records: {error}"
        if self.kernel is not None:
            from dtdebug.notebook import control_channel

            self._undo.append(control_channel.install(self, self.kernel))
        atexit.register(self._put_away)

    def _make_folder(self) -> None:
        from dtdebug.live.agent import arm, fatal_signals, membership

        before = dict(os.environ)
        run = RunFolder.of_environment()
        if run is None and membership.is_named():  # several kernels are the ranks of one job: they share a folder
            path = arm.arm()
            run = RunFolder(path) if path else None
        if run is None:
            prune()
            state_dir.home()
            run = RunFolder.make(folders())
            self._made = True
            about = Run(command=("notebook", self.name), started=time.time(), host=socket.gethostname(), pid=self._pid)
            run.save_run(about)
            self._journal = Journal(run.path, self.name)
        self.run = run
        self._take_back = fatal_signals.offer(run.stack(self._pid))
        os.register_at_fork(after_in_child=self._disarm_child)
        self._variables.put(arm.arming_variables(run), before)
        watch = ImportWatch(lambda: arm.arm(run))
        watch.begin()
        self._undo += [watch.end, arm.disarm, self._let_go]

    def end(self) -> None:
        """Undo `begin`."""
        atexit.unregister(self._put_away)
        for undo in self._undo:
            with suppress(Exception):
                undo()
        self._undo.clear()
        self._variables.undo()
        self._put_away()

    def _let_go(self) -> None:
        """Stop offering stacks."""
        if self._take_back is not None:
            self._take_back()
            self._take_back = None

    def _disarm_child(self) -> None:
        """Stop offering stacks in a forked child: its agent does. Fork hooks can't be removed, so this may run late."""
        with suppress(Exception):
            self._let_go()

    def _put_away(self) -> None:
        """Note that the kernel shut down cleanly; remove the folder if no rank has used it."""
        if os.getpid() != self._pid:  # a forked child that ends
            return
        if self._journal is not None:
            self._journal.ends()
            with suppress(OSError):
                forget_death(self.name)
        if self._made and self.run is not None and not has_files(self.run):
            shutil.rmtree(self.run.path, ignore_errors=True)

    def cell_begins(self, info: Any) -> None:
        """Note the start of a cell."""
        if self.kernel is not None:
            with suppress(Exception):
                self.request = self.kernel.get_parent("shell") or None
        source = getattr(info, "raw_cell", None) or ""
        if "%dtdebug" in source:
            return
        self.since = time.time()
        if self.seen is not None and not _some_run(self.seen):
            self.seen = None
        if self._journal is not None:
            number = self._number()
            self._journal.begins(number, compiled_text(source))
            self._note_files(self._journal, number)

    def _note_files(self, journal: Journal, number: int) -> None:
        """Note the files of the cells compiled since the last call; their ranks may execute them."""
        known = getattr(getattr(self.shell, "compile", None), "_filename_map", None)  # there is no public reverse map
        if not isinstance(known, dict):
            return
        for earlier in range(max(self._noted, number - FILES), number):
            file = next((file for file, n in reversed(known.items()) if n == earlier), "")
            if file:
                journal.note_file(earlier, file)
        self._noted = number

    def cell_ends(self) -> None:
        """Note the end of the cell."""
        self.request = None
        if self._journal is not None:
            self._journal.ends()

    def beside_ends(self) -> None:
        """Mark the kernel busy again after a cell of a subshell, since IPython then reports it idle."""
        if self.request is not None and self.kernel is not None:
            from dtdebug.notebook import control_channel

            timer = threading.Timer(_AFTER, control_channel.stay_busy, (self, self.kernel))
            timer.daemon = True
            timer.start()

    def _number(self) -> int:
        """Return the number of the cell that starts; IPython releases increment `execution_count` early or late."""
        inputs = getattr(getattr(self.shell, "history_manager", None), "input_hist_raw", None)
        return len(inputs) if inputs else int(getattr(self.shell, "execution_count", 0))


def _some_run(seen: RanksSeen) -> bool:
    """True if a rank of an earlier look still runs: a background job outlives the cell that started it."""
    from dtdebug.live.probe.processes import liveness

    return any(s.pid and s.alive is not False and liveness(s.pid, s.time) != "ended" for s in seen.ranks)


class Variables:
    """Changes to an environment that can be undone without reverting later changes by other code."""

    def __init__(self, environment: MutableMapping[str, str] = os.environ) -> None:
        self._environment = environment
        self._before: dict[str, str | None] = {}
        self._ours: dict[str, str] = {}

    def put(self, values: Mapping[str, str], before: Mapping[str, str]) -> None:
        """Set variables; `before` is the environment that `undo` restores."""
        for name, value in values.items():
            self._before.setdefault(name, before.get(name))
            self._ours[name] = value
            self._environment[name] = value

    def undo(self) -> None:
        """Restore variables that still have our value; from lists of paths, remove only our paths."""
        for name, ours in self._ours.items():
            before, now = self._before[name], self._environment.get(name)
            if now == ours:
                self._set(name, before)
            elif now is not None and name in _LISTS:
                kept = (before or "").split(os.pathsep)
                added = [path for path in ours.split(os.pathsep) if path not in kept]
                rest = [path for path in now.split(os.pathsep) if path not in added]
                self._set(name, os.pathsep.join(rest) or before)
        self._before, self._ours = {}, {}
        if self._environment.get(MARK, "").startswith(f"{os.getpid()}:"):  # set when this process became a rank
            del self._environment[MARK]

    def _set(self, name: str, value: str | None) -> None:
        if value is None:
            self._environment.pop(name, None)
        else:
            self._environment[name] = value


class ImportWatch:
    """Import hook that calls a function once, when one of the modules is or was imported; it resolves no module."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def begin(self) -> None:
        """Start watching."""
        if _MAKES_RANKS & sys.modules.keys():
            self._act()
        else:
            sys.meta_path.insert(0, self)

    def end(self) -> None:
        """Stop watching."""
        with suppress(ValueError):
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Implement the protocol of `sys.meta_path`; suppress every error, because this runs in the user's import."""
        if name in _MAKES_RANKS:
            self.end()
            with suppress(Exception):
                self._act()
