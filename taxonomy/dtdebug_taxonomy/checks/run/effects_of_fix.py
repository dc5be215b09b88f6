"""Damage that a fix may do: what does not compile, names that are not bound yet or may be None, new divergences."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from dtdebug_taxonomy.checks.divergence.decisions import divergences
from dtdebug_taxonomy.checks.divergence.interpreter import interpreter
from dtdebug_taxonomy.checks.divergence.origins import Callee
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.pairs import goes
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS, SCOPES


def breaks(before: Code, after: Code) -> bool:
    """True if a changed program may read what is not bound or made yet, or has a divergence that it did not have."""
    unbound = Counter(_unbound(after)) - Counter(_unbound(before))
    return (
        bool(unbound)
        or (_compiles(before) and not _compiles(after))
        or bool(Counter(_met_by_some(after)) - Counter(_met_by_some(before)))
        or bool(Counter(_unguarded(after)) - Counter(_unguarded(before)))
        or bool(_count_divergences(after) - _count_divergences(before))
        or bool(_half_changed(before, after))
    )


def _count_divergences(code: Code) -> Counter[tuple[str, str, str]]:
    return Counter((d.kind, d.how, d.call) for d in divergences(code))


def _unbound(code: Code) -> Iterator[str]:
    """Yield the names and attributes of arguments that a function reads before any path to there has bound them."""
    for home in (code.tree, *code.all_functions):
        yield from _Paths(code, home).run()


def _compiles(code: Code) -> bool:
    """True if Python accepts a program: it parses an argument that is given twice, and refuses it afterwards."""
    try:
        compile(code.tree, "<fix>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _unguarded(code: Code) -> Iterator[str]:
    """Yield the uses of a name that may be None which are not under the condition that all its other uses are under."""
    uses: dict[tuple[ast.AST, str], list[tuple[ast.Attribute, set[str]]]] = {}
    for node in code.nodes(ast.Attribute):
        if (name := dotted_name(node.value)) and isinstance(node.ctx, ast.Load) and _may_be_none(code, node.value):
            uses.setdefault((code.scope(node), name), []).append((node, _conditions(code, node)))
    for (_, name), rows in uses.items():
        for node, conditions in rows:
            others = [c for n, c in rows if n.attr != node.attr]
            if others and not set.intersection(*others) <= conditions:
                yield f"{name}.{node.attr}"


def _may_be_none(code: Code, name: ast.expr) -> bool:
    """True if a name may hold None: it is set to that in one place, or a caller decides."""
    for bound in code.bound(name):
        if bound.how == "argument":
            return dotted_name(name) not in {"self", "cls"}
        branches = (bound.value.body, bound.value.orelse) if isinstance(bound.value, ast.IfExp) else (bound.value,)
        if any(isinstance(v, ast.Constant) and v.value is None for v in branches):
            return True
    return False


def _conditions(code: Code, node: ast.AST) -> set[str]:
    """Return the conditions in whose branches a node is, as written, but those on the rank."""
    found, inner = set[str](), node
    for up in code.ancestors(node):
        if isinstance(up, ast.If) and inner in up.body and guards(code).test(up.test) is None:
            found.add(ast.unparse(up.test))
        inner = up
    return found


def _met_by_some(code: Code) -> Iterator[str]:
    """Yield the calls under a condition on the rank that may lead to one in which all ranks wait, in any function."""
    home = interpreter(code)
    for call in code.nodes(ast.Call):
        if any(g.test.which != "group" for g in guards(code).around(call)):
            called = (f for f in home.callees(call) if isinstance(f, Callee) and not isinstance(f.node, ast.ClassDef))
            if home.leads(call) or any(home.of(f.code).meetings(f.node) for f in called):
                yield ast.unparse(call.func)


def _half_changed(before: Code, after: Code) -> bool:
    """True if one of two equal calls in one expression was changed: `gather(a) == gather(b)` belong together."""
    return Counter(_lone_halves(after)) - Counter(_lone_halves(before)) != Counter()


def _lone_halves(code: Code) -> Iterator[str]:
    """Yield the calls that gather one side only of a comparison or arithmetic with two tensors."""
    pairs: list[tuple[ast.expr, ast.expr, ast.expr]] = [(n, n.left, n.comparators[0]) for n in code.nodes(ast.Compare)]
    pairs += [(n, n.left, n.right) for n in code.nodes(ast.BinOp)]
    for node, *sides in pairs:
        names = [getattr(s.func, "attr", dotted_name(s.func)) if isinstance(s, ast.Call) else "" for s in sides]
        if all("gather" in name for name in names) and names[0] != names[1]:
            yield code.source_of(node)


class _Paths:
    """Names that are bound on every path through a scope; only those that the scope itself binds are of interest."""

    def __init__(self, code: Code, home: ast.AST) -> None:
        self.code, self.home = code, home
        self.own = {name for (scope, name), rows in code.bindings.items() if scope is home and rows}
        self.found: list[str] = []
        self.under: dict[str, set[str]] = {}
        """Condition as written -> names that are bound where it holds, as a later `if` with it finds them."""

    def run(self) -> list[str]:
        """Return the names that are read too early; a name of a loop or a `try` counts as bound."""
        bound: set[str] = set()
        if isinstance(self.home, FUNCTIONS):
            a = self.home.args
            bound |= {x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg)))}
            bound |= {n for g in self.code.inside(self.home, ast.Global) for n in g.names}
            bound |= {n for g in self.code.inside(self.home, ast.Nonlocal) for n in g.names}
        self._block(self.home.body, bound)  # type: ignore[attr-defined]
        return self.found

    def _block(self, statements: list[ast.stmt], bound: set[str]) -> None:
        for statement in statements:
            if isinstance(statement, ast.If):
                self._read(statement.test, bound)
                test = ast.unparse(statement.test)
                body, orelse = bound | self.under.get(test, set()), set(bound)
                self._block(statement.body, body)
                self._block(statement.orelse, orelse)
                self.under[test] = body - bound
                ends = (
                    goes(statement.body) or _raises(statement.body),
                    goes(statement.orelse) or _raises(statement.orelse),
                )
                bound |= orelse if ends[0] else body if ends[1] else body & orelse
                continue
            inner = [s for part in ("body", "orelse", "finalbody") for s in getattr(statement, part, ())]
            if inner and not isinstance(statement, SCOPES):
                for part in ast.iter_child_nodes(statement):
                    if isinstance(part, ast.expr | ast.withitem):
                        self._read(part, bound)
                        self._bind(part, bound)
                self._block(inner, bound)
                for handler in getattr(statement, "handlers", ()):
                    self._block(handler.body, set(bound))
                continue
            self._read(statement, bound)
            self._bind(statement, bound)

    def _read(self, node: ast.AST, bound: set[str]) -> None:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            return
        for name in self.code.inside(node, ast.Name):
            if isinstance(name.ctx, ast.Load) and name.id in self.own - bound and self.code.scope(name) is self.home:
                self.found.append(name.id)
        for read in self.code.inside(node, ast.Attribute):
            written = dotted_name(read)
            if isinstance(read.ctx, ast.Load) and written in self.own - bound and not written.startswith("self."):
                self.found.append(written)

    def _bind(self, node: ast.AST, bound: set[str]) -> None:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            bound.add(node.name)
            return
        targets: list[ast.Name | ast.Attribute] = [*self.code.inside(node, ast.Name)]
        targets += self.code.inside(node, ast.Attribute)
        bound |= {dotted_name(t) for t in targets if isinstance(t.ctx, ast.Store | ast.Del)}
        for alias in self.code.inside(node, ast.alias):
            bound.add((alias.asname or alias.name).partition(".")[0])


def _raises(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], ast.Raise)
