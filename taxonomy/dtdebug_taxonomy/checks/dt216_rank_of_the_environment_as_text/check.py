"""Ranks from the environment that are passed on as strings where a number is needed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.environment import RANKS, SIZES, reading
from dtdebug_taxonomy.checks.shared.names import DDP, INIT, SAMPLER
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_PLACES: dict[str, tuple[tuple[str, int], ...]] = {
    "torch.device": (("index", 1),),
    "torch.cuda.set_device": (("device", 0),),
    INIT: (("rank", 4), ("world_size", 3)),
    SAMPLER: (("rank", 2), ("num_replicas", 1)),
    DDP: (("device_ids", 1), ("output_device", 2)),
    "range": (("stop", 0),),
}


def check(code: Code) -> Iterator[Hit]:
    """Report the argument."""
    for call in code.calls(*_PLACES):
        for name, place in _PLACES[code.name(call.func)]:
            given = code.argument(call, name, place)
            for part in given.elts if isinstance(given, ast.List | ast.Tuple) else (given,):
                variable = _text(code, part) if part is not None else ""
                if part is None or not variable:
                    continue
                yield Hit(
                    code.span(part),
                    f"{variable} is read from the environment as a string, and {code.source_of(call.func)}() needs a "
                    "number here: it raises an error once a launcher has set it.",
                    Fix("Make it a number", (Edit(code.span(part), f"int({code.source_of(part)})"),)),
                )


def _text(code: Code, node: ast.expr) -> str:
    """Return the variable whose string an expression definitely is."""
    values = code.values(node) if dotted_name(node) else [node]
    found = [reading(code, v) if v is not None else None for v in values]
    names = {f.variable if f else "" for f in found}
    variable = names.pop() if len(names) == 1 else ""
    return variable if variable in (RANKS | SIZES) - {"MASTER_PORT"} else ""
