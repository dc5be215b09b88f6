"""Runs the ranks of a rehearsal in forks of this process, which has already imported torch.

Most time of a short rank goes to importing torch and the modules that its optimizers import; forked ranks share that,
also in memory. Nothing else is imported in advance: other libraries read the rank's environment at import. Torch starts
no compute threads before the first tensor is computed, so it is safe to fork.

    PYTHON warm.py PLAN

PLAN is a file of JSON: `command` (of a rank, as `[PYTHON, script, ...]` or `[PYTHON, -m, module, ...]`),
`environment` (of all ranks), `ranks` (a list of `[rank, its variables]`), `folder`, `at_once` and `timeout` (seconds,
of a rank). A rank's output is in `said-R.txt` there; `ends.json` holds each result: an exit code, minus a signal, or
`null` for a rank that timed out. The first rank runs alone: its broadcasts are then available to the others.
"""

from __future__ import annotations

import ast
import atexit
import importlib
import json
import os
import runpy
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

_PAUSE = 0.01
_ALSO = ("torch.distributed", "torch.nn.parallel", "torch._dynamo")
"""Modules that the first step of any optimizer and the first wrapped model import."""


def main(plan: dict[str, Any]) -> list[str] | None:
    """Run all ranks; in the process of a rank, return its command line."""
    command = plan["command"]
    if sys.platform == "linux":  # elsewhere system libraries may not survive a fork
        _warm(command)
    waiting, running, ends = list(plan["ranks"]), dict[int, tuple[int, float]](), dict[str, int | None]()
    signal.signal(signal.SIGTERM, lambda number, frame: _end(running, number, frame))
    while waiting or running:
        if waiting and len(running) < (plan["at_once"] if ends else 1):
            rank, variables = waiting.pop(0)
            process = os.fork()
            if not process:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                return _become(plan, rank, variables)
            running[process] = rank, time.monotonic() + plan["timeout"]
            continue
        for process, (rank, until) in list(running.items()):
            ended, status = os.waitpid(process, os.WNOHANG)
            if not ended and time.monotonic() > until:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
            elif not ended:
                continue
            del running[process]
            ends[str(rank)] = os.waitstatus_to_exitcode(status) if ended else None
        time.sleep(_PAUSE)
    Path(plan["folder"], "ends.json").write_text(json.dumps(ends))
    return None


def _warm(command: list[str]) -> None:
    for name in ("torch", *_ALSO, *_torch_imports(command)):
        with suppress(Exception):  # the program will report it
            importlib.import_module(name)


def _torch_imports(command: list[str]) -> list[str]:
    """Return the torch modules that the script itself imports."""
    try:
        tree = ast.parse(Path(command[1]).read_bytes()) if command[1] != "-m" else None
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    nodes = list(ast.walk(tree)) if tree is not None else []
    names = {n.module or "" for n in nodes if isinstance(n, ast.ImportFrom) and not n.level}
    names |= {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    return sorted(name for name in names if name.startswith("torch."))


def _become(plan: dict[str, Any], rank: int, variables: dict[str, str]) -> list[str]:
    """Turn this process into a rank."""
    said = os.open(Path(plan["folder"], f"said-{rank}.txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(said, 1)
    os.dup2(said, 2)
    command, env = plan["command"], {**plan["environment"], **variables}
    if "torch" not in sys.modules:
        os.execve(command[0], command, {**os.environ, **env})  # noqa: S606 - the user's own command
    os.environ.update(env)
    from dtdebug.experiments.collectives.inside import install

    install.ready(sys.modules["torch"])
    return list(command)


def _end(running: dict[int, tuple[int, float]], number: int, frame: FrameType | None) -> None:
    for process in running:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    sys.exit(128 + number)


def _run(command: list[str]) -> None:
    """Run the rank's program as Python does."""
    module = command[1] == "-m"
    sys.argv = command[2:] if module else command[1:]
    sys.path[0] = "" if module else str(Path(command[1]).resolve().parent)
    if module:
        runpy.run_module(command[2], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(os.path.abspath(command[1]), run_name="__main__")  # noqa: PTH100 - links stay, as for Python


class _Leaving:
    """Exits a rank after its own exit handlers: tearing down torch in each fork takes ten times as long as the rank."""

    status: int | None = None
    """Exit status of the rank, as from Python; None in the forking process."""

    def __call__(self) -> None:
        if self.status is not None:
            for stream in (sys.stdout, sys.stderr):
                with suppress(Exception):
                    stream.flush()
            os._exit(self.status)


if __name__ == "__main__":
    _leaving = _Leaving()
    atexit.register(_leaving)  # the first handler registered runs last
    _mine = main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    if _mine is not None:  # at module level, so that the rank's stack contains no other frame of ours
        _leaving.status = 1
        try:
            _run(_mine)
            _leaving.status = 0
        except SystemExit as _ended:
            _code = 0 if _ended.code is None else _ended.code
            _leaving.status = _code & 0xFF if isinstance(_code, int) else 1
            raise
