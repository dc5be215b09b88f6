"""Assignments of `TF_CONFIG` after the strategy or resolver that reads it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import indent_of, statement_lines
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_READ = tuple(
    f"tensorflow.{n}"
    for n in (
        *("distribute.MultiWorkerMirroredStrategy", "distribute.experimental.MultiWorkerMirroredStrategy"),
        *("distribute.cluster_resolver.TFConfigClusterResolver", "estimator.RunConfig"),
        "contrib.distribute.CollectiveAllReduceStrategy",
    )
)


def check(code: Code) -> Iterator[Hit]:
    """Report the assignment."""
    readers = [c for c in code.calls(*_READ) if _reads(code, c)]
    settings = list(_settings(code))
    if not readers or not settings:
        return
    pairs = [
        (reader, setting, read, is_set)
        for reader in readers
        for setting in settings
        for read in _places(code, reader)
        for is_set in _places(code, setting)
        if code.scope(read) is code.scope(is_set)
    ]
    if any(code.order[is_set] < code.order[read] for _, _, read, is_set in pairs):
        return
    reported: set[ast.stmt] = set()
    for reader, setting, read, is_set in pairs:
        if setting in reported or surely_before(code, read, is_set) is None:
            continue
        reported.add(setting)
        name = code.name(reader.func).rsplit(".", 1)[-1]
        direct = read is reader and is_set is setting
        yield Hit(
            code.span(setting),
            f"{name} has already read TF_CONFIG when this line sets it: the process stays a cluster of one.",
            _fix(code, setting, reader) if direct else None,
        )


def _reads(code: Code, call: ast.Call) -> bool:
    """True if it takes the cluster from the variable rather than from an argument."""
    name = code.name(call.func)
    place = None if "experimental" in name else 0
    return "Resolver" in name or code.argument(call, "cluster_resolver", place) is None


def _settings(code: Code) -> Iterator[ast.stmt]:
    for assign in code.nodes(ast.Assign):
        target = assign.targets[0]
        if not isinstance(target, ast.Subscript) or code.name(target.value) != "os.environ":
            continue
        if code.constant(target.slice) == "TF_CONFIG":
            yield assign
    for call in code.calls("os.environ.setdefault", "os.environ.update", "os.putenv"):
        given = [*call.args, *(k for k in call.keywords if k.arg == "TF_CONFIG")]
        keys = [k for a in given[:1] for k in (a.keys if isinstance(a, ast.Dict) else [a])]
        if any(code.constant(k) == "TF_CONFIG" for k in keys if isinstance(k, ast.expr)) or given[len(call.args) :]:
            yield code.statement(call)


def _places(code: Code, node: ast.AST) -> list[ast.AST]:
    """Return a node and the calls of the function that contains it."""
    function = code.function(node)
    return [node, *(code.callers.get(function, []) if function else [])]


def _fix(code: Code, setting: ast.stmt, reader: ast.Call) -> Fix | None:
    """Return a fix that moves the line up, if no name that it uses is bound in between."""
    first, lines = code.statement(reader), statement_lines(code, setting)
    if lines is None or code.block(first) is not code.block(setting) or statement_lines(code, first) is None:
        return None
    used = {n.id for n in code.inside(setting, ast.Name)}
    block = code.block(setting)
    for between in block[block.index(first) : block.index(setting)]:
        if used & {n.id for n in code.inside(between, ast.Name) if isinstance(n.ctx, ast.Store)}:
            return None
        if any(
            dotted_name(n.value) in used for n in code.inside(between, ast.Subscript) if isinstance(n.ctx, ast.Store)
        ):
            return None
    start = code.span(first).start
    text = code.cut(lines).rstrip("\n").lstrip()
    return Fix("Set it before", (Edit(Span(start, start), f"{text}\n{indent_of(code, first)}"), Edit(lines, "")))
