"""Slices of the data by rank in DistributedDataParallel programs that do not equalise the steps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.checks.shared.names import DDP, FSDP
from dtdebug_taxonomy.checks.shared.ranks_seen import is_started_here
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import is_size, rank

_EVENS = re.compile(
    r"\bJoin\b|\.join\(\s*(\[|throw|divide)|with\s+[\w.]+\.join\(|join\(\)|drop_last\s*=\s*True|MIN\b|%|min\(|steps_per_epoch|max_steps|islice"
)
_TEST = re.compile(r"test|val|eval|dev|predict|infer|generat|prompt", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the slice `data[rank::world_size]`."""
    if (
        not (code.calls(DDP, FSDP) or horovod.calls(code, "DistributedOptimizer"))
        or not code.methods("backward")
        or not is_started_here(code)
    ):
        return
    for cut in code.nodes(ast.Slice):
        if cut.lower is None or cut.step is None or cut.upper is not None:
            continue
        if rank(code, cut.lower) != "global" or not is_size(code, cut.step):
            continue
        if _EVENS.search(code.text) or _is_for_tests(code, cut):
            return
        whole = code.parent[cut]
        yield Hit(
            code.span(whole),
            "The parts of the ranks can differ in length by one: then one rank takes a step more than the others and "
            "waits in its backward pass for ever.",
        )


def _is_for_tests(code: Code, cut: ast.Slice) -> bool:
    statement, home = code.statement(cut), code.function(cut)
    names = [dotted_name(t) for t in getattr(statement, "targets", [])] + [home.name if home else ""]
    whole = code.parent[cut]
    names.append(dotted_name(whole.value) if isinstance(whole, ast.Subscript) else "")
    return any(_TEST.search(n) for n in names)
