"""Collectives whose `src` or `dst` is the rank of the process that calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.names import DIST, ROOTS
from dtdebug_taxonomy.source.guards import guards
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.ranks import rank

_OWN = re.compile(r"(self|\w*args|cfg|config|opts?|hparams)\._?(global_)?rank")


def check(code: Code) -> Iterator[Hit]:
    """Reports the root."""
    for name, (argument, place, group_place) in ROOTS.items():
        calls = code.calls(DIST + name)
        for call in calls:
            root = code.argument(call, argument, place)
            if root is None or code.argument(call, "group", group_place) is not None:
                continue
            if rank(code, root) == "global" and _is_own(code, root) and not _for_owner(code, call, calls):
                yield Hit(
                    code.span(root),
                    f"Each rank names itself here, and {argument}= of {name}() has to be the same rank on all: each "
                    "waits for the others to answer it.",
                    Fix("Let rank 0 be the root", (Edit(code.span(root), "0"),)),
                )


def _for_owner(code: Code, call: ast.Call, calls: list[ast.Call]) -> bool:
    """Whether one rank alone comes here: behind a condition on it, or one whose other branch has another root."""
    branches = ((up, inner) for inner, up in pairwise([call, *code.ancestors(call)]) if isinstance(up, ast.If))
    others = (up.orelse if inner in up.body else up.body for up, inner in branches if inner is not up.test)
    elsewhere = {s for block in others for s in block}
    return bool(guards(code).around(call)) or any(elsewhere & set(code.ancestors(c)) for c in calls)


def _is_own(code: Code, root: ast.expr) -> bool:
    """Whether it's surely the caller's rank: no parameter, and none of the ranks that a loop goes through."""
    if isinstance(root, ast.Name):
        bound = code.bound(root)
        values = [b.value for b in bound if b.how == "assign" and b.value is not None]
        return len(values) == len(bound) > 0 and all(isinstance(v, ast.Call) and rank(code, v) for v in values)
    return isinstance(root, ast.Call) or bool(_OWN.fullmatch(dotted(root)))
