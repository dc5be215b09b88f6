"""Calls that start processes which import the program again, and detection of notebooks."""

from __future__ import annotations

import ast
import re

from dtdebug_taxonomy.source.python.code import Code

SPAWN = {"torch.multiprocessing.spawn", "torch.multiprocessing.start_processes"}
_PROCESS = {"multiprocessing.Process", "torch.multiprocessing.Process"}
_METHOD = {"multiprocessing.set_start_method", "torch.multiprocessing.set_start_method"}
_EXPORTED = re.compile(
    r"^# Databricks notebook source|^# COMMAND -----|^# %% \[markdown\]|^# In\[[ \d]*\]:", re.MULTILINE
)


def in_notebook(code: Code) -> bool:
    """True if the program consists of a notebook's cells, or was exported from one."""
    return code.notebook or bool(code.calls("get_ipython")) or _EXPORTED.search(code.text) is not None


def spawning(code: Code) -> list[ast.Call]:
    """Return the calls that start processes by spawn or forkserver."""
    found = [c for c in code.calls(*SPAWN) if _method(code, c, "start_method", 5) == "spawn"]
    if any(_method(code, c, "method", 0) in {"spawn", "forkserver"} for c in code.calls(*_METHOD)):
        found += code.calls(*_PROCESS)
    for call in code.methods("Process"):
        context = call.func.value if isinstance(call.func, ast.Attribute) else None
        for value in code.values(context):
            if isinstance(value, ast.Call) and code.name(value.func).endswith("multiprocessing.get_context"):
                found += [call] if _method(code, value, "method", 0) in {"spawn", "forkserver"} else []
    return found


def _method(code: Code, call: ast.Call, name: str, place: int) -> object:
    given = code.argument(call, name, place)
    return "spawn" if given is None else code.constant(given)
