"""Interpretation of one function: the values of its names, statement by statement."""

from __future__ import annotations

import ast
from collections.abc import Set as AbstractSet

from dtdebug_taxonomy.checks.divergence.expressions import MAX_NESTING, Evaluation, is_bar
from dtdebug_taxonomy.checks.divergence.origins import (
    EQUAL,
    Callee,
    Value,
    mix,
    own,
)
from dtdebug_taxonomy.checks.divergence.summaries import (
    Decision,
    Program,
    Summary,
)
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import several
from dtdebug_taxonomy.source.python.syntax import Function

_LOADER_NAME = ("loader", "batches")
_STATEMENTS: dict[type, str] = {
    ast.FunctionDef: "_define",
    ast.AsyncFunctionDef: "_define",
    ast.Assign: "_assign",
    ast.AnnAssign: "_assign",
    ast.AugAssign: "_add",
    ast.Return: "_return",
    ast.If: "_if",
    ast.While: "_while",
    ast.For: "_for",
    ast.AsyncFor: "_for",
    ast.Try: "_try",
    ast.With: "_with",
    ast.AsyncWith: "_with",
    ast.Match: "_match",
    ast.ClassDef: "_skip",
}


class Frame(Evaluation):
    """Interpretation of one function: the values of its names, statement by statement."""

    def __init__(self, home: Program, node: ast.AST, *, quiet: bool = False) -> None:
        super().__init__(home, node, quiet=quiet)

    def run(self) -> Summary:
        """Interpret the whole function."""
        if isinstance(self.node, ast.Lambda):
            self.returns = self.value(self.node.body)
        else:
            self.block(self.node.body, EQUAL)  # type: ignore[attr-defined]
        kept = mix(*(v for n, v in self.env.items() if n.startswith("self.")))
        parameters = Value(frozenset(o for o in kept.origins if o.kind == "parameter"))
        return Summary(self.returns, frozenset(self.exchanged), parameters, tuple(self.decisions.values()))

    def block(self, statements: list[ast.stmt], control: Value) -> None:
        """Interpret statements in order, under conditions of a value."""
        if self.nested > MAX_NESTING:
            return
        self.nested += 1
        for statement in statements:
            name = _STATEMENTS.get(type(statement))
            if name is not None:
                getattr(self, name)(statement, control)
            else:
                for part in ast.iter_child_nodes(statement):
                    if isinstance(part, ast.expr):
                        self.value(part)
        self.nested -= 1

    def _skip(self, node: ast.stmt, control: Value) -> None:
        """Leave a statement out."""

    def _define(self, node: Function, control: Value) -> None:
        self.set_name(node.name, Value(callees=frozenset({Callee(self.code, node)})))

    def _assign(self, node: ast.Assign | ast.AnnAssign, control: Value) -> None:
        if node.value is None:
            return
        value = self.value(node.value)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            self.bind(target, value, node.value, control)

    def _add(self, node: ast.AugAssign, control: Value) -> None:
        name = dotted_name(node.target)
        if name:
            self.set_name(name, mix(self.value_of_name(node.target), self.value(node.value), control))

    def _return(self, node: ast.Return, control: Value) -> None:
        value = self.value(node.value) if node.value is not None else EQUAL
        if node.value is None or isinstance(node.value, ast.Constant):
            value = mix(value, control)
        self.returns = self.returns | value if self.returns is not EQUAL else value

    def _if(self, node: ast.If, control: Value) -> None:
        value = self.value(node.test)
        many = several(self.code, node.test)
        if many is not None:
            self.block(node.body if many else node.orelse, control)
            return
        inner = mix(control, value)
        before = dict(self.env)
        self.block(node.body, inner)
        after = self._replace(before)
        self.block(node.orelse, inner)
        self._merge(after)
        self._decide(node, value)

    def _replace(self, env: dict[str, Value]) -> dict[str, Value]:
        """Go on with other values of the names; return those so far."""
        before, self.env, self.known = self.env, env, {}
        return before

    def _merge(self, other: dict[str, Value]) -> None:
        env, self.known = self.env, {}
        for name, value in other.items():
            mine = env.get(name)
            if mine is not value:
                env[name] = value if mine is None else mine | value

    def _while(self, node: ast.While, control: Value) -> None:
        self._loop(node.body, mix(control, self._asked(node)))
        self._decide(node, self._asked(node))
        self.block(node.orelse, control)

    def _asked(self, node: ast.While) -> Value:
        """Return the value of a loop's condition, which is asked in each round."""
        self.loops += 1
        value = self.value(node.test)
        self.loops -= 1
        return value

    def _for(self, node: ast.For | ast.AsyncFor, control: Value) -> None:
        value = self.value(node.iter)
        if not value.origins - {o for o in value.origins if o.kind == "parameter"} and self._is_loader(node):
            value = mix(value, own("loader"))
        item = self._number(node.iter) or value.items
        if isinstance(node.target, ast.Tuple) and self._is_counted(node.iter):
            self.bind(node.target.elts[0], EQUAL, None, EQUAL)
            self.bind_item(node.target.elts[-1], item, node.iter)
        else:
            self.bind_item(node.target, item, node.iter)
        self._loop(node.body, control, {dotted_name(n) for n in self.code.inside(node.target, ast.Name)})
        if value.of_kind("part", "parameter"):
            self._decide(node, value)
        self.block(node.orelse, control)

    def _number(self, node: ast.expr) -> Value | None:
        """Return the value of a `range()`'s numbers; where it ends decides how many they are, not which."""
        if isinstance(node, ast.Call) and is_bar(self.code.name(node.func)) and node.args:
            return self._number(node.args[0])
        if not isinstance(node, ast.Call) or self.code.name(node.func) != "range" or node.keywords:
            return None
        return mix(*(self.value(a) for i, a in enumerate(node.args) if i != (1 if len(node.args) > 1 else 0)))

    def _is_counted(self, node: ast.expr, depth: int = 3) -> bool:
        """True if an expression is an `enumerate()`, also behind a name or in a progress bar."""
        if isinstance(node, ast.Call):
            name = self.code.name(node.func)
            return name == "enumerate" or bool(
                depth and node.args and is_bar(name) and self._is_counted(node.args[0], depth - 1)
            )
        values = self.code.values(node) if depth and isinstance(node, ast.Name) else []
        return bool(values) and all(v is not None and v is not node and self._is_counted(v, depth - 1) for v in values)

    def _is_loader(self, node: ast.For | ast.AsyncFor) -> bool:
        """True if a loop with meetings reads what is called a loader: each rank gets batches of its own."""
        names = (dotted_name(n).lower() for n in self.code.inside(node.iter, ast.Name, ast.Attribute))
        return any(word in name for name in names for word in _LOADER_NAME) and bool(self.home.meetings(node))

    def _loop(self, body: list[ast.stmt], control: Value, items: AbstractSet[str] = frozenset()) -> None:
        """Interpret the passes of a loop; the attributes of its items are those of others in the next pass."""
        before = dict(self.env)
        self.loops += 1
        for _ in range(2 if self.loops < 2 else 1):
            for name in [n for n in self.env if "." in n and n.partition(".")[0] in items]:
                del self.env[name]
            self.known = {}
            self.block(body, control)
        self.loops -= 1
        self._merge(before)

    def _try(self, node: ast.Try, control: Value) -> None:
        self.block(node.body, control)
        for handler in node.handlers:
            taken = self._next_of_part(node) if dotted_name(handler.type) == "StopIteration" else EQUAL
            before = dict(self.env)
            self.block(handler.body, mix(control, taken))
            self._merge(before)
            if taken.origins:
                self._decide(handler, taken)
        self.block(node.orelse, control)
        self.block(node.finalbody, control)

    def _next_of_part(self, node: ast.Try) -> Value:
        """Return what the `next()` of a try block reads."""
        calls = (c for s in node.body for c in self.code.inside(s, ast.Call) if self.code.name(c.func) == "next")
        read = mix(*(self.value(a) for c in calls for a in c.args[:1]))
        return Value(frozenset(o for o in read.origins if o.kind in {"part", "parameter"}))

    def _with(self, node: ast.With | ast.AsyncWith, control: Value) -> None:
        for item in node.items:
            value = self.value(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value, None, EQUAL)
        self.block(node.body, control)

    def _match(self, node: ast.Match, control: Value) -> None:
        inner = mix(control, self.value(node.subject))
        before = dict(self.env)
        for case in node.cases:
            after = self._replace(dict(before))
            self.block(case.body, inner)
            self._merge(after)

    def _decide(self, node: ast.AST, value: Value) -> None:
        """Note a condition by which a rank alone may decide."""
        if value.origins and not self.quiet:
            known = self.decisions.get(node)
            self.decisions[node] = Decision(self.code, node, value if known is None else mix(known.value, value))
