"""Collectives of one of several similar groups whose `src` or `dst` is the constant 0 or the rank in the group."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.names import DIST, ROOTS
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import rank

_ONE_OF_SEVERAL = re.compile(
    r"(get_)?(tp|pp|cp|ep|sp|mp|ulysses|ring|(tensor|pipeline|context|expert|sequence)(_model)?_parallel|model_parallel)"
    r"_?(process_)?group"
)
"""Names of groups that exist several times once there is another dimension; most do not contain rank 0."""


def check(code: Code) -> Iterator[Hit]:
    """Report the root."""
    if code.role == "test":
        return
    for name, (argument, place, group_place) in ROOTS.items():
        for call in code.calls(DIST + name):
            group, root = code.argument(call, "group", group_place), code.argument(call, argument, place)
            if group is None or root is None or not _is_one_of_several(code, group):
                continue
            if not (isinstance(root, ast.Constant) and root.value == 0) and not _is_rank_in_group(code, root):
                continue
            yield Hit(
                code.span(root),
                f"{argument}= of {name}() is a global rank, whatever the group: a group that does not "
                "contain it fails or hangs.",
                _fix(code, call, root, argument),
            )


def _is_one_of_several(code: Code, group: ast.expr) -> bool:
    """True if a group is one of several, judging by its usual name."""
    called = group.func if isinstance(group, ast.Call) else group
    last = called.attr if isinstance(called, ast.Attribute) else dotted_name(called)
    return bool(_ONE_OF_SEVERAL.fullmatch(last.lower().strip("_"))) or _is_made_in_a_loop(code, group)


def _is_made_in_a_loop(code: Code, group: ast.expr, depth: int = 3) -> bool:
    """True if a group is one of those that a loop makes, one for each set of ranks."""
    for value in code.values(group) if depth else ():
        if isinstance(value, ast.Call) and code.name(value.func) == f"{DIST}new_group":
            ranks = code.argument(value, "ranks", 0)
            loop = next((a for a in code.ancestors(value) if isinstance(a, ast.For)), None)
            if loop is not None and ranks is not None and _depends_on(code, ranks, loop):
                return True
        elif value is not None and value is not group and _is_made_in_a_loop(code, value, depth - 1):
            return True
    return False


def _depends_on(code: Code, ranks: ast.expr, loop: ast.For) -> bool:
    """True if the ranks of a group are others in each round of a loop."""
    own = {n.id for n in code.inside(loop.target, ast.Name)}
    values = [ranks, *(v for v in code.values(ranks) if v is not None)]
    return any(n.id in own for v in values for n in code.inside(v, ast.Name))


def _is_rank_in_group(code: Code, root: ast.expr) -> bool:
    return isinstance(root, ast.Call) and rank(code, root) == "group"


def _fix(code: Code, call: ast.Call, root: ast.expr, argument: str) -> Fix | None:
    """Return a fix that names the root by its rank in the group, which PyTorch accepts since 2.6."""
    keyword = next((k for k in call.keywords if k.value is root), None)
    if keyword is None:
        return None
    return Fix(
        "Count within the group (PyTorch 2.6)", (Edit(code.span(keyword), f"group_{argument}={code.source_of(root)}"),)
    )
