"""`torch.cuda.device(n)` as a bare statement: a context that nothing enters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank, starts_ranks
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.ranks import rank
from dtdebug_taxonomy.source.text import Span


def check(code: Code) -> Iterator[Hit]:
    """Report the call."""
    for call in code.calls("torch.cuda.device"):
        if not isinstance(code.parent[call], ast.Expr) or not call.args:
            continue
        if not (starts_ranks(code) or depends_on_rank(code, call.args[0])):
            continue
        yield Hit(
            code.span(call),
            "This only makes a context and nothing enters it: the rank stays on the device that it "
            "had, GPU 0 as a rule.",
            _fix(code, call),
        )


def _fix(code: Code, call: ast.Call) -> Fix | None:
    if not isinstance(call.func, ast.Attribute) or rank(code, call.args[0]) == "global":
        return None  # only ranks of the first machine have such a device
    end = code.span(call.func).end
    return Fix("Choose the device: set_device", (Edit(Span(end - len("device"), end), "set_device"),))
