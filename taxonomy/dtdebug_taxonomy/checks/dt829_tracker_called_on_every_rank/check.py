"""`wandb.log` in a Lightning module, whose logger starts the run only on rank 0."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.everyone import asks
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards

_MODULES = re.compile(r"LightningModule|lightning\.(pytorch\.)?(callbacks\.)?Callback")


def check(code: Code) -> Iterator[Hit]:
    """Report the call, or the attribute of the run."""
    if code.calls("wandb.init") or code.role == "test":
        return
    for call in code.calls("wandb.log"):
        if _on_every_rank(code, call):
            yield Hit(
                code.span(call.func),
                "The logger starts its run on rank 0 alone: on the other ranks this fails with "
                '"You must call wandb.init() before wandb.log()".',
            )
    for node in code.nodes(ast.Attribute):
        if code.name(node.value) == "wandb.run" and _on_every_rank(code, node) and not _is_handled(code, node):
            yield Hit(
                code.span(node),
                "The logger starts its run on rank 0 alone: on the other ranks wandb.run is None, which has no "
                f"{node.attr}, and this raises AttributeError.",
            )


def _on_every_rank(code: Code, node: ast.AST) -> bool:
    """True if every rank reaches a place in a Lightning class."""
    home = code.class_of(node)
    if home is None or not any(_MODULES.search(code.name(b)) for b in home.bases) or guards(code).around(node):
        return False
    return not any(isinstance(a, ast.If) and asks(code, a.test) for a in code.ancestors(node))


def _is_handled(code: Code, node: ast.AST) -> bool:
    """True if code around a place first tests for the run, or catches the error."""
    inner = node
    for up in code.ancestors(node):
        if isinstance(up, ast.Try):
            return True
        if isinstance(up, ast.If | ast.IfExp) and inner is not up.test and "wandb.run" in code.source_of(up.test):
            return True
        if isinstance(up, ast.BoolOp) and "wandb.run" in code.source_of(up.values[0]):
            return True
        inner = up
    return False
