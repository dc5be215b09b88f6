"""Distributed samplers that get the same rank on all ranks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import written_name
from dtdebug_taxonomy.checks.shared.names import DIST, SAMPLER
from dtdebug_taxonomy.checks.shared.stepping import in_step
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import is_size

_SET_LATER = re.compile(r"sampler\w*\.rank\s*=", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the rank."""
    if code.role == "test" or not in_step(code) or _SET_LATER.search(code.text):
        return
    samplers = code.calls(SAMPLER)
    told = [(c, code.argument(c, "rank", 2)) for c in samplers]
    numbers = {r.value for _, r in told if isinstance(r, ast.Constant) and type(r.value) is int}
    if len(numbers) != 1:
        return  # none, or those of several ranks, processed in turn
    for call, given in told:
        if not isinstance(given, ast.Constant) or type(given.value) is not int or guards(code).around(call):
            continue
        size = code.argument(call, "num_replicas", 1)
        if size is not None and not _is_of_all(code, size):
            continue
        up = code.parent[call]
        if isinstance(up, ast.Call) and dotted_name(up.func) in {"len", "list", "iter"}:
            continue
        yield Hit(
            code.span(given),
            f"Every rank takes part {given.value} of the data here: the other parts are never read, and the ranks "
            "compute the same gradients.",
            _fix(code, given),
        )


def _is_of_all(code: Code, size: ast.expr) -> bool:
    """True if a number of parts counts all processes rather than being a constant."""
    return is_size(code, size) and all(isinstance(v, ast.Call | ast.Subscript) for v in code.values(size))


def _fix(code: Code, given: ast.expr) -> Fix:
    rank, imports = written_name(code, DIST + "get_rank")
    return Fix("Pass the rank of the process", (*imports, Edit(code.span(given), f"{rank}()")))
