"""Models that one process spreads over several devices."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.wrapping import DATA_PARALLEL, DDPS
from dtdebug_taxonomy.source.python.code import Code


def check(code: Code) -> Iterator[Hit]:
    """Report the wrapper, unless the program also uses DistributedDataParallel."""
    if code.calls(*DDPS):
        return
    for call in code.calls(*DATA_PARALLEL):
        devices = code.argument(call, "device_ids", 1)
        if isinstance(devices, ast.List) and len(devices.elts) == 1:
            continue
        yield Hit(
            code.span(call.func),
            "DataParallel copies the model to all devices in every step and runs them from one Python process: it is "
            "slower than DistributedDataParallel, on one machine too.",
        )
