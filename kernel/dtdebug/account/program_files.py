"""Follows the imports of a program to the modules next to it, without running anything."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dtdebug_taxonomy import named_files

_FILES, _BYTES = 256, 4 << 20


class ProgramFile(NamedTuple):
    """File of a program: its real path, and what is in it."""

    path: Path
    data: bytes
    tree: ast.Module | None
    """None for what does not parse."""


def read_program(script: Path) -> Iterator[ProgramFile]:
    """Read a program and the local modules that it imports, each once, the nearest first."""
    todo = [script.resolve()]
    seen, root = set(todo), todo[0].parent
    while todo and len(seen) <= _FILES:
        path = todo.pop(0)
        try:
            data = named_files.read_file(path, _BYTES)
        except OSError:
            continue
        try:
            tree = ast.parse(data)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            tree = None
        yield ProgramFile(path, data, tree)
        for found in _local(tree, path, root) if tree is not None else ():
            if found not in seen:
                seen.add(found)
                todo.append(found)


def _local(tree: ast.Module, path: Path, root: Path) -> Iterator[Path]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(root, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = path.parents[node.level - 1] if node.level and node.level <= len(path.parents) else root
            module = node.module or ""
            names = [(base, module), *((base, f"{module}.{alias.name}".strip(".")) for alias in node.names)]
        else:
            continue
        places = [base.joinpath(*name.split(".")) for base, name in names if name]
        found = (p.resolve() for place in places for p in (place.with_suffix(".py"), place / "__init__.py"))
        yield from (
            p for p in found if p.is_file() and "site-packages" not in p.parts and not p.is_relative_to(sys.prefix)
        )
