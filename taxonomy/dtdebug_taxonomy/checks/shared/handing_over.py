"""Files that one rank writes and others read: file identity, and synchronisation in between."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right

from dtdebug_taxonomy.checks import Edit, Fix
from dtdebug_taxonomy.checks.shared.fixing import indent_of, is_main, written_name
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.source.python.bindings import leaves, surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard, guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS
from dtdebug_taxonomy.source.text import Span

MEETS = re.compile(
    r"barrier|synchronize|(^|_)sync|wait|broadcast|gather|all_?reduce|reduce|init_process_group|init_distributed|"
    r"DistributedDataParallel|^DDP$|^FSDP$|FullyShardedDataParallel|fully_shard|prepare$|initialize|main_process_first"
)
_FIRST = re.compile(r"first|zero_first|wait|sync|barrier|lock", re.IGNORECASE)


def written_by_first(code: Code, call: ast.Call) -> Guard | None:
    """Return the condition under which rank 0 alone makes a call."""
    around = guards(code).around(call)
    if len(around) != 1 or around[0].early:
        return None
    if isinstance(node := around[0].node, ast.If) and leaves(node.body):
        return None  # the callers order the ranks
    test = around[0].test
    return around[0] if test.value == "0" and test.equal and test.which in {"global", "local"} else None


def read_by_others(code: Code, read: ast.Call, write: ast.Call, guard: Guard) -> bool:
    """True if other ranks reach a later call without synchronising with the writing rank."""
    if code.function(read) is not code.function(write) or code.order[read] < code.order[write]:
        return False
    if any(a is guard.node for a in code.ancestors(read)):
        return False
    if any(g.test == guard.test for g in guards(code).around(read)):
        return False
    if surely_before(code, guard.node, read) is None:
        return False  # another branch of a condition that is the same on all ranks
    return not meets(code, write, read)


def meets(code: Code, first: ast.AST, later: ast.AST) -> bool:
    """True if the ranks may wait for each other between two places of one function."""
    low, high, function = code.order[first], code.order[later], code.function(first)
    calls = code.nodes(ast.Call)
    start, end = (bisect_right(calls, o, key=code.order.__getitem__) for o in (low, high - 1))
    if any(code.function(call) is function and _may_meet(code, call) for call in calls[start:end]):
        return True
    for up in (*code.ancestors(first), *code.ancestors(later)):
        if isinstance(up, ast.With | ast.AsyncWith) and any(
            _FIRST.search(code.source_of(i.context_expr)) for i in up.items
        ):
            return True
        if isinstance(up, FUNCTIONS):
            break
    return False


def _may_meet(code: Code, call: ast.Call, depth: int = 2) -> bool:
    last = getattr(call.func, "attr", "") or getattr(call.func, "id", "")
    if MEETS.search(last):
        return not code.name(call.func).startswith("torch.cuda.")
    function = code.local_function(call) if depth else None
    return function is not None and any(_may_meet(code, c, depth - 1) for c in code.inside(function, ast.Call))


def same_file(code: Code, one: ast.expr | None, other: ast.expr | None) -> bool:
    """True if two expressions name the same file: the same source and bindings, or the same constant."""
    if one is None or other is None:
        return False
    if code.source_of(one) == code.source_of(other):
        return not dotted_name(one) or _same_bindings(code, one, other)
    value = code.constant(one)
    return isinstance(value, str) and value == code.constant(other)


def _same_bindings(code: Code, one: ast.expr, other: ast.expr) -> bool:
    return {id(b.node) for b in code.bound(one)} == {id(b.node) for b in code.bound(other)}


def wait_after(code: Code, guard: Guard) -> Fix | None:
    """Return a fix that adds a barrier for all ranks after a condition's `if`; None if not all ranks reach it."""
    node = guard.node
    if not isinstance(node, ast.If) or not code.imports_any("torch.distributed", "torch") or guards(code).around(node):
        return None
    if not code.source_of(node).startswith("if") or "torch.distributed" not in code.imports.values():
        return None
    barrier, imports = written_name(code, "torch.distributed.barrier")
    last = code.text.place(code.span(node).end).line
    end = code.text.end_of_line(last)
    initialised = any(
        not any(isinstance(a, ast.If) for a in code.ancestors(c) if not is_main(a)) for c in code.calls(INIT)
    )
    edit = Edit(Span(end, end), f"\n{indent_of(code, node)}{barrier}()")
    return Fix("Let all ranks wait for the one that writes", (*imports, edit), safe=initialised)
