"""Edits that several fixes need."""

from __future__ import annotations

import ast

from dtdebug_taxonomy.checks import Edit
from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.text import Span


def named(code: Code, qualified: str) -> tuple[str, tuple[Edit, ...]]:
    """How the program can write a qualified name, and the import that it needs first, if any."""
    for local, full in code.imports.items():
        if full == qualified:
            return local, ()
    module, _, last = qualified.rpartition(".")
    for local, full in code.imports.items():
        if full == module and _at_module_level(code, local):
            return f"{local}.{last}", ()
    if not module or "." in module:
        return qualified, _import(code, f"import {module}")
    return last, _import(code, f"from {module} import {last}")


def environment(code: Code, variable: str) -> tuple[str, tuple[Edit, ...]]:
    """An expression for a variable of the environment as a number, and the import that it needs."""
    if code.imports.get("os") == "os":
        return f'int(os.environ["{variable}"])', ()
    return f'int(os.environ["{variable}"])', _import(code, "import os")


def statement_lines(code: Code, statement: ast.stmt) -> Span | None:
    """All lines of a statement with their line breaks; None where it shares a line with another."""
    span = code.span(statement)
    first, last = code.text.place(span.start).line, code.text.place(span.end).line
    start = code.text.starts[first - 1]
    rest = code.text[span.end : code.text.end_of_line(last)].strip()
    if code.text[start : span.start].strip() or (rest and not rest.startswith("#")):
        return None
    end = code.text.starts[last] if last < len(code.text.starts) else len(code.text)
    return Span(start, end)


def indent_of(code: Code, node: ast.AST) -> str:
    """The white space before the line on which a node begins."""
    line = code.text.line(code.text.place(code.span(node).start).line)
    return line[: len(line) - len(line.lstrip())]


def _at_module_level(code: Code, local: str) -> bool:
    nodes: list[ast.Import | ast.ImportFrom] = [*code.nodes(ast.Import), *code.nodes(ast.ImportFrom)]
    return any(
        (alias.asname or alias.name.split(".", 1)[0]) == local
        for node in nodes
        if code.parent[node] is code.tree
        for alias in node.names
    )


def _import(code: Code, statement: str) -> tuple[Edit, ...]:
    """Puts an import before the first one of the program that is no future import."""
    for node in code.tree.body:
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__"):
            start = code.span(node).start
            return (Edit(Span(start, start), statement + "\n"),)
    return ()
