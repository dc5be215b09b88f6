"""The agent of a rank: armed by the environment or by a call, it keeps a record fresh in the run's folder.

It never communicates with other ranks, never blocks the end of the process for long, and stays silent if the folder is
not writable. This module puts it into a process and its forked children, and ends it; `watcher` has its work there.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from dtdebug.live.agent import membership
from dtdebug.live.agent.endpoint import TOKEN, token
from dtdebug.live.agent.exit_hooks import Leaving, notice
from dtdebug.live.agent.watcher import Watcher
from dtdebug.privacy.sanitize import clean_command
from dtdebug.storage import VARIABLE, state_dir
from dtdebug.storage.run_folder import Run, RunFolder

BOOTSTRAP = str(Path(__file__).parents[2] / "bootstrap")
"""First folder of PYTHONPATH in a job's processes: its `sitecustomize` starts what their environment asks for."""
_TRACKER = "multiprocessing.resource_tracker"
"""Helper of multiprocessing with its parent's environment: not a rank, whatever that names."""
_watcher: Watcher | None = None
_hooked = False


def arming_variables(folder: RunFolder) -> dict[str, str]:
    """Return the variables that arm all child processes: the folder of the run, and the token for readers.

    Raises:
        OSError: the folder can't be written.

    """
    variables = {
        VARIABLE: str(folder.path.absolute()),
        TOKEN: token(folder.path),
        "PYTHONPATH": os.pathsep.join([BOOTSTRAP, *_python_path()]),
    }
    if not os.environ.keys() & {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}:
        variables["TORCH_FR_DUMP_TEMP_FILE"] = str(folder.flight.absolute() / "rank_")
    return variables


def arm(folder: RunFolder | Path | str | None = None) -> Path | None:
    """Watch this process and its Python children from now on; return the run's folder, None if there can't be one.

    Without a folder, use the environment's, else one whose name all ranks of the launch derive alike.
    """
    if _watcher is not None and folder is None:
        return _watcher.folder.path
    try:
        chosen = _existing(folder) if folder is not None else RunFolder.of_environment() or _launch_folder()
        for name, value in arming_variables(chosen).items():
            if name == "PYTHONPATH" or not os.environ.get(name):
                os.environ[name] = value
        _watch(chosen)
    except OSError:
        return None
    return chosen.path


def arm_child() -> None:
    """Watch this process if the environment names a folder; for the bootstrap."""
    folder = RunFolder.of_environment()
    if folder is not None and _watcher is None and not any(_TRACKER in word for word in sys.orig_argv):
        _watch(folder)


def disarm() -> None:
    """Stop watching this process; its record stays as it is."""
    global _watcher
    if _watcher is not None:
        _watcher.finish(last=False)
    _watcher = None


def _python_path() -> list[str]:
    """Return the user's entries unchanged: an empty one means the working directory."""
    given = os.environ.get("PYTHONPATH")
    return [entry for entry in given.split(os.pathsep) if entry != BOOTSTRAP] if given else []


def _existing(folder: RunFolder | Path | str) -> RunFolder:
    chosen = folder if isinstance(folder, RunFolder) else RunFolder(Path(folder))
    for part in (chosen.path, chosen.ranks, chosen.flight, chosen.stacks, chosen.errors):
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
    return chosen


def _launch_folder() -> RunFolder:
    """Return a folder whose name all ranks of a launch derive without communication; a separate one for non-ranks."""
    if not membership.is_named():
        made = RunFolder.make()
    else:
        names = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID")
        launch = [os.environ.get(name, "") for name in names]
        if os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE"):  # one host, one launcher
            launch.append(str(os.getppid()))
        digest = hashlib.sha256("\n".join(launch).encode()).hexdigest()[:16]
        made = _existing(state_dir.home() / "runs" / f"run-{digest}")
    if not (made.path / "run.json").exists():
        top = os.getppid() if membership.is_named() else os.getpid()
        words = clean_command(sys.orig_argv)
        made.save_run(Run(command=words, started=time.time(), host=socket.gethostname(), pid=top))
    return made


def _watch(folder: RunFolder) -> None:
    global _watcher, _hooked
    if _watcher is not None:
        if _watcher.folder.path == folder.path:
            return
        disarm()
    named = membership.is_named() and not _is_child_of_rank(folder)
    if named and threading.current_thread() is threading.main_thread():  # other threads may read the environment in C
        membership.mark()
    _watcher = Watcher(folder, named=named)
    _watcher.start()
    if not _hooked:
        _hooked = True
        os.register_at_fork(after_in_child=_after_fork)
        atexit.register(_at_exit)  # registered early, so it runs late: other exit handlers are still watched
        sys.excepthook = _chain_hook(sys.excepthook)
        threading.excepthook = _chain_thread_hook(threading.excepthook)
        notice(_leaves)


def _is_child_of_rank(folder: RunFolder) -> bool:
    """True if the parent is the rank of this name, which it set in its own script and so did not mark."""
    parent = folder.record(os.getppid())
    return parent is not None and parent.host == socket.gethostname() and str(parent.rank) == os.environ.get("RANK")


Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def _chain_hook(previous: Hook) -> Hook:
    """Return a hook that first calls the previous one, then records the exception that ended the main thread."""

    def hook(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        try:
            previous(kind, value, trace)
        finally:
            if _watcher is not None and threading.current_thread() is threading.main_thread():
                _watcher.fails(value)

    return hook


def _chain_thread_hook(previous: Callable[[threading.ExceptHookArgs], object]) -> Callable[..., None]:
    """Return the same for other threads, whose end the rank survives."""

    def hook(args: threading.ExceptHookArgs) -> None:
        try:
            previous(args)
        finally:
            if _watcher is not None and args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
                _watcher.loses(args.thread.name if args.thread is not None else "", args.exc_value)

    return hook


def _leaves(leaving: Leaving) -> None:
    if _watcher is not None:
        _watcher.leaves(leaving)


def _at_exit() -> None:
    if _watcher is None:
        return
    last = getattr(sys, "last_value", None)
    interactive = hasattr(sys, "ps1") or "IPython" in sys.modules
    if last is not None and not interactive:  # another hook has replaced ours, or this is the second time
        _watcher.fails(last)
    _watcher.finish(last=True)


def _after_fork() -> None:
    """Replace the parent's watcher in a forked child; a child that may become a rank gets its own thread."""
    global _watcher
    parent = _watcher
    if parent is None:
        return
    parent.left_by_child()
    _watcher = Watcher(parent.folder, named=False)
    if membership.default_group() is None and _is_by_multiprocessing():
        _watcher.start()
        util = sys.modules.get("multiprocessing.util")
        if util is not None:
            util.register_after_fork(_watcher, _await_end)


def _await_end(watcher: Watcher) -> None:
    """Let a process of multiprocessing record what its function raised: that is printed and reaches no hook.

    Finalizers run while it passes: `BaseProcess._bootstrap` in
    https://github.com/python/cpython/blob/main/Lib/multiprocessing/process.py
    """
    from multiprocessing.util import Finalize

    def record() -> None:
        value = sys.exc_info()[1]
        if value is not None and not isinstance(value, SystemExit):
            watcher.fails(value)

    Finalize(None, record, exitpriority=0)


def _is_by_multiprocessing() -> bool:
    """True if multiprocessing forked this process: other forks mostly exec, and some must stay single-threaded."""
    frame = sys._getframe()  # noqa: SLF001 - documented
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_globals.get("__name__") in ("multiprocessing.popen_fork", "multiprocessing.forkserver"):
            return True
    return False
