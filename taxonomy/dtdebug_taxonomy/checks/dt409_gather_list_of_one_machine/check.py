"""Lists for gathered tensors that have one entry per device of one machine."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.counting import of_one_machine, starts_its_ranks
from dtdebug_taxonomy.checks.shared.fixing import written_name
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_LISTS = {
    f"{DIST}all_gather": ("tensor_list", 0),
    f"{DIST}all_gather_object": ("object_list", 0),
    f"{DIST}gather": ("gather_list", 1),
    f"{DIST}gather_object": ("object_gather_list", 1),
}


def check(code: Code) -> Iterator[Hit]:
    """Report the length of the list."""
    if code.role == "test" or starts_its_ranks(code):
        return
    for name, (argument, place) in _LISTS.items():
        for call in code.calls(name):
            given = code.argument(call, argument, place)
            if given is None or code.argument(call, "group") is not None or code.has_unpacking(call):
                continue
            for value in code.values(given) if dotted_name(given) else [given]:
                length = _length(code, value)
                if length is None or not of_one_machine(code, length):
                    continue
                text, edits = written_name(code, DIST + "get_world_size")
                last = name.rsplit(".", 1)[-1]
                yield Hit(
                    code.span(length),
                    f"{last}() needs one entry per rank, and this counts the ranks of one machine: on two machines "
                    "the list is too short and the call fails.",
                    Fix("Count all ranks", (Edit(code.span(length), f"{text}()"), *edits)),
                )


def _length(code: Code, node: ast.expr | None) -> ast.expr | None:
    """Return the length of a list: `n` in `[... for _ in range(n)]` or `[None] * n`."""
    if isinstance(node, ast.ListComp) and len(node.generators) == 1:
        over = node.generators[0].iter
        if isinstance(over, ast.Call) and code.name(over.func) == "range" and len(over.args) == 1:
            return over.args[0]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
        return node.right
    return None
