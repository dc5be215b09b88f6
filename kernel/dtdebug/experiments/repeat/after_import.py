"""Patches modules of torch as soon as they are imported, and says where that fails."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import ModuleType
from typing import Any

Patch = Callable[[str, ModuleType], None]
"""Called with the name of a module and the module, once it is imported."""
_LAUNCHERS = ("/torchrun", "/torch/distributed/run.py", "/torch/distributed/launch.py")


def after_import(names: Iterable[str], patch: Patch) -> None:
    """Patch the modules that are imported, and the others after their import."""
    later = set()
    for name in names:
        if name in sys.modules:
            patch(name, sys.modules[name])
        else:
            later.add(name)
    sys.meta_path.insert(0, _After(patch, later))


def is_launcher() -> bool:
    """True in the process that starts the ranks."""
    main = (getattr(sys.modules.get("__main__"), "__file__", None) or " ".join(sys.orig_argv[:3])).replace("\\", "/")
    return "RANK" not in os.environ and main.endswith(_LAUNCHERS)


def complain(text: str) -> None:
    """Print one line on standard error, ignoring errors; the job continues."""
    rank = os.environ.get("RANK")
    line = f"dtdebug: {f'rank {rank}: ' if rank else ''}{' '.join(text.split())[:500]}; the job goes on\n"
    with suppress(OSError):
        os.write(2, line.encode())


class _After:
    """Import hook that finds no modules itself."""

    def __init__(self, patch: Patch, waiting: set[str]) -> None:
        self._patch, self._waiting = patch, waiting

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if name not in self._waiting:
            return None
        self._waiting.discard(name)
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                if spec.loader is not None:
                    self._wrap(spec.loader, name)
                return spec
        return None

    def _wrap(self, loader: Any, name: str) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self._patch(name, module)

        loader.exec_module = exec_module
