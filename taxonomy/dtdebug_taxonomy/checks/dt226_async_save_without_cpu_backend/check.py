"""Asynchronous checkpoints in a group with a backend for GPUs only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.names import DIST, INIT
from dtdebug_taxonomy.source.python.code import Code

_SAVES = (DIST + "checkpoint.async_save", DIST + "checkpoint.state_dict_saver.async_save")
_GPU_ONLY = re.compile(r"nccl|rccl|(cuda:\w+)(,cuda:\w+)*", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the backend."""
    saves = [
        c
        for c in code.calls(*_SAVES)
        if not any(k.arg in {None, "process_group", "no_dist"} for k in c.keywords) and not code.has_unpacking(c)
    ]
    if not saves:
        return
    for call in code.calls(INIT):
        backend = code.argument(call, "backend", 0)
        value = code.constant(backend)
        if backend is None or not isinstance(value, str) or not _GPU_ONLY.fullmatch(value):
            continue
        line = code.text.place(code.span(saves[0]).start).line
        fix = Fix("Add a backend for the CPU", (Edit(code.span(backend), '"cpu:gloo,cuda:nccl"'),))
        yield Hit(
            code.span(backend),
            f"async_save() at line {line} talks to the other ranks from the CPU, and this group has no backend for it: "
            'it ends with "A CPU backend must be enabled for async save".',
            fix if value == "nccl" and isinstance(backend, ast.Constant) else None,
        )
