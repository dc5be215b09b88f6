"""Process groups that not all ranks create, or that differ between ranks."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.diverging import callers, condition, helpers, through_call
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import rank

_MAKERS = (
    DIST + "new_group",
    DIST + "new_subgroups",
    DIST + "new_subgroups_by_enumeration",
    DIST + "split_group",
    DIST + "init_device_mesh",
    DIST + "device_mesh.init_device_mesh",
)
_WHY = "all ranks must create all groups, in the same order, also those that they are not in."


def check(code: Code) -> Iterator[Hit]:
    """Report the call under the condition, also through functions, or the list of ranks that differs between ranks."""
    if code.role == "test":
        return
    calls = [
        c for c in code.calls(*_MAKERS) if code.constant(code.argument(c, "use_local_synchronization", 4)) is not True
    ]
    alike: dict[tuple[str, ...], list[ast.AST]] = defaultdict(list)
    for call in calls:
        alike[_arguments(code, call)].append(call)
    for call in calls:
        name = code.name(call.func).rsplit(".", 1)[-1]
        guard = condition(code, call, alike[_arguments(code, call)])
        ranks = code.argument(call, "ranks", 0) if name == "new_group" else None
        if guard is not None:
            yield Hit(code.span(call), f"{name}() runs {guard.test.words}: {_WHY}")
        elif ranks is not None and _differs(code, ranks):
            yield Hit(code.span(ranks), f"Each rank passes other ranks to {name}() here: {_WHY}")
    for function, origin in helpers(code, calls).items():
        places = callers(code, function)
        for call in places:
            if (guard := condition(code, call, places)) is not None:
                yield Hit(code.span(call), f"{through_call(code, function, origin)} runs {guard.test.words}: {_WHY}")


def _arguments(code: Code, call: ast.Call) -> tuple[str, ...]:
    return tuple(code.source_of(a) for a in (*call.args, *(k.value for k in call.keywords)))


def _differs(code: Code, ranks: ast.expr) -> bool:
    """True if a list of ranks is computed from the rank of this process."""
    values = code.values(ranks) if dotted_name(ranks) else [ranks]
    if all(isinstance(v, ast.List | ast.Tuple) and len(v.elts) == 1 for v in values):
        return False  # a group of one does not communicate
    if any(v is not None and not dotted_name(v) and _has_own_rank(code, v) for v in values):
        return True
    if not dotted_name(ranks):
        return False
    bound = [b for b in code.bound(ranks) if b.how == "assign" and isinstance(b.node, ast.stmt)]
    guarded = [[g.test for g in guards(code).around(b.node)] for b in bound]
    return len(bound) > 1 and any(a.completes(b) for one in guarded for other in guarded for a in one for b in other)


def _has_own_rank(code: Code, node: ast.expr) -> bool:
    """True if an expression contains the process's own rank, other than in a comprehension's condition."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return any(_has_own_rank(code, e) for e in node.elts)
    if isinstance(node, ast.BinOp):
        return _has_own_rank(code, node.left) or _has_own_rank(code, node.right)
    if isinstance(node, ast.Call) and code.name(node.func) in {"list", "range", "sorted", "tuple", "int"}:
        return any(_has_own_rank(code, a) for a in node.args)
    if isinstance(node, ast.ListComp):
        return _has_own_rank(code, node.generators[0].iter) or _has_own_rank(code, node.elt)
    if isinstance(node, ast.IfExp):
        return guards(code).test(node.test) is not None
    if isinstance(node, ast.Name) and not rank(code, node):
        values = code.values(node)
        return len(values) == 1 and isinstance(values[0], ast.BinOp) and _has_own_rank(code, values[0])
    return rank(code, node) in {"global", "local"}
