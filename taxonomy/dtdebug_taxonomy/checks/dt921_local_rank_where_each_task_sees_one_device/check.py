"""Devices numbered by the local rank, in tasks that see one device each."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.launching import tasks
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.ranks import rank
from dtdebug_taxonomy.source.shell.commands import Word
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.started_programs import started_programs

_ONE = re.compile(r"(?:[a-zA-Z][\w.-]*:)?1")
_BIND = re.compile(r"(gres/)?gpu:(single|per_task):1|(single|per_task):1")
_OTHERWISE = ("--tres-bind", "--gpu-bind")
_SET = ("torch.cuda.set_device",)
_JAX = "jax.distributed.initialize"


def check(script: Script) -> Iterator[Hit]:
    """Report the program."""
    for start in started_programs(script):
        if start.launch is not None or start.code is None or not start.runs_under("srun"):
            continue
        begun, why = tasks(script, start.before), _one_each(script, start.before)
        if not why or begun is None or (begun.per_node or 1) < 2 or "CUDA_VISIBLE_DEVICES" in script.text:
            continue
        line = _device_line(start.code)
        if line is None:
            continue
        yield Hit(
            start.program.span,
            f"With {why} each task sees one device, which is number 0 to it, and {start.name} takes that of "
            f"its local rank (line {line}): all tasks but the first end with an invalid device ordinal. Ask for the "
            "devices of a node instead (--gpus-per-node), or take device 0.",
        )


def _one_each(script: Script, before: tuple[Word, ...]) -> str:
    """Return the option that gives each task one device; "" if there is none or it may be overridden."""
    rows = [(d.name, d.value or "") for d in script.directives]
    rows += [(w.text.partition("=")[0], w.text.partition("=")[2]) for w in before]
    for name, value in rows:
        if name in _OTHERWISE:
            return f"{name}={value}" if _BIND.fullmatch(value) else ""
    return next((f"{n}={v}" for n, v in rows if n == "--gpus-per-task" and _ONE.fullmatch(v)), "")


def _device_line(code: Code) -> int | None:
    """Return the line in which a program selects the device of its local rank; None if it may not."""
    if "device_count" in code.text or "CUDA_VISIBLE_DEVICES" in code.text:
        return None
    for call in code.calls(_JAX):  # takes the device of the local rank unless it is told otherwise
        if not any(k.arg in {"local_device_ids", None} for k in call.keywords):
            return code.text.place(code.span(call).start).line
    for call in code.calls(*_SET):
        given = code.argument(call, "device", 0)
        if given is not None and rank(code, given) == "local":
            return code.text.place(code.span(call).start).line
    return None
