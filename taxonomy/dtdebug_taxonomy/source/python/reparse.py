"""Parses a text that differs little from an earlier version of it: unchanged statements keep their nodes.

A run of whole statements parses by itself as it does in its place, if the text before it ends a statement and the text
after it begins one. So only the statements around a change are parsed again, in the module or in the body of a class;
wherever that is not certain, the caller parses the whole text.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from dtdebug_taxonomy.source.python.results import Key, Row, Tables

_LEAVES = frozenset({ast.Name, ast.Constant, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal})
_SKIPPED = frozenset(
    {"ctx", "op", "ops"}  # nodes that the whole tree shares
    | {"id", "attr", "arg", "asname", "module", "level", "kind", "kwd_attrs", "type_comment", "conversion", "simple"}
)

Owner = ast.Module | ast.ClassDef
Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


@dataclass
class NodeIndex:
    """Nodes of a tree, their order and the nodes around them."""

    parent: dict[ast.AST, ast.AST]
    order: dict[ast.AST, int]
    """Position in the program: a node further down has the larger number."""
    by_type: dict[type, list[ast.AST]]
    scopes: dict[ast.AST, Scope] = field(default_factory=dict)
    """Node -> its scope, as far as that was asked for."""
    names: dict[ast.AST, str] = field(default_factory=dict)
    """Node -> its qualified name, as far as that was asked for."""
    last: dict[ast.AST, ast.AST] = field(default_factory=dict)
    """Node -> the last node below it, as far as that was asked for."""
    returns: dict[ast.AST, list[ast.Return]] = field(default_factory=dict)
    """Function -> its own statements that return, as far as that was asked for."""
    imports: dict[str, str] | None = None
    """Imports by which the names were resolved."""
    results: dict[Key, Row] = field(default_factory=dict)
    """Results of the former version; valid where its tables are the same."""
    tables: Tables | None = None
    project: object = None
    """Project in which they hold."""


@dataclass
class Former:
    """Earlier version of a text: its tree with all that stays valid for unchanged statements.

    The next version takes the nodes over, so that it can be used once.
    """

    text: str
    """Text of the tree, with lines that end in a newline."""
    tree: ast.Module
    index: NodeIndex


def below(root: ast.AST, parent: dict[ast.AST, ast.AST], by_type: dict[type, list[ast.AST]]) -> list[ast.AST]:
    """Return a node and those below it in order of the program; add their parents, and each to those of its type."""
    nodes: list[ast.AST] = []
    fields: dict[type, tuple[str, ...]] = {}
    stack: list[ast.AST] = [root]
    while stack:
        node = stack.pop()
        nodes.append(node)
        kind = type(node)
        if kind not in fields:
            fields[kind] = () if kind in _LEAVES else tuple(f for f in kind._fields[::-1] if f not in _SKIPPED)
            by_type.setdefault(kind, [])
        by_type[kind].append(node)
        for name in fields[kind]:  # the last first, since it is popped last
            value = node.__dict__.get(name)
            if type(value) is list:
                if None in value:  # `{**a}`, arguments without a default
                    value = [c for c in value if c is not None]
                for child in value:
                    parent[child] = node
                stack += value[::-1]
            elif isinstance(value, ast.AST):
                parent[value] = node
                stack.append(value)
    return nodes


def last_below(root: ast.AST) -> ast.AST:
    """Return the last of the nodes below a node in the order of the program; the node itself if there is none."""
    node: ast.AST | None = root
    while node is not None:
        last, node = node, _last_child(node)
    return last


def _last_child(node: ast.AST) -> ast.AST | None:
    if type(node) in _LEAVES:
        return None
    for name in reversed(node._fields):
        value = node.__dict__.get(name) if name not in _SKIPPED else None
        if type(value) is list:
            value = next((c for c in reversed(value) if c is not None), None)
        if isinstance(value, ast.AST):
            return value
    return None


def parse_again(former: Former, text: str, parse: Callable[[str], ast.Module | None]) -> ast.Module | None:
    """Return the tree of a text, and bring the index up to date; None, with nothing changed, if that is not certain.

    The text's lines end in a newline; `parse` returns None for what is not valid Python.
    """
    if text == former.text:
        return former.tree
    old, new = former.text.split("\n"), text.split("\n")
    change = _Change(former, old, new)
    place = change.place(former.tree)
    while place is not None:
        found = change.parse(place, parse)
        if found is not None:
            change.apply(place, *found)
            former.text = text
            return former.tree
        place = place.around
    return None


@dataclass
class _Place:
    """Run of statements in a body, and its lines in the former text, both from the first to before the last."""

    owner: Owner
    first: int
    last: int
    start: int
    end: int
    around: _Place | None


class _Change:
    """Difference between two versions of a text, by lines counted from 0."""

    def __init__(self, former: Former, old: list[str], new: list[str]) -> None:
        self._former, self._old, self._new = former, old, new
        most = min(len(old), len(new))
        same = next((n for n in range(most) if old[n] != new[n]), most)
        left = most - same
        rest = next((n for n in range(left) if old[-1 - n] != new[-1 - n]), left)
        self.start, self.end = same, len(old) - rest
        self.shift = len(new) - len(old)

    def place(self, owner: Owner, around: _Place | None = None) -> _Place | None:
        """Return the innermost run of statements that contains the change."""
        body = owner.body
        first = bisect_left(body, self.start + 1, key=_end)
        last = first
        while last < len(body) and _start(body[last]) < max(self.end, self.start + 1):
            last += 1
        while 0 < first < len(body) and _start(body[first]) < _end(body[first - 1]):  # on one line
            first -= 1
        while 0 < last < len(body) and _start(body[last]) < _end(body[last - 1]):
            last += 1
        inside = isinstance(owner, ast.ClassDef)
        start = _end(body[first - 1]) if first else 0
        end = _start(body[last]) if last < len(body) else _end(body[-1]) if inside and body else len(self._old)
        if not start <= self.start <= self.end <= end or (inside and not first):
            return around
        here = _Place(owner, first, last, start, end, around)
        only = body[first] if last - first == 1 else None
        if isinstance(only, ast.ClassDef) and _start(only) < self.start and self.end <= _end(only):
            return self.place(only, here)
        return here

    def parse(
        self, place: _Place, parse: Callable[[str], ast.Module | None]
    ) -> tuple[list[ast.stmt], tuple[int, int]] | None:
        """Return the new statements of a place, and the line and column at which they end; None if not certain."""
        lines = self._new[place.start : place.end + self.shift]
        before = self._new[place.start - 1] if place.start else ""
        if before.endswith("\\") or (lines and lines[-1].endswith("\\")):
            return None
        blank = "\n" * place.start
        if isinstance(place.owner, ast.Module):
            tree = parse(blank + "\n".join(lines))
            return (tree.body, (0, 0)) if tree is not None else None
        tree = parse(f"{blank[1:]}if 1:\n" + "\n".join(lines))
        head = tree.body[0] if tree is not None and len(tree.body) == 1 else None
        if not isinstance(head, ast.If) or head.orelse:
            return None
        indent = self._indent(self._old, place.owner.body[0])
        if any(
            s.col_offset != place.owner.body[0].col_offset or self._indent(self._new, s) != indent for s in head.body
        ):
            return None
        return head.body, (head.end_lineno or 0, head.end_col_offset or 0)

    def _indent(self, lines: Sequence[str], statement: ast.stmt) -> str:
        return lines[statement.lineno - 1][: statement.col_offset]

    def apply(self, place: _Place, statements: list[ast.stmt], end: tuple[int, int]) -> None:
        """Replace the statements of a place in the tree and in the index."""
        index, body = self._former.index, place.owner.body
        removed: dict[type, list[ast.AST]] = {}
        gone = [n for s in body[place.first : place.last] for n in below(s, {}, removed)]
        at = self._position(place)
        for node in gone:
            del index.parent[node]
            index.scopes.pop(node, None)
            index.names.pop(node, None)
            index.last.pop(node, None)
            index.returns.pop(node, None)
        nodes = list(index.order)
        if self.shift:
            self._move(nodes[at + len(gone) :], place.end)
        self._end_owners(place, end)
        around: _Place | None = place
        while around is not None:
            index.last.pop(around.owner, None)
            around = around.around
        added: dict[type, list[ast.AST]] = {}
        fresh = [n for s in statements for n in below(s, index.parent, added)]
        index.parent.update(dict.fromkeys(statements, place.owner))
        body[place.first : place.last] = statements
        for kind in removed.keys() | added.keys():
            known = index.by_type.setdefault(kind, [])
            first = bisect_left(known, at, key=index.order.__getitem__)
            known[first : first + len(removed.get(kind, ()))] = added.get(kind, [])
        nodes[at : at + len(gone)] = fresh
        if len(index.names) > len(nodes):  # also of nodes that checks have made
            index.names.clear()
        index.order = dict(zip(nodes, range(len(nodes)), strict=True))

    def _position(self, place: _Place) -> int:
        """Return the position of the first replaced node, or of those that are added."""
        order, body = self._former.index.order, place.owner.body
        if place.first < len(body):
            return order[body[place.first]]
        return order[body[-1]] + len(below(body[-1], {}, {})) if body else order[place.owner] + 1

    def _move(self, nodes: list[ast.AST], end: int) -> None:
        """Move nodes that begin below a line."""
        shift = self.shift
        for node in nodes:
            held = node.__dict__
            if held.get("lineno", 0) > end:
                held["lineno"] += shift
                held["end_lineno"] += shift

    def _end_owners(self, place: _Place, end: tuple[int, int]) -> None:
        """Set the ends of the classes around the replaced statements; they end where their last statement does."""
        is_last = place.last == len(place.owner.body)
        at: _Place | None = place
        while at is not None and isinstance(owner := at.owner, ast.ClassDef):
            if is_last:
                owner.end_lineno, owner.end_col_offset = end
            else:
                owner.end_lineno = (owner.end_lineno or 0) + self.shift
            at = at.around
            is_last = is_last and at is not None and at.owner.body[-1] is owner


_end = attrgetter("end_lineno")


def _start(statement: ast.stmt) -> int:
    """Return the line, from 0, at which a statement begins, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(d.lineno for d in decorators)]) - 1
