"""Local ranks passed as the rank among all processes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.counting import of_one_machine, starts_its_ranks
from dtdebug_taxonomy.checks.shared.environment import reading
from dtdebug_taxonomy.checks.shared.fixing import environment_number, written_name
from dtdebug_taxonomy.checks.shared.names import DIST, INIT, SAMPLER
from dtdebug_taxonomy.model.launch_variables import LOCAL_RANK
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import rank

_PLACES = {INIT: ("rank", 4, "world_size", 3), SAMPLER: ("rank", 2, "num_replicas", 1)}
_LOCAL = re.compile(r"(?<=[\"'])LOCAL_RANK(?=[\"'])")
_WHY = {
    INIT: "on two machines two processes claim the same rank, and the start waits for ranks that never come.",
    SAMPLER: "on two machines each part of the data is read twice, and the rest is never seen.",
}


def check(code: Code) -> Iterator[Hit]:
    """Report the argument."""
    if code.role == "test" or starts_its_ranks(code):
        return
    for name, (argument, place, size, size_place) in _PLACES.items():
        for call in (*code.calls(name), *(_samplers(code) if name == SAMPLER else ())):
            given = code.argument(call, argument, place)
            if given is None or not _is_local(code, given) or code.has_unpacking(call):
                continue
            if of_one_machine(code, code.argument(call, size, size_place)):
                continue
            text, edits = _instead(code, name, given)
            yield Hit(
                code.span(given),
                f"This is the rank on this machine, where the global rank is needed: {_WHY[name]}",
                Fix("Take the rank among all processes", (Edit(code.span(given), text), *edits)),
            )


def _samplers(code: Code) -> Iterator[ast.Call]:
    """Yield the program's own samplers that take the arguments of torch's."""
    for call in code.nodes(ast.Call):
        name = code.name(call.func)
        given = {k.arg for k in call.keywords}
        if name != SAMPLER and "Sampler" in name.rpartition(".")[2] and {"rank", "num_replicas"} <= given:
            yield call


def _instead(code: Code, name: str, given: ast.expr) -> tuple[str, tuple[Edit, ...]]:
    """Return the global rank, read as the local one is: with the same default, where no launcher sets it."""
    if name == INIT:
        read = next((v for v in (given, *code.values(given)) if v is not None and not dotted_name(v)), given)
        text, found = _LOCAL.subn("RANK", code.source_of(read))
        in_scope = isinstance(read, ast.expr) and code.scope(read) is code.scope(given)
        return (text, ()) if found == 1 and in_scope else environment_number(code, "RANK")
    text, edits = written_name(code, DIST + "get_rank")
    return f"{text}()", edits


def _is_local(code: Code, node: ast.expr, depth: int = 3) -> bool:
    """True if an expression is the local rank, by its origin or by exactly that name."""
    if isinstance(node, ast.Call) and code.name(node.func) == "int" and len(node.args) == 1:
        return _is_local(code, node.args[0], depth)
    if (read := reading(code, node)) is not None:
        return read.variable in LOCAL_RANK
    if not dotted_name(node) or not depth:
        return False
    values = code.values(node)
    if values == [None] and _is_paired_with_rank(code, node):
        return True
    if None not in values:
        return all(v is not node and _is_local(code, v, depth - 1) for v in values if v is not None)
    if any(b.how == "argument" for b in code.bound(node)):
        return False  # another module may pass any rank, whatever the name
    return dotted_name(node).rsplit(".", 1)[-1] == "local_rank" and rank(code, node) == "local"


def _is_paired_with_rank(code: Code, node: ast.expr) -> bool:
    """True if a name is the local rank among several results that include the rank: `local_rank, rank = f()`."""
    if dotted_name(node).rpartition(".")[2] != "local_rank":
        return False
    targets = [t for b in code.bound(node) if isinstance(b.node, ast.Assign) for t in b.node.targets]
    names = [{dotted_name(e).rpartition(".")[2] for e in t.elts} for t in targets if isinstance(t, ast.Tuple)]
    return len(names) == len(targets) == 1 and bool(names[0] & {"rank", "global_rank"})
