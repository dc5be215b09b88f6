"""Starts the modules that follow collectives in a process, once the program has imported torch.

`DTDEBUG_COURSE` names a file of JSON: `{"folder": DIR, "do": ["record", ...], ...options}`. Each name in `do` is a
module of this package, or the full name of one of another experiment, with `begin(told, torch)`, where `told` is that
JSON; one that follows collectives installs the
kernels of `dispatcher_hook` and adds a listener. The watch needs neither: in a job that is only watched, no call passes
through our Python code.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from dtdebug.experiments.repeat.after_import import complain

VARIABLE = "DTDEBUG_COURSE"
"""Environment variable with the path of the settings file."""
_EXPERIMENTS = "dtdebug.experiments."


def begin(name: str) -> ModuleSpec | None:
    """Return a module's spec that starts after its import, or start at once if torch is already imported."""
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
    """Start the modules in the settings file; a failure prints one line, and the job continues."""
    try:
        with open(os.environ[VARIABLE], encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes milliseconds
            told: dict[str, Any] = json.load(file)
    except Exception as error:
        complain(f"the collectives are not followed ({type(error).__name__}: {error})")
        return
    for what in told["do"]:
        name = what if what.startswith(_EXPERIMENTS) else f"{_EXPERIMENTS}collectives.inside.{what}"
        try:
            importlib.import_module(name).begin(told, torch)
        except Exception as error:
            complain(f"{what} has not begun ({type(error).__name__}: {error})")


__all__ = ["VARIABLE", "begin", "complain", "ready"]
