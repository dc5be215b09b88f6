"""Collectives whose `src` or `dst` is the rank of the calling process."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.names import DIST, ROOTS
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import rank

_OWN = re.compile(r"(self|\w*args|cfg|config|opts?|hparams)\._?(global_)?rank")


def check(code: Code) -> Iterator[Hit]:
    """Report the root."""
    for name, (argument, place, group_place) in ROOTS.items():
        calls = code.calls(DIST + name)
        parted: set[ast.If] | None = None
        for call in calls:
            root = code.argument(call, argument, place)
            if root is None or code.argument(call, "group", group_place) is not None:
                continue
            if rank(code, root) != "global" or not _is_own(code, root) or guards(code).around(call):
                continue
            parted = _split_conditions(code, calls) if parted is None else parted
            if not any(condition in parted for condition, _ in _branches(code, call)):
                yield Hit(
                    code.span(root),
                    f"Each rank names itself here, and {argument}= of {name}() has to be the same rank on all: each "
                    "waits for the others to answer it.",
                    Fix("Let rank 0 be the root", (Edit(code.span(root), "0"),)),
                )


def _split_conditions(code: Code, calls: list[ast.Call]) -> set[ast.If]:
    """Return the conditions with such a call in both branches: one for the root, one for the rest."""
    sides: dict[ast.If, set[bool]] = defaultdict(set)
    for call in calls:
        for condition, otherwise in _branches(code, call):
            sides[condition].add(otherwise)
    return {condition for condition, both in sides.items() if len(both) > 1}


def _branches(code: Code, node: ast.AST) -> Iterator[tuple[ast.If, bool]]:
    """Yield the conditions around a place, and whether it is in their `else` branch."""
    for inner, up in pairwise([node, *code.ancestors(node)]):
        if isinstance(up, ast.If) and inner is not up.test:
            yield up, bool(up.orelse) and code.order[inner] >= code.order[up.orelse[0]]


def _is_own(code: Code, root: ast.expr) -> bool:
    """True if it definitely is the caller's rank: not a parameter, and not a rank from a loop."""
    if isinstance(root, ast.Name):
        bound = code.bound(root)
        values = [b.value for b in bound if b.how == "assign" and b.value is not None]
        return len(values) == len(bound) > 0 and all(isinstance(v, ast.Call) and rank(code, v) for v in values)
    return isinstance(root, ast.Call) or bool(_OWN.fullmatch(dotted_name(root)))
