"""Finds in the user's source where a loss or a gradient is scaled by the number of ranks."""

from __future__ import annotations

import ast
import re
from pathlib import PurePath

from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.checks.run.proving import format_patch

_WORLD = re.compile(
    r"world[_.]?size|\bworld\b|get_world_size|num_replicas|num_processes|n_?gpus?\b|num_gpus|device_count|nranks|n_ranks",
    re.IGNORECASE,
)


def scaling_line(file: str, line: int, *, multiplied: bool = False, gradients: bool = False) -> int:
    """Return the line on which a loss (or gradients) are divided (or multiplied) by the number of ranks, 0 if unseen.

    It is searched in the function around `line`, then in those that this one calls; the nearest above is taken.
    """
    read = _parsed(file)
    if read is None:
        return 0
    tree = read[1]
    names = _world_names(tree)
    around = _function_around(tree, line)
    found = _lines(around, names, multiplied=multiplied, gradients=gradients)
    if not found:
        called = {
            node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            for node in ast.walk(around) if isinstance(node, ast.Call)
        }  # fmt: skip
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name in called]
        found = [one for f in functions for one in _lines(f, names, multiplied=multiplied, gradients=gradients)]
    above = [one for one in found if one <= line]
    return max(above, default=min(found, default=0))


def without_scaling(file: str, line: int, *, multiplied: bool = False, gradients: bool = False) -> str:
    """Return the patch of a file that takes the number of ranks out of what this line scales; "" if that is not clear.

    A statement that does nothing else goes, and a loop or a test whose only statement it is.
    """
    read = _parsed(file)
    if read is None:
        return ""
    text, tree = read
    names = _world_names(tree)
    found = [one for one in _scalings(tree, names, multiplied=multiplied, gradients=gradients) if one[0].lineno == line]
    if len(found) != 1 or "\r" in text:
        return ""
    node, kept = found[0]
    above = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    statement: ast.AST = node
    while not isinstance(statement, ast.stmt):
        statement = above[statement]
    left = ast.unparse(kept)
    alone = isinstance(statement, ast.AugAssign) or (isinstance(statement, ast.Expr) and statement.value is node)
    if isinstance(statement, ast.Assign) and statement.value is node:
        alone = [ast.unparse(t) for t in statement.targets] == [left]
    lines = text.splitlines(keepends=True)
    if alone:
        while _is_only_one(statement, above[statement]):
            statement = above[statement]
        first, last = statement.lineno, statement.end_lineno or statement.lineno  # type: ignore[attr-defined]
        inside = set(ast.walk(statement))
        if any(isinstance(n, ast.stmt) and first <= n.lineno <= last and n not in inside for n in ast.walk(tree)):
            return ""  # another statement on the same line
        after = [*lines[: first - 1], *lines[last:]]
    elif node.end_lineno != line:
        return ""
    else:
        row = lines[line - 1].encode()
        own = (ast.get_source_segment(text, kept) or "").encode()
        after = [*lines]
        after[line - 1] = (row[: node.col_offset] + own + row[node.end_col_offset :]).decode()
    changed = "".join(after)
    try:
        ast.parse(changed)
    except SyntaxError:
        return ""
    return format_patch(PurePath(file).name, text, changed)


def _is_only_one(statement: ast.AST, parent: ast.AST) -> bool:
    """True if a loop, a test or a context holds nothing but this."""
    return (
        isinstance(parent, (ast.For, ast.If, ast.With))
        and parent.body == [statement]
        and not getattr(parent, "orelse", [])
    )


def _parsed(file: str) -> tuple[str, ast.Module] | None:
    raw = named_files.read_source(file)
    if raw is None:
        return None
    try:
        return raw.decode(), ast.parse(raw)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _function_around(tree: ast.Module, line: int) -> ast.AST:
    """Return the innermost function that holds a line, else the module without its functions."""
    inner: ast.AST | None = None
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= line <= (node.end_lineno or 0):
            inner = node  # a nested one comes later
    if inner is not None:
        return inner
    kept = [n for n in tree.body if not isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
    return ast.Module(body=kept, type_ignores=[])


def _lines(tree: ast.AST, names: set[str], *, multiplied: bool, gradients: bool) -> list[int]:
    return [node.lineno for node, _ in _scalings(tree, names, multiplied=multiplied, gradients=gradients)]


def _scalings(
    tree: ast.AST, names: set[str], *, multiplied: bool, gradients: bool
) -> list[tuple[ast.expr | ast.AugAssign, ast.expr]]:
    """Return each operation by the number of ranks, with what it scales."""
    kinds: tuple[type[ast.operator], ...] = (ast.Mult,) if multiplied else (ast.Div,)
    wanted = ("mul", "mul_") if multiplied else ("div", "div_")
    found: list[tuple[ast.expr | ast.AugAssign, ast.expr]] = []
    for node in ast.walk(tree):
        scaled: ast.expr
        if isinstance(node, ast.BinOp) and isinstance(node.op, kinds):
            scaled, by = node.left, [node.right] if _is_world(node.right, names) else []
            if not by and multiplied and _is_world(node.left, names):
                scaled, by = node.right, [node.left]
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, kinds):
            scaled, by = node.target, [side for side in [node.value] if _is_world(side, names)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in wanted:
            scaled, by = node.func.value, [side for side in node.args[:1] if _is_world(side, names)]
        else:
            continue
        if by and not _is_of_data(scaled) and ("grad" in ast.unparse(scaled)) == gradients:
            found.append((node, scaled))
    return found


def names_ranks(text: str) -> bool:
    """True if a line of source names the number of ranks."""
    return bool(_WORLD.search(text))


def _is_of_data(node: ast.expr) -> bool:
    """True if what is divided is a size or a rate, not a tensor."""
    text = ast.unparse(node).lower()
    return bool(re.search(r"\b(len|batch_size|lr|num_samples|steps?|epochs?)\b", text))


def _is_world(node: ast.expr, names: set[str]) -> bool:
    text = ast.unparse(node)
    return bool(_WORLD.search(text)) or text in names


def _world_names(tree: ast.Module) -> set[str]:
    """Return names that are assigned from the number of ranks."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = zip(target.elts, node.value.elts, strict=False)
                    names |= {ast.unparse(t) for t, v in pairs if _WORLD.search(ast.unparse(v))}
                elif isinstance(node.value, (ast.Call, ast.Subscript, ast.Attribute, ast.Name)) and _WORLD.search(
                    ast.unparse(node.value)
                ):
                    names.add(ast.unparse(target))
    return names
