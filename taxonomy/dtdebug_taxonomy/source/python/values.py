"""Possible values of a name at a place, followed through one file without running it.

Through assignments, arguments of callers and results of functions, and objects created here: `args.rank` of an
argument, `config.backend` of a dataclass.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from functools import cached_property

from dtdebug_taxonomy.source.python.bindings import Binding, bindings, name_scope, surely_before
from dtdebug_taxonomy.source.python.calls import CallIndex
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.reparse import Former
from dtdebug_taxonomy.source.python.results import Results, Tables

KEEPS = frozenset({"to", "cuda", "cpu", "train", "eval", "half", "float", "bfloat16", "double", "requires_grad_"})
"""Methods of a module that return the module itself."""
_MOST = 200
"""Maximum number of bindings to walk back; if none definitely executes, the value is unknown."""


class ValueIndex(CallIndex):
    """Program whose names are followed to their values."""

    @cached_property
    def bindings(self) -> dict[tuple[ast.AST, str], list[Binding]]:
        """(scope, name or `self.attribute`) -> its bindings, in the order of the program."""
        return bindings(self)

    def bound(self, node: ast.expr) -> list[Binding]:
        """Return the bindings that a name or `self.attribute` can have at its place.

        Those that precede it in its own scope: the last one that definitely executes, and those after it that
        may; else all of the nearest enclosing scope that has any.
        """
        return self.results.get(("bound", node, None), lambda: _reaching(self, node))

    def _tables_of_names(self) -> Tables:
        calls, classes = self._calls[0], {"": self.nodes(ast.ClassDef)[:]}
        return Tables(self.bindings, self.callers, self.functions, self.at_top, calls, classes, self.stores)

    @cached_property
    def stores(self) -> dict[str, list[ast.Attribute]]:
        """Attribute -> where it is set, on any object."""
        found: dict[str, list[ast.Attribute]] = {}
        for node in self.nodes(ast.Attribute):
            if isinstance(node.ctx, ast.Store):
                found.setdefault(node.attr, []).append(node)
        return found

    def release(self) -> Former | None:
        """Return what the next version of the text can reuse, and drop everything else."""
        results: Results | None = self.__dict__.get("results")
        if results is not None and (results.rows or self.kept):
            index = self._node_index
            index.results, index.tables, index.project = results.rows, self._tables_of_names(), self.project
        return super().release()

    def values(self, node: ast.expr | None) -> list[ast.expr | None]:
        """Return the expressions that a name can represent here, one step back; the node itself if it is not a name.

        None represents an unknown value, such as an argument that nothing in this file passes.
        """
        if node is None or not dotted_name(node):
            return [node]
        found = [b.value if b.how == "assign" else None for b in self.bound(node)]
        return found or [None]

    def made_by(self, node: ast.expr | None, depth: int = 4) -> set[str]:
        """Return the qualified names of the calls that create the possible values of an expression.

        Includes "" if a value is created differently or is unknown. Assignments are
        followed, and methods that return the module itself (`.to()`, `.cuda()`, `.eval()`).
        """
        made: set[str] = set()
        todo: list[tuple[ast.expr | None, int]] = [(node, depth)]
        while todo:
            value, left = todo.pop()
            if isinstance(value, ast.Call):
                func = value.func
                if isinstance(func, ast.Attribute) and func.attr in KEEPS and left:
                    todo.append((func.value, left - 1))
                elif left and (returned := self.returned_values(value)):
                    todo += [(v, left - 1) for v in returned]
                else:
                    made.add(self.name(func))
            elif isinstance(value, ast.IfExp) and left:
                todo += [(value.body, left - 1), (value.orelse, left - 1)]
            elif value is not None and left and dotted_name(value):
                todo += [(v, left - 1) for v in self.values(value) if v is not value]
            else:
                made.add("")
        return made

    def is_made_by(self, node: ast.expr | None, *names: str) -> bool:
        """True if every possible value of an expression is created by one of these calls."""
        made = self.made_by(node)
        return bool(made) and made <= set(names)

    def constant(self, node: ast.expr | None) -> object:
        """Return the constant value of an expression, through a simple assignment; None if it has none."""
        for _ in range(3):
            if isinstance(node, ast.Constant):
                return node.value
            if node is None or not dotted_name(node):
                return None
            values = self.values(node)
            if len(values) != 1:
                return None
            node = values[0]
        return None


def class_behind(code: ValueIndex, node: ast.expr) -> ast.ClassDef | None:
    """Return the class of this file whose object an expression definitely is; None if unknown."""
    if dotted_name(node) in {"self", "cls"}:
        return code.class_of(node)
    values = code.values(node)
    made = values[0] if len(values) == 1 else None
    if isinstance(made, ast.Call):
        code.results.note("at_top", dotted_name(made.func))
    classes = code.at_top.get(dotted_name(made.func), []) if isinstance(made, ast.Call) else []
    return classes[0] if len(classes) == 1 and isinstance(classes[0], ast.ClassDef) else None


def _reaching(code: ValueIndex, node: ast.expr, name: str = "", depth: int = 4) -> list[Binding]:
    """Return the bindings that a name or dotted name can have at its place, or at the node."""
    name = name or dotted_name(node)
    found = _written_bindings(code, node, name)
    if found or "." not in name or not depth:
        return found
    return _through(code, node, name, depth - 1)


def _written_bindings(code: ValueIndex, node: ast.expr, name: str) -> list[Binding]:
    """Return the bindings of a dotted name as written."""
    if name.startswith(("self.", "cls.")):
        here = _lookup(code, name_scope(code, node, name), name)
        mine = [b for b in here if code.function(b.node) is code.function(node)]
        return _before(code, mine, node) or here
    for depth, scope in enumerate(code.scopes(node)):
        if isinstance(scope, ast.ClassDef) and depth:
            continue
        here = _lookup(code, scope, name)
        if not here:
            continue
        found = here if depth else (_before(code, here, node) or _around_again(code, here, node))
        result: list[Binding] = []
        for binding in found:
            if binding.how == "argument" and isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
                values = _argument_values(code, scope, name)
                result += [binding._replace(value=v, how="assign") for v in values if v is not None] or [binding]
                if None in values and len(values) > 1:
                    result.append(binding)
            else:
                result.append(binding)
        return result
    return []


def _lookup(code: ValueIndex, scope: ast.AST, name: str) -> list[Binding]:
    code.results.note("bindings", (scope, name))
    return code.bindings.get((scope, name), [])


def _before(code: ValueIndex, here: list[Binding], node: ast.AST) -> list[Binding]:
    """Return the last binding of one scope that definitely executes on the way, and later ones that may."""
    statement = code.statement(node)
    result: list[Binding] = []
    before = bisect_right(here, code.order[node], key=lambda b: code.order[b.node])
    for binding in reversed(here[max(0, before - _MOST) : before]):
        if binding.node is statement:
            continue
        passed = surely_before(code, binding.node, node)
        if passed is None:  # on another branch of the same decision
            continue
        result.append(binding)
        if passed:
            return result[::-1]
    if before > _MOST:
        result.append(here[before - _MOST - 1]._replace(value=None, how="other"))
    return result[::-1]


def _around_again(code: ValueIndex, here: list[Binding], node: ast.AST) -> list[Binding]:
    """Return bindings further down that reach the node in the next iteration of a loop."""
    loops = {a for a in code.ancestors(node) if isinstance(a, ast.For | ast.AsyncFor | ast.While)}
    return [b for b in here if loops.intersection(code.ancestors(b.node))] if loops else []


def _argument_values(
    code: ValueIndex, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str
) -> list[ast.expr | None]:
    """Return the values that calls in this file pass for an argument; empty without a call."""
    a = function.args
    positions = [x.arg for x in (*a.posonlyargs, *a.args)]
    if positions and positions[0] in {"self", "cls"} and isinstance(code.parent.get(function), ast.ClassDef):
        positions = positions[1:]
    place = positions.index(name) if name in positions else None
    owner = code.parent.get(function)
    if function.name == "__init__" and isinstance(owner, ast.ClassDef):
        code.results.note("classes", "")
        code.results.note("calls", owner.name)
        calls = [] if _made_elsewhere(code, owner) else code.calls(owner.name)
    else:
        code.results.note("callers", function)
        calls = code.callers.get(function, [])
    return [code.argument(call, name, place) for call in calls]


def _made_elsewhere(code: ValueIndex, owner: ast.ClassDef) -> bool:
    """True if objects of a class may get their arguments outside this file's calls: another class derives from it."""
    return any(dotted_name(b).rpartition(".")[2] == owner.name for c in code.nodes(ast.ClassDef) for b in c.bases)


