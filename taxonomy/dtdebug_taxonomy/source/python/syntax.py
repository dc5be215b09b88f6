"""Python program, parsed and indexed in one pass: its nodes by type, their parents, and their places."""

from __future__ import annotations

import ast
import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Any, TypeVar

from dtdebug_taxonomy.source.python.lenient_parser import ParseResult, parse_program
from dtdebug_taxonomy.source.python.names import imported_names
from dtdebug_taxonomy.source.python.reparse import Former, NodeIndex, Scope, below, last_below
from dtdebug_taxonomy.source.source import Source, UnreadPart
from dtdebug_taxonomy.source.text import Span, Text

N = TypeVar("N", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef

SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_KINDS_OF_SCOPES = frozenset(SCOPES)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Syntax(Source):
    """The nodes of a program and their places."""

    def __init__(self, text: str, *, path: str = "") -> None:
        super().__init__(text, path=path)
        self.former: Former | None = None
        """Earlier version of the text, whose unchanged statements keep their nodes."""
        self.kept: dict[str, Any] = {}
        """Results that analyses keep for the next version, by the name of the analysis."""
        self.kept_before: dict[str, Any] = {}
        """Results that they have kept in the former version."""

    def revise(self, text: str) -> None:
        """Take over a later version of the text: the program is the same, and unchanged statements keep their nodes."""
        is_parsed = "_parse_result" in self.__dict__
        before = self.kept if is_parsed else self.kept_before
        same = {name: value for name, value in self.__dict__.items() if name in {"path", "project", "notebook"}}
        former = self.release()
        self.__dict__.update(same, text=Text(text), former=former, kept={}, kept_before=before)

    def release(self) -> Former | None:
        """Return what the next version of the text can reuse, and drop everything else."""
        result: ParseResult | None = self.__dict__.get("_parse_result")
        found = self.former
        if result is not None:
            index = result.nodes or (self._node_index if "_node_index" in self.__dict__ else None)
            found = Former(result.text, result.tree, index) if index is not None else None
        self.__dict__.clear()
        return found

    @cached_property
    def _parse_result(self) -> ParseResult:
        return parse_program(self.text, self.former)

    @property
    def tree(self) -> ast.Module:
        """Syntax tree; parsed on first use, since most files concern no check."""
        return self._parse_result.tree

    @property
    def whole(self) -> bool:
        """True if the whole text could be parsed."""
        return self._parse_result.whole

    @property
    def unread(self) -> tuple[UnreadPart, ...]:
        """Lines that are not in the tree; empty if the program was not parsed for any check."""
        if "_parse_result" not in self.__dict__:
            return ()
        invalid = f"it is not valid Python {sys.version_info.major}.{sys.version_info.minor}"
        refused = self._parse_result.refused
        starts = self.text.starts
        return tuple(
            UnreadPart(
                Span(starts[first - 1], self.text.end_of_line(min(last, len(starts)))),
                "it takes too long to parse" if any(first <= n <= last for n in refused) else invalid,
            )
            for first, last in self._parse_result.gaps
        )

    @cached_property
    def _node_index(self) -> NodeIndex:
        """All indices, built in the only pass over the tree."""
        if (known := self._parse_result.nodes) is not None:
            return known
        parent: dict[ast.AST, ast.AST] = {}
        by_type: dict[type, list[ast.AST]] = {}
        nodes = below(self.tree, parent, by_type)
        return NodeIndex(parent, dict(zip(nodes, range(len(nodes)), strict=True)), by_type)

    @cached_property
    def parent(self) -> dict[ast.AST, ast.AST]:
        """Node -> the node around it."""
        return self._node_index.parent

    @cached_property
    def order(self) -> dict[ast.AST, int]:
        """Position in the program: a node further down has the larger number."""
        return self._node_index.order

    @cached_property
    def _by_type(self) -> dict[type, list[ast.AST]]:
        return self._node_index.by_type

    @cached_property
    def imports(self) -> dict[str, str]:
        """Local name -> qualified name of all imports."""
        return imported_names([*self.nodes(ast.Import), *self.nodes(ast.ImportFrom)])

    def nodes(self, kind: type[N]) -> list[N]:
        """Return all nodes of a type, in the order of the program."""
        return self._by_type.get(kind, [])  # type: ignore[return-value]

    def span(self, node: ast.AST) -> Span:
        """Return the span of a node in the text."""
        n: ast.expr = node  # type: ignore[assignment]
        end_line, end = n.end_lineno or n.lineno, n.end_col_offset or 0
        return Span(self._offset(n.lineno, n.col_offset), self._offset(end_line, end))

    def _offset(self, line: int, byte: int) -> int:
        shift = 1 if line == 1 and self.text.startswith("\ufeff") else 0
        return self.text.offset_of_byte(line, byte + 3 * shift if shift and not self.text.isascii() else byte)

    def source_of(self, node: ast.AST) -> str:
        """Return the text of a node as written."""
        return self.cut(self.span(node))

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, innermost first."""
        while (up := self.parent.get(node)) is not None:
            yield up
            node = up

    def scope(self, node: ast.AST) -> Scope:
        """Return the innermost function, class, lambda or module around a node."""
        known = self._scope_of
        found = known.get(node)
        if found is not None:
            return found
        passed = []
        while (scope := known.get(node)) is None:
            passed.append(node)
            up = self.parent.get(node, self.tree)
            if type(up) in _KINDS_OF_SCOPES and isinstance(up, SCOPES):  # fast, and nearly always false
                scope = up
                break
            node = up
        for each in passed:
            known[each] = scope
        return scope

    @cached_property
    def _scope_of(self) -> dict[ast.AST, Scope]:
        """Node -> its scope, for the requested nodes and those around them."""
        return self._node_index.scopes

    def scopes(self, node: ast.AST) -> Iterator[Scope]:
        """Yield the functions, classes, lambdas and the module around a node, innermost first."""
        scope = self.scope(node)
        yield scope
        while scope is not self.tree:
            scope = self.scope(scope)
            yield scope

    def function(self, node: ast.AST) -> Function | None:
        """Return the innermost function around a node, or None."""
        scope = self.scope(node)
        while not isinstance(scope, FUNCTIONS):
            if isinstance(scope, ast.Module):
                return None
            scope = self.scope(scope)
        return scope

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """Return the innermost class around a node, or None."""
        return next((s for s in self.scopes(node) if isinstance(s, ast.ClassDef)), None)

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the innermost statement that a node is, or is in."""
        while not isinstance(node, ast.stmt):
            node = self.parent[node]
        return node

    @cached_property
    def _by_line(self) -> dict[int, list[ast.stmt]]:
        found: dict[int, list[ast.stmt]] = defaultdict(list)
        for node in self.order:
            if isinstance(node, ast.stmt):
                found[node.lineno].append(node)
        return found

    def statements_at(self, line: int) -> list[ast.stmt]:
        """Return the statements that begin on a line."""
        return self._by_line.get(line, [])

    @cached_property
    def _blocks(self) -> dict[ast.stmt, list[ast.stmt]]:
        parts = ("body", "orelse", "finalbody")
        kinds = [
            (nodes, [p for p in parts if p in getattr(kind, "_fields", ())]) for kind, nodes in self._by_type.items()
        ]
        lists = (getattr(up, part) for nodes, has in kinds for part in has for up in nodes)
        return {each: block for block in lists if isinstance(block, list) for each in block}

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the list of statements that a statement is in."""
        return self._blocks.get(statement, [statement])

    def _last(self, node: ast.AST) -> int:
        """Return the position of the last node below a node: nodes are numbered from the outside to the inside."""
        known = self._node_index.last
        found = known.get(node)
        if found is None:
            found = known[node] = last_below(node)
        return self.order[found]

    @cached_property
    def _numbers(self) -> dict[type, list[int]]:
        """Type -> the positions of its nodes."""
        return {}

    def inside(self, node: ast.AST, *kinds: type[N]) -> Iterator[N]:
        """Yield the nodes of some types in a node, itself and nested functions included, in order of the program."""
        if node not in self.order:
            yield from (n for n in ast.walk(node) if isinstance(n, kinds))
            return
        first, last = self.order[node], self._last(node)
        found: list[ast.AST] = []
        for kind in kinds:
            numbers = self._numbers.get(kind)
            if numbers is None:
                numbers = self._numbers[kind] = [self.order[n] for n in self.nodes(kind)]
            start = bisect_left(numbers, first)
            found += self.nodes(kind)[start : bisect_right(numbers, last, start)]
        yield from sorted(found, key=self.order.__getitem__) if len(kinds) > 1 else found  # type: ignore[misc]
