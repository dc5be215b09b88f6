"""How following the collectives gets into a process: when the program has imported torch.

`DTDEBUG_COURSE` names a file of JSON: `{"folder": DIR, "do": ["record", ...], ...options}`. Each name in `do` is a
module of this package with `begin(told, torch)`, where `told` is that JSON; one that follows the collectives sets up
the road and adds its listener to it (see `road`). The watch needs none: no call of a job that is only watched passes
through Python for us.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from contextlib import suppress
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

VARIABLE = "DTDEBUG_COURSE"
"""Environment variable that names the file of what is to be done."""


def begin(name: str) -> ModuleSpec | None:
    """Where that module is, with what begins after its import; begins at once if torch is imported already."""
    if "torch" in sys.modules:
        ready(sys.modules["torch"])
        return None
    for finder in list(sys.meta_path):
        find = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = find(name, None, None) if find is not None else None
        if spec is not None:
            if spec.loader is not None:
                _after(spec.loader, ready)
            return spec
    return None


def _after(loader: Any, then: Any) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        then(module)

    loader.exec_module = exec_module


def ready(torch: ModuleType) -> None:
    """Begins what the file names; what fails says so in one line, and the job goes on."""
    try:
        with open(os.environ[VARIABLE], encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes milliseconds
            told: dict[str, Any] = json.load(file)
    except Exception as error:
        complain(f"the collectives are not followed ({type(error).__name__}: {error})")
        return
    for what in told["do"]:
        try:
            importlib.import_module(f"dtdebug.course.inside.{what}").begin(told, torch)
        except Exception as error:
            complain(f"{what} has not begun ({type(error).__name__}: {error})")


def complain(text: str) -> None:
    """One line on standard error, whatever has become of it; the job goes on."""
    rank = os.environ.get("RANK")
    line = f"dtdebug: {f'rank {rank}: ' if rank else ''}{' '.join(text.split())[:500]}; the job goes on\n"
    with suppress(OSError):
        os.write(2, line.encode())
