"""Timeouts of process groups that are plain numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import written_name
from dtdebug_taxonomy.checks.shared.names import DIST, INIT
from dtdebug_taxonomy.checks.shared.values import is_number
from dtdebug_taxonomy.source.python.code import Code

_PLACES = {
    INIT: 2,
    DIST + "new_group": 1,
    DIST + "new_subgroups": 2,
    DIST + "monitored_barrier": 1,
    DIST + "TCPStore": 4,
    "deepspeed.init_distributed": None,
    "accelerate.InitProcessGroupKwargs": 2,
    "accelerate.utils.InitProcessGroupKwargs": 2,
    "accelerate.utils.dataclasses.InitProcessGroupKwargs": 2,
    "pytorch_lightning.strategies.DDPStrategy": None,
    "pytorch_lightning.strategies.FSDPStrategy": None,
    "lightning_fabric.strategies.DDPStrategy": None,
    "lightning_fabric.strategies.FSDPStrategy": None,
}
"""Callables that take a `timedelta`, with its position."""


def check(code: Code) -> Iterator[Hit]:
    """Report the argument."""
    for call in code.calls(*_PLACES):
        name = code.name(call.func)
        timeout = code.argument(call, "timeout", _PLACES[name]) or _unpacked_timeout(code, call)
        if timeout is None or not is_number(code, timeout):
            continue
        if name.endswith("monitored_barrier") and type(code.constant(timeout)) is not int:
            continue  # it takes a float for seconds
        written, edits = written_name(code, "datetime.timedelta")
        text = f"{written}(seconds={code.source_of(timeout)})"
        yield Hit(
            code.span(timeout),
            f"{name.rsplit('.', 1)[-1]}() wants its timeout as a datetime.timedelta and gets a number: "
            "setting up the process group raises TypeError.",
            Fix("Pass the seconds as a timedelta", (Edit(code.span(timeout), text), *edits)),
        )


def _unpacked_timeout(code: Code, call: ast.Call) -> ast.expr | None:
    """Return the argument if it is passed by `**options`, a dictionary of this file."""
    for keyword in call.keywords:
        for table in code.values(keyword.value) if keyword.arg is None else ():
            if isinstance(table, ast.Call) and code.name(table.func) == "dict":
                return code.argument(table, "timeout")
            if isinstance(table, ast.Dict):
                pairs = zip(table.keys, table.values, strict=True)
                return next((v for k, v in pairs if k is not None and code.constant(k) == "timeout"), None)
    return None
