"""Sums over one rank's part of the data, divided by the size of the whole data."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.names import SAMPLER
from dtdebug_taxonomy.checks.shared.stepping import agrees
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import Function


def check(code: Code) -> Iterator[Hit]:
    """Report the size."""
    if code.role == "test" or not code.calls(SAMPLER):
        return
    known = _Figures(code)
    for call in code.calls("len"):
        size = call.args[0] if len(call.args) == 1 else None
        loader = size.value if isinstance(size, ast.Attribute) and size.attr == "dataset" else None
        divided = _divided_name(code, call) if loader is not None else None
        if loader is None or divided is None or not _is_split(code, loader):
            continue
        if not known.is_sum_over(call, divided, dotted_name(loader)) or known.is_reduced(call, divided):
            continue
        yield Hit(
            code.span(call),
            f"{divided} is a sum over the part of the data that this rank got, and this is the size of the whole: the "
            "quotient is too small by the number of ranks. Add up the sums and the counts of all ranks, or divide by "
            "the number of samples of this rank.",
        )


def _divided_name(code: Code, size: ast.Call) -> str | None:
    """Return the name that is divided by a size: `total / len(...)`, `total /= len(...)`."""
    up = code.parent.get(size)
    if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Div) and up.right is size:
        return dotted_name(up.left) or None
    if isinstance(up, ast.AugAssign) and isinstance(up.op, ast.Div) and up.value is size:
        return dotted_name(up.target) or None
    return None


def _is_split(code: Code, loader: ast.expr) -> bool:
    """True if a loader definitely has a sampler that gives each rank a part."""
    values = [v for v in code.values(loader) if v is not None]
    if not values or len(values) != len(code.values(loader)):
        return False
    for value in values:
        if not isinstance(value, ast.Call) or code.name(value.func).rpartition(".")[2] != "DataLoader":
            return False
        if not code.is_made_by(code.argument(value, "sampler", 3), SAMPLER):
            return False
    return True


class _Figures:
    """Sums in loops over loaders and names that ranks may exchange, by enclosing function."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.sums: set[tuple[Function | None, str, str]] = set()
        """(function, name of the sum, loader)."""
        for changed in code.nodes(ast.AugAssign):
            if isinstance(changed.op, ast.Add) and (name := dotted_name(changed.target)):
                loops = [a for a in code.ancestors(changed) if isinstance(a, ast.For)]
                over = {dotted_name(n) for loop in loops for n in code.inside(loop.iter, ast.Name, ast.Attribute)}
                self.sums |= {(code.function(changed), name, loader) for loader in over}
        self.sent: dict[Function | None, set[str]] = defaultdict(set)
        for call in code.nodes(ast.Call):
            if agrees(code, call):
                given = (*call.args, *(k.value for k in call.keywords))
                names = {dotted_name(n) for a in given for n in code.inside(a, ast.Name, ast.Attribute)}
                self.sent[code.function(call)] |= names

    def is_sum_over(self, call: ast.Call, name: str, loader: str) -> bool:
        """True if a name is summed in a loop over the batches of a loader."""
        return (self.code.function(call), name, loader) in self.sums

    def is_reduced(self, call: ast.Call, name: str) -> bool:
        """True if the ranks may add up the sum, before or after the division."""
        statement = self.code.statement(call)
        results = {dotted_name(t) for t in statement.targets} if isinstance(statement, ast.Assign) else set()
        return bool((({name} | results) - {""}) & self.sent[self.code.function(call)])