def _through(code: ValueIndex, node: ast.expr, name: str, depth: int) -> list[Binding]:
    """Return the bindings of a dotted name that is not bound as written; empty if unknown.

    Its longest part with exactly one binding is followed: to the argument of a caller, or to
    an object of a class of this file.
    """
    head, _, rest = name.rpartition(".")
    while head and head not in {"self", "cls"}:
        found = _reaching(code, node, head, depth)
        if found:
            value = found[0].value if len(found) == 1 and found[0].how == "assign" else None
            if value is None or value is node:
                return []
            if dotted_name(value):
                return _reaching(code, value, f"{dotted_name(value)}.{rest}", depth) if depth else []
            return _of_object(code, value, rest) if isinstance(value, ast.Call) else []
        head, _, last = head.rpartition(".")
        rest = f"{last}.{rest}"
    return []


def _of_object(code: ValueIndex, made: ast.Call, attribute: str) -> list[Binding]:
    """Return the bindings of an attribute of an object of this file's class that only the class itself sets."""
    code.results.note("at_top", dotted_name(made.func))
    classes = code.at_top.get(dotted_name(made.func), [])
    if len(classes) != 1 or not isinstance(owner := classes[0], ast.ClassDef) or _set_outside(code, owner, attribute):
        return []
    found = _lookup(code, owner, f"self.{attribute}")
    if found:
        return found
    found = _lookup(code, owner, attribute)
    if not any("dataclass" in code.source_of(d) for d in owner.decorator_list):
        return found
    code.results.note_volatile()  # it reads the body of the class
    if code.has_unpacking(made):
        return []
    fields = [n for n in owner.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]
    names = [n.target.id for n in fields if isinstance(n.target, ast.Name)]
    if attribute not in names or (made.args and (owner.bases or "field(" in code.source_of(owner))):
        return []
    given = code.argument(made, attribute, names.index(attribute))
    field = fields[names.index(attribute)]
    if given is None and field.value is None:
        return []
    return [Binding(field, given if given is not None else _default(code, field.value), "assign")]


def _set_outside(code: ValueIndex, owner: ast.ClassDef, attribute: str) -> bool:
    code.results.note("stores", attribute)
    return any(code.class_of(n) is not owner for n in code.stores.get(attribute, ()))


def _default(code: ValueIndex, value: ast.expr | None) -> ast.expr | None:
    """Return the default of a dataclass field: `field(default=1)`, `field(default_factory=lambda: 1)`."""
    if not isinstance(value, ast.Call) or code.name(value.func) != "dataclasses.field":
        return value
    factory = code.argument(value, "default_factory")
    return factory.body if isinstance(factory, ast.Lambda) else code.argument(value, "default")
