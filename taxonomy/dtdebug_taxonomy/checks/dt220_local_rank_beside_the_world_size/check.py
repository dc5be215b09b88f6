"""Local ranks stored as the rank, together with a world size over all machines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.devices import device_numbers
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import is_size, rank

_RANK = re.compile(r"_*(global_|world_)?rank")
_SIZE = re.compile(r"_*world_?size")
_READS = {"int", "os.getenv", "os.environ.get"}
_LOCAL_NAME = re.compile(r"(?<=[\"'])LOCAL_RANK(?=[\"'])|\.local_process_index$")
_LOCAL_SIZE = re.compile(r"local|device_count|per_node", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the value bound to the name."""
    if code.role == "test":
        return
    sizes: set[ast.AST | None] = set()
    ranks: list[tuple[ast.Assign, ast.expr]] = []
    for assign in code.nodes(ast.Assign):
        last, value = dotted_name(assign.targets[0]).rpartition(".")[2], assign.value
        if _SIZE.fullmatch(last) and is_size(code, value) and not _LOCAL_SIZE.search(code.source_of(value)):
            sizes.add(code.function(assign))
        elif _RANK.fullmatch(last) and _is_local(code, value):
            ranks.append((assign, value))
    ranks = [(assign, value) for assign, value in ranks if code.function(assign) in sizes]
    devices = {id(inner) for d in (device_numbers(code) if ranks else ()) for inner in code.inside(d, ast.Name)}
    chosen = _choosing(code, devices) if ranks else set()
    for assign, value in ranks:
        if not _numbers_devices(code, assign, devices) and not _starts_group(code, assign):
            name = dotted_name(assign.targets[0])
            yield Hit(
                code.span(value),
                f"{name} is the local rank, the world size beside it counts all machines: on two of them two processes "
                "are the same rank, and the upper ranks do not exist.",
                None if (code.function(assign), dotted_name(assign.targets[0])) in chosen else _fix(code, value),
            )


def _starts_group(code: Code, assign: ast.Assign) -> bool:
    """True if a name is the rank that the process group is started with, which DT218 reports."""
    given = [code.argument(c, "rank", 4) for c in code.calls(INIT)]
    return any(assign.value in code.values(g) for g in given if g is not None)


def _numbers_devices(code: Code, assign: ast.Assign, devices: set[int]) -> bool:
    """True if a name of one function only numbers a device, so that only the name is wrong."""
    function, name = code.function(assign), dotted_name(assign.targets[0])
    if function is None or not name.isidentifier():
        return False
    read = [n for n in code.inside(function, ast.Name) if n.id == name and isinstance(n.ctx, ast.Load)]
    return bool(read) and all(id(n) in devices for n in read)


def _choosing(code: Code, devices: set[int]) -> set[tuple[ast.AST | None, str]]:
    """Return the names, by function, that choose a device or a list item, for which the global rank is wrong."""
    indices = {id(n) for s in code.nodes(ast.Subscript) for n in code.inside(s.slice, ast.Name)}
    return {(code.function(n), n.id) for n in code.nodes(ast.Name) if id(n) in indices or id(n) in devices}


def _fix(code: Code, value: ast.expr) -> Fix | None:
    """Return a fix that replaces the expression by the same one for the global rank."""
    written = code.source_of(value)
    text = _LOCAL_NAME.sub(lambda m: m[0].replace("LOCAL_", "").replace("local_", ""), written)
    edits = (Edit(code.span(value), text),)
    return Fix("Take the rank among all processes", edits, safe=False) if text != written else None


def _is_local(code: Code, value: ast.expr) -> bool:
    if isinstance(value, ast.Attribute):
        return value.attr == "local_process_index"
    if isinstance(value, ast.Call) and code.name(value.func) not in _READS:
        return False  # the rank within one dimension of a device mesh
    return not isinstance(value, ast.Name | ast.IfExp | ast.BoolOp) and rank(code, value) == "local"
