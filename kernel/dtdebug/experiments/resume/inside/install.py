"""Notes each optimizer step of a process, and what it saves and restores; pauses where the settings ask for it."""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from dtdebug.experiments.repeat.training_steps import TrainingSteps
from dtdebug.experiments.resume.inside.save_calls import SaveCalls
from dtdebug.experiments.resume.inside.training_state import TrainingState
from dtdebug_taxonomy.stacks.frames import is_library

_LONGEST_PAUSE = 300.0


class RankNotes:
    """Notes file of this process; forked children write separate files."""

    def __init__(self, folder: str, home: str) -> None:
        self.folder, self.home = folder, os.path.realpath(home)
        self._pid = 0
        self.steps = 0
        """Number of steps of all optimizers."""
        self.dead = False

    def put(self, kind: str, /, **values: Any) -> None:
        """Write a record."""
        rows = [{"k": kind, "n": self.steps, **values}]
        if os.getpid() != self._pid:
            self._pid = os.getpid()
            rows.insert(0, {"k": "process", "n": self.steps, **_membership()})
        data = "".join(json.dumps(row, separators=(",", ":"), default=str) + "\n" for row in rows).encode()
        handle = os.open(
            f"{self.folder}/{self._pid}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        try:
            os.write(handle, data)
        finally:
            os.close(handle)

    def fails(self, error: Exception, where: str) -> None:
        """Stop taking notes, and say so in them."""
        if not self.dead:
            with suppress(Exception):
                self.put("off", why=f"{where}: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
        self.dead = True


def _membership() -> dict[str, Any]:
    module = sys.modules.get("torch.distributed.distributed_c10d")
    if module is not None and module.is_initialized():
        return {"rank": module.get_rank(), "world": module.get_world_size()}
    found = {name: os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE")}
    return {key: int(found[name]) for key, name in (("rank", "RANK"), ("world", "WORLD_SIZE")) if found[name].isdigit()}


def user_site(frame: FrameType | None) -> tuple[str, int]:
    """Return the innermost place in the user's own code, or ("", 0)."""
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno or 0) if frame is not None else ("", 0)


def guarded(notes: RankNotes, function: Callable[..., None]) -> Callable[..., None]:
    """Wrap an observer so that it never raises, and does nothing once taking notes has failed."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        if notes.dead:
            return
        try:
            function(*args, **kwargs)
        except Exception as error:
            notes.fails(error, function.__name__)

    return run


def begin(told: dict[str, Any], torch: ModuleType) -> None:
    """Start taking notes."""
    notes = RankNotes(str(told["folder"]), str(told["home"]))
    observer = _Steps(notes, torch, told.get("pause"))
    SaveCalls(notes, torch, functools.partial(guarded, notes), user_site, observer.state.holds_moments).patch()
    observer.patch()


class _Steps:
    """Observer of the optimizers' steps."""

    def __init__(self, notes: RankNotes, torch: Any, pause: int | None) -> None:
        self._notes, self._torch, self._pause = notes, torch, pause
        self.state = TrainingState(torch)
        self._depth = 0

    def patch(self) -> None:
        """Hook into forward and backward passes, steps, and the loaders."""
        torch, notes = self._torch, self._notes
        modules: Any = sys.modules["torch.nn.modules.module"]
        modules.register_module_forward_pre_hook(guarded(notes, self._forward))
        modules.register_module_forward_hook(guarded(notes, self._end_forward), always_call=True)
        steps = TrainingSteps(guarded(notes, self._begins), guarded(notes, self._ends))
        steps.hook(sys.modules["torch.optim.optimizer"])
        backward = torch.autograd.backward
        note_loss = guarded(notes, self.state.note_loss)

        @functools.wraps(backward)
        def run(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            note_loss(tensors)
            return backward(tensors, *args, **kwargs)

        torch.autograd.backward = run
        self.state.patch_makers(functools.partial(guarded, notes), user_site)

    def _forward(self, module: Any, args: Any) -> None:
        self._depth += 1
        if self._depth == 1 and self._torch.is_grad_enabled():
            self.state.note_forward(module, args)

    def _end_forward(self, module: Any, args: Any, output: Any) -> None:
        self._depth = max(0, self._depth - 1)

    def _begins(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._depth = 0
        notes = self._notes
        if notes.steps == self._pause:
            self._pause = None
            self._wait()
        frame = sys._getframe(3)  # noqa: SLF001 - documented
        notes.put("step", site=user_site(frame), **self.state.describe(optimizer, frame))

    def _ends(self, _: Any) -> None:
        self._notes.steps += 1
        self.state.clear()

    def _wait(self) -> None:
        """Wait until the working folder has been copied."""
        folder = Path(self._notes.folder)
        (folder / f"paused-{os.getpid()}").touch(mode=0o600)
        until = time.monotonic() + _LONGEST_PAUSE
        while not (folder / "go").exists() and time.monotonic() < until:
            time.sleep(0.02)
