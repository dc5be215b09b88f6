"""`rank // num_nodes` and `rank % num_nodes`, although the ranks of a machine are consecutive."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import rank

_MACHINES = re.compile(r"_*(num_?nodes|n_?nodes|nnodes|node_count|num_machines|number_of_nodes)", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the quotient or remainder."""
    if code.role == "test":
        return
    for node in code.nodes(ast.BinOp):
        if not isinstance(node.op, ast.FloorDiv | ast.Mod) or rank(code, node.left) != "global":
            continue
        if not _MACHINES.fullmatch(dotted_name(node.right).rpartition(".")[2]):
            continue
        what = "the number of the machine" if isinstance(node.op, ast.FloorDiv) else "the local rank"
        yield Hit(
            code.span(node),
            f"Launchers number the ranks machine by machine, so {what} comes from the number of ranks "
            "on one machine, not "
            "from the number of machines.",
        )
