"""Sums over the part of the data of one rank, divided by the size of the whole data."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.names import SAMPLER
from dtdebug_taxonomy.checks.stepping import agrees
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code


def check(code: Code) -> Iterator[Hit]:
    """Reports the size."""
    if code.role == "test" or not code.calls(SAMPLER):
        return
    summed: dict[str, list[ast.AugAssign]] | None = None
    for call in code.calls("len"):
        size = call.args[0] if len(call.args) == 1 else None
        loader = size.value if isinstance(size, ast.Attribute) and size.attr == "dataset" else None
        divided = _divided(code, call) if loader is not None else None
        if loader is None or divided is None or not _is_split(code, loader):
            continue
        if summed is None:
            summed = {}
            for changed in code.nodes(ast.AugAssign):
                if isinstance(changed.op, ast.Add) and dotted(changed.target):
                    summed.setdefault(dotted(changed.target), []).append(changed)
        rows = [s for s in summed.get(divided, ()) if code.function(s) is code.function(call)]
        if not any(_over(code, s, dotted(loader)) for s in rows) or _reduced(code, call, divided):
            continue
        yield Hit(
            code.span(call),
            f"{divided} is a sum over the part of the data that this rank got, and this is the size of the whole: the "
            "quotient is too small by the number of ranks. Add up the sums and the counts of all ranks, or divide by "
            "the number of samples of this rank.",
        )


def _divided(code: Code, size: ast.Call) -> str | None:
    """The name that is divided by a size: `total / len(...)`, `total /= len(...)`."""
    up = code.parent.get(size)
    if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Div) and up.right is size:
        return dotted(up.left) or None
    if isinstance(up, ast.AugAssign) and isinstance(up.op, ast.Div) and up.value is size:
        return dotted(up.target) or None
    return None


def _is_split(code: Code, loader: ast.expr) -> bool:
    """Whether a loader surely has a sampler that gives each rank a part."""
    values = [v for v in code.values(loader) if v is not None]
    if not values or len(values) != len(code.values(loader)):
        return False
    for value in values:
        if not isinstance(value, ast.Call) or code.name(value.func).rpartition(".")[2] != "DataLoader":
            return False
        if not code.is_made_by(code.argument(value, "sampler", 3), SAMPLER):
            return False
    return True


def _over(code: Code, changed: ast.AugAssign, loader: str) -> bool:
    """Whether something is added up in a loop over the batches of a loader."""
    loops = (a for a in code.ancestors(changed) if isinstance(a, ast.For))
    return any(dotted(n) == loader for loop in loops for n in code.inside(loop.iter, ast.Name, ast.Attribute))


def _reduced(code: Code, call: ast.Call, name: str) -> bool:
    """Whether the ranks may add up the sum, before or after the division."""
    function = code.function(call)
    statement = code.statement(call)
    results = [dotted(t) for t in statement.targets] if isinstance(statement, ast.Assign) else []
    told = {name, *results} - {""}
    home = function or code.tree
    for other in code.inside(home, ast.Call):
        if agrees(code, other) and any(
            dotted(n) in told
            for a in (*other.args, *(k.value for k in other.keywords))
            for n in code.inside(a, ast.Name, ast.Attribute)
        ):
            return True
    return False
