"""Finds in the user's source where a loss or a gradient is scaled by the number of ranks."""

from __future__ import annotations

import ast
import re

from dtdebug_taxonomy import named_files

_WORLD = re.compile(
    r"world[_.]?size|get_world_size|num_replicas|num_processes|n_?gpus?\b|num_gpus|device_count|nranks|n_ranks",
    re.IGNORECASE,
)


def scaling_line(file: str, line: int, *, multiplied: bool = False, gradients: bool = False) -> int:
    """Return the line on which a loss (or gradients) are divided (or multiplied) by the number of ranks, 0 if unseen.

    It is searched in the function around `line`, then in those that this one calls; the nearest above is taken.
    """
    raw = named_files.read_source(file)
    if raw is None:
        return 0
    try:
        tree = ast.parse(raw)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 0
    names = _world_names(tree)
    around = _function_around(tree, line)
    found = _scalings(around, names, multiplied=multiplied, gradients=gradients)
    if not found:
        called = {
            node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            for node in ast.walk(around) if isinstance(node, ast.Call)
        }  # fmt: skip
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name in called]
        found = [one for f in functions for one in _scalings(f, names, multiplied=multiplied, gradients=gradients)]
    above = [one for one in found if one <= line]
    return max(above, default=min(found, default=0))


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


def _scalings(tree: ast.AST, names: set[str], *, multiplied: bool, gradients: bool) -> list[int]:
    kinds: tuple[type[ast.operator], ...] = (ast.Mult,) if multiplied else (ast.Div,)
    wanted = ("mul", "mul_") if multiplied else ("div", "div_")
    found = []
    for node in ast.walk(tree):
        scaled: ast.expr
        if isinstance(node, ast.BinOp) and isinstance(node.op, kinds):
            sides = [node.right, node.left] if multiplied else [node.right]
            scaled, by = node.left, [side for side in sides if _is_world(side, names)]
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, kinds):
            scaled, by = node.target, [side for side in [node.value] if _is_world(side, names)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in wanted:
            scaled, by = node.func.value, [side for side in node.args[:1] if _is_world(side, names)]
        else:
            continue
        if by and not _is_of_data(scaled) and ("grad" in ast.unparse(scaled)) == gradients:
            found.append(node.lineno)
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
