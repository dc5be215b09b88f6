"""Means of which one figure is of one rank's part of the data and the other of all ranks."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.names import DIST, SAMPLER
from dtdebug_taxonomy.checks.shared.stepping import agrees
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import is_size
from dtdebug_taxonomy.source.python.syntax import Function


def check(code: Code) -> Iterator[Hit]:
    """Report the size."""
    if code.role == "test":
        return
    yield from _by_own_count(code)
    if not code.calls(SAMPLER):
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


def _by_own_count(code: Code) -> Iterator[Hit]:
    """Report sums over all ranks that are divided by what this rank has counted."""
    for call in code.calls(f"{DIST}all_reduce"):
        total = dotted_name(code.argument(call, "tensor", 0))
        how = code.argument(call, "op", 1)
        if not total or (how is not None and code.name(how).rpartition(".")[2] != "SUM"):
            continue
        home = code.class_of(call) if total.startswith("self.") else code.function(call)
        inside = home or code.tree
        exchanged = {dotted_name(n) for c in code.inside(inside, ast.Call) if agrees(code, c) for n in _names(code, c)}
        counted = {dotted_name(n.target) for n in code.inside(inside, ast.AugAssign) if isinstance(n.op, ast.Add)}
        for quotient in code.inside(inside, ast.BinOp):
            count = dotted_name(quotient.right)
            divided = {dotted_name(n) for n in code.inside(quotient.left, ast.Name, ast.Attribute)}
            if not isinstance(quotient.op, ast.Div) or total not in divided or count in exchanged:
                continue
            if code.function(quotient) is not code.function(call) or code.order[quotient] < code.order[call]:
                continue
            if count in counted and total in counted and not _is_shared_out(code, inside, total, quotient):
                yield Hit(
                    code.span(quotient),
                    f"{total} is by now the sum over all ranks, and {count} is what this rank alone has counted: the "
                    "quotient is too large by the number of ranks. Add up the counts, too.",
                )


def _names(code: Code, call: ast.Call) -> Iterator[ast.AST]:
    return (n for a in (*call.args, *(k.value for k in call.keywords)) for n in code.inside(a, ast.Name, ast.Attribute))


def _is_shared_out(code: Code, inside: ast.AST, total: str, quotient: ast.BinOp) -> bool:
    """True if a sum is divided by the number of ranks as well."""
    again = [n.value for n in code.inside(inside, ast.AugAssign) if dotted_name(n.target) == total]
    again += [a.right for a in code.ancestors(quotient) if isinstance(a, ast.BinOp) and isinstance(a.op, ast.Div)]
    again += [n.right for n in code.inside(inside, ast.BinOp) if isinstance(n.op, ast.Div)]
    return any(is_size(code, n) or "size" in code.source_of(n) for n in again)


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
