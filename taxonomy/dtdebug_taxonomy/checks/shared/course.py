"""Calls of a program in the order in which they run, through the functions of the project, with their objects.

A check on the order of two calls sees a file's text; which of them runs first, and on which object, only shows when
the functions and methods between them are followed. Each function is followed once for each call of it; both branches
of a condition are taken, and a loop's body once.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from dtdebug_taxonomy.checks.shared.wrapping import DDPS, FSDP1
from dtdebug_taxonomy.source.python.bindings import leaves
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.project import FoundDefinition
from dtdebug_taxonomy.source.python.ranks import several
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS, Function
from dtdebug_taxonomy.source.python.values import KEEPS

_DEEPEST = 6
"""Maximum number of functions that are followed into one another."""
_LONGEST = 3000
"""Maximum number of steps of a course."""
_NESTED = 60
"""Maximum depth of an expression or of nested blocks."""
_LARGEST = 200
"""Maximum number of objects that one is traced back to."""


_PARTS: dict[type, Callable[[Any], Iterable[ast.expr | None]]] = {
    ast.BinOp: lambda n: (n.left, n.right),
    ast.BoolOp: lambda n: n.values,
    ast.Compare: lambda n: (n.left, *n.comparators),
    ast.Dict: lambda n: (*n.keys, *n.values),
    ast.FormattedValue: lambda n: (n.value, n.format_spec),
    ast.JoinedStr: lambda n: n.values,
    ast.Subscript: lambda n: (n.value, n.slice),
    ast.UnaryOp: lambda n: (n.operand,),
}
"""The expressions in those that are only made of others; most of a program is these."""


class Thing:
    """Object of a run, as far as the text tells one from another."""

    __slots__ = ("elements", "home", "inner", "owner", "parts", "sources")

    def __init__(self, *sources: Thing, home: FoundDefinition | None = None, inner: Thing | None = None) -> None:
        self.sources = sources
        """Objects that it was made from, such as the model of its parameters."""
        self.home = home
        """Class of the project that it is an object of."""
        self.inner = inner
        """Model that it wraps."""
        self.owner: Thing | None = None
        """Object whose attribute it is first known as."""
        self.parts: dict[str, Thing] = {}
        self.elements: list[Thing] = []

    def part(self, name: str) -> Thing:
        """Return an attribute, which is the same object each time."""
        if name == "module" and self.inner is not None:
            return self.inner
        found = self.parts.get(name)
        if found is None:
            found = self.parts[name] = Thing()
            found.owner = self
        return found

    def lineage(self) -> list[Thing]:
        """Return this object, those that it was made from or is a part of, and the models in wrappers among them."""
        found, seen = [self], {id(self)}
        for thing in found:
            for other in (*thing.sources, thing.owner, thing.inner):
                if other is not None and id(other) not in seen and len(found) < _LARGEST:
                    seen.add(id(other))
                    found.append(other)
        return found


class Place(NamedTuple):
    """Statement that a step is in: a block's owner, and which of its blocks."""

    node: ast.AST
    block: str


class CalledFrom(NamedTuple):
    """Call by which a function is entered."""

    code: Code
    node: ast.Call


class Step(NamedTuple):
    """Call, assignment of an attribute, or loop over an object in the course of a run."""

    code: Code
    node: ast.AST
    name: str
    """Qualified name of the called function; empty if unknown."""
    on: Thing | None
    """Object whose method is called, whose attribute is set, or whose items are taken."""
    given: tuple[Thing, ...]
    """Arguments, by place, then by keyword."""
    result: Thing
    places: tuple[Place, ...]
    """Statements around it, through all functions that led here, outermost first."""
    calls: tuple[CalledFrom, ...]
    """Calls that led here, outermost first."""
    is_followed: bool = False
    """True for the call of a function of the project, whose steps come before."""

    @property
    def attribute(self) -> str:
        """Last part of the name that is called or set."""
        target: ast.AST | None = self.node.func if isinstance(self.node, ast.Call) else None
        if isinstance(self.node, ast.Assign):
            target = self.node.targets[0]
        return target.attr if isinstance(target, ast.Attribute) else ""

    def seen_beside(self, other: Step, code: Code) -> ast.AST | None:
        """Return the call in a file that leads here but not to another step, or this one's own; None if elsewhere."""
        both = 0
        while both < min(len(self.calls), len(other.calls)) and self.calls[both] == other.calls[both]:
            both += 1
        own = [*self.calls[both:], CalledFrom(self.code, self.node)]  # type: ignore[arg-type]
        return next((c.node for c in own if c.code is code), None)

    def excludes(self, other: Step) -> bool:
        """True if the two are in different branches of one condition."""
        mine = {id(p.node): p.block for p in self.places if isinstance(p.node, ast.If)}
        return any(mine.get(id(p.node), p.block) != p.block for p in other.places)


class _Run:
    """Follows one course through a program."""

    def __init__(self, visited: set[ast.AST]) -> None:
        self.visited = visited
        self.steps: list[Step] = []
        self.depth = 0
        self.nested = 0
        self.running: list[ast.AST] = []
        self.calls: tuple[CalledFrom, ...] = ()
        self.tops: dict[Code, dict[str, Thing]] = {}

    def function(self, code: Code, function: Function, env: dict[str, Thing], places: tuple[Place, ...]) -> Thing:
        """Follow a function; returns what it returns last."""
        self.visited.add(function)
        if self.depth >= _DEEPEST or function in self.running or len(self.steps) >= _LONGEST:
            return Thing()
        self.depth += 1
        self.running.append(function)
        frame = _Frame(self, code, env, self.tops.setdefault(code, {}))
        frame.block(function.body, places)
        self.running.pop()
        self.depth -= 1
        return frame.returned or Thing()


class _Frame:
    """Names of one function while it is followed."""

    def __init__(self, run: _Run, code: Code, env: dict[str, Thing], top: dict[str, Thing]) -> None:
        self.run, self.code, self.env, self.top = run, code, env, top
        self.returned: Thing | None = None

    def block(self, body: list[ast.stmt], places: tuple[Place, ...]) -> None:
        """Follow statements in order; what comes after a condition that leaves is its other branch."""
        if self.run.nested > _NESTED:
            return
        self.run.nested += 1
        for statement in body:
            if len(self.run.steps) >= _LONGEST:
                break  # no step is noted any more
            if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
                continue
            self._statement(statement, places)
            if isinstance(statement, ast.If) and leaves(statement.body):
                places = (*places, Place(statement, "orelse"))
        self.run.nested -= 1

    def _statement(self, node: ast.stmt, places: tuple[Place, ...]) -> None:
        if isinstance(node, ast.Assign):
            self._assign(node, places)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._bind(node.target, self.value(node.value, places))
        elif isinstance(node, ast.Return):
            self.returned = self.value(node.value, places) if node.value is not None else self.returned
        elif not self._compound(node, places):
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.expr):
                    self.value(part, places)

    def _compound(self, node: ast.stmt, places: tuple[Place, ...]) -> bool:
        """Follow a statement with blocks; False if it is none."""
        inside = (*places, Place(node, "body"))
        if isinstance(node, ast.If):
            self.value(node.test, places)
            many = several(self.code, node.test)
            for name in ("body", "orelse") if many is None else ("body",) if many else ("orelse",):
                self.block(getattr(node, name), (*places, Place(node, name)))
        elif isinstance(node, ast.For | ast.AsyncFor):
            over = self.value(node.iter, places)
            self._note(node, over, places)
            self._bind(node.target, Thing(over))
            self.block(node.body, inside)
            self.block(node.orelse, places)
        elif isinstance(node, ast.While):
            self.value(node.test, places)
            self.block(node.body, inside)
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                made = self.value(item.context_expr, places)
                if item.optional_vars is not None:
                    self._bind(item.optional_vars, made)
            self.block(node.body, inside)
        elif isinstance(node, ast.Try):
            self.block(node.body, inside)
            for block in (*(h.body for h in node.handlers), node.orelse, node.finalbody):
                self.block(block, places)
        else:
            return False
        return True

    def _assign(self, node: ast.Assign, places: tuple[Place, ...]) -> None:
        value = self.value(node.value, places)
        for target in node.targets:
            if isinstance(target, ast.Attribute) and isinstance(node.value, ast.Constant):
                on = self.value(target.value, places)
                self._note(node, on, places)
            self._bind(target, value)

    def _note(self, node: ast.AST, on: Thing, places: tuple[Place, ...]) -> None:
        if len(self.run.steps) < _LONGEST:
            self.run.steps.append(Step(self.code, node, "", on, (), on, places, self.run.calls))

    def _bind(self, target: ast.expr, value: Thing) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            parts = value.elements if len(value.elements) == len(target.elts) else [Thing(value) for _ in target.elts]
            for inner, part in zip(target.elts, parts, strict=True):
                self._bind(inner, part)
        elif isinstance(target, ast.Name):
            self.env[target.id] = value
        elif isinstance(target, ast.Attribute):
            owner = self.value(target.value, ())
            owner.parts[target.attr] = value
            value.owner = value.owner or owner

    def value(self, node: ast.expr | None, places: tuple[Place, ...]) -> Thing:
        """Return the object that an expression stands for, after the calls in it."""
        run, kind = self.run, type(node)
        if node is None or kind is ast.Constant or run.nested > _NESTED:
            return Thing()
        if kind is ast.Name:
            name: str = node.id  # type: ignore[attr-defined]
            known = self.env.get(name) or self.top.get(name)
            if known is None:
                known = self.env[name] = Thing()
            return known
        run.nested += 1
        if kind is ast.Attribute:
            found = self.value(node.value, places).part(node.attr)  # type: ignore[attr-defined]
        elif kind is ast.Call:
            found = self._call(node, places)  # type: ignore[arg-type]
        elif kind in _PARTS:
            found = Thing(*[self.value(n, places) for n in _PARTS[kind](node) if n is not None])
        else:
            found = self._value(node, places)
        run.nested -= 1
        return found

    def _value(self, node: ast.expr, places: tuple[Place, ...]) -> Thing:
        if isinstance(node, ast.NamedExpr):
            value = self.value(node.value, places)
            self._bind(node.target, value)
            return value
        if isinstance(node, ast.Lambda):
            return Thing()
        if isinstance(node, ast.YieldFrom):
            over = self.value(node.value, places)
            self._note(node, over, places)
            return over
        if isinstance(node, ast.IfExp):
            self.value(node.test, places)
            many = several(self.code, node.test)
            branches = (node.body, node.orelse) if many is None else (node.body if many else node.orelse,)
            return Thing(*(self.value(b, places) for b in branches))
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            for generator in node.generators:
                self._bind(generator.target, Thing(self.value(generator.iter, places)))
        made = Thing(*(self.value(n, places) for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)))
        if isinstance(node, ast.Tuple | ast.List):
            made.elements = list(made.sources)
        return made

    def _call(self, node: ast.Call, places: tuple[Place, ...]) -> Thing:
        func = node.func
        on = self.value(func.value, places) if isinstance(func, ast.Attribute) else None
        if not isinstance(func, ast.Attribute | ast.Name):
            self.value(func, places)
        positional = [self.value(a.value if isinstance(a, ast.Starred) else a, places) for a in node.args]
        named = {k.arg: self.value(k.value, places) for k in node.keywords}
        given = (*positional, *named.values())
        name = self.code.name(func)
        followed: Thing | None = None
        if name in DDPS or name in FSDP1:
            result = Thing(inner=given[0] if given else None)
        else:
            followed = self._follow(node, on, positional, named, places)
            keeps = on is not None and isinstance(func, ast.Attribute) and func.attr in KEEPS
            result = on if keeps and on and not followed else followed or Thing(*given, *((on,) if on else ()))
        if len(self.run.steps) < _LONGEST:
            is_followed = followed is not None
            self.run.steps.append(
                Step(self.code, node, name, on, given, result, places, self.run.calls, is_followed=is_followed)
            )
        return result

    def _follow(
        self,
        node: ast.Call,
        on: Thing | None,
        positional: list[Thing],
        named: dict[str | None, Thing],
        places: tuple[Place, ...],
    ) -> Thing | None:
        """Follow the function or class of the project that is called; None if it is none."""
        found = _definition_of(self.code, node, on)
        if found is None:
            return None
        before, self.run.calls = self.run.calls, (*self.run.calls, CalledFrom(self.code, node))
        made = self._make_or_enter(found, on, positional, named, places)
        self.run.calls = before
        return made

    def _make_or_enter(
        self,
        found: FoundDefinition,
        on: Thing | None,
        positional: list[Thing],
        named: dict[str | None, Thing],
        places: tuple[Place, ...],
    ) -> Thing:
        if isinstance(found.node, ast.ClassDef):
            made = Thing(home=found)
            init = _method(found, "__init__")
            if init is not None:
                self._enter(init, made, positional, named, places)
            else:
                made.sources = (*positional, *named.values())
            return made
        return self._enter(found, on if _takes_self(found) else None, positional, named, places)

    def _enter(
        self,
        found: FoundDefinition,
        on: Thing | None,
        positional: list[Thing],
        named: dict[str | None, Thing],
        places: tuple[Place, ...],
    ) -> Thing:
        code, function = found
        if not isinstance(function, FUNCTIONS):
            return Thing()
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        values = [on, *positional] if on is not None else positional
        env = dict(zip(names, values, strict=False)) | {n: t for n, t in named.items() if n}
        return self.run.function(code, function, env, places)


def _takes_self(found: FoundDefinition) -> bool:
    return isinstance(found.code.parent.get(found.node), ast.ClassDef) and not any(
        dotted_name(d) == "staticmethod" for d in found.node.decorator_list
    )


def _definition_of(code: Code, node: ast.Call, on: Thing | None) -> FoundDefinition | None:
    """Return the function or class of the project that a call refers to."""
    func = node.func
    if on is not None and on.home is not None and isinstance(func, ast.Attribute):
        return _method(on.home, func.attr)
    return code.results.get(("definition", node, None), lambda: _named_definition(code, node))


def may_refer_to(code: Code, node: ast.Call) -> list[FoundDefinition]:
    """Return all that a call may refer to if its object's class is not known: the methods of its name in reach."""
    named = _definition_of(code, node, None)
    if named is not None or not isinstance(node.func, ast.Attribute):
        return [named] if named is not None else []
    name = node.func.attr
    return [FoundDefinition(m, f) for m in (code, *_imported_modules(code)) for f in m.functions.get(name, ())]


def _imported_modules(code: Code) -> list[Code]:
    """Return the modules of the project that a file imports from; kept with it."""
    known: list[Code] | None = code.__dict__.get("_imported")
    if known is None:
        project, names = code.project, set(code.imports.values())
        found = [project.module(code, f"{name}._")[0] for name in names] if project is not None else []
        known = code.__dict__["_imported"] = list({m.path: m for m in found if m is not None}.values())
    return known


def _named_definition(code: Code, node: ast.Call) -> FoundDefinition | None:
    """Return the function or class of the project that a call refers to by its name."""
    func = node.func
    here = code.local_function(node)
    if here is not None:
        return FoundDefinition(code, here) if code.is_plain(here) else None
    if isinstance(func, ast.Name):
        code.results.note("at_top", func.id)
    at_top = code.at_top.get(func.id, []) if isinstance(func, ast.Name) else []
    if len(at_top) == 1:
        return FoundDefinition(code, at_top[0]) if isinstance(at_top[0], ast.ClassDef) else None
    if code.project is None or not code.project.may_hold(code, func) or not code.name(func):
        return None
    return code.project.find_definition(code, code.name(func))


def _method(home: FoundDefinition, name: str) -> FoundDefinition | None:
    """Return a method of a class, or of the classes of the project that it extends."""
    return home.code.results.get(("method", home.node, name), lambda: _find_method(home, name))


def _find_method(home: FoundDefinition, name: str, depth: int = 3) -> FoundDefinition | None:
    code, node = home
    code.results.note("functions", name)
    if not isinstance(node, ast.ClassDef):
        return None
    for member in node.body:
        if isinstance(member, FUNCTIONS) and member.name == name:
            return FoundDefinition(code, member)
    for base in node.bases if depth else ():
        code.results.note("at_top", dotted_name(base))
        same = code.at_top.get(dotted_name(base), ())
        found = FoundDefinition(code, same[0]) if len(same) == 1 else None
        if found is None and code.project is not None and code.project.may_hold(code, base):
            found = code.project.find_definition(code, code.name(base))
        if found is not None and isinstance(found.node, ast.ClassDef) and found.node is not node:
            inherited = _find_method(found, name, depth - 1)
            if inherited is not None:
                return inherited
    return None


def courses(code: Code) -> list[list[Step]]:
    """Return the courses of a program: that of its module, then those of what nothing in it calls; kept with it."""
    known: list[list[Step]] | None = code.__dict__.get("_courses")
    if known is None:
        known = code.__dict__["_courses"] = list(_courses(code))
    return known


def _courses(code: Code) -> Iterator[list[Step]]:
    visited: set[ast.AST] = set()
    run = _Run(visited)
    names = run.tops.setdefault(code, {})
    top = _Frame(run, code, names, names)
    top.block(code.tree.body, ())
    yield run.steps
    for node in code.tree.body:
        run = _Run(visited)
        run.tops[code] = dict(names)
        if isinstance(node, ast.ClassDef):
            methods = [m for m in node.body if isinstance(m, FUNCTIONS)]
            home = Thing(home=FoundDefinition(code, node))
            called = {code.local_function(c) for c in code.inside(node, ast.Call)}
            if any(m in visited for m in methods):
                continue
            for method in methods:
                if method not in called and method.args.args:
                    run.function(code, method, {method.args.args[0].arg: home}, ())
        elif isinstance(node, FUNCTIONS) and node not in visited and node not in code.callers:
            run.function(code, node, {}, ())
        if run.steps:
            yield run.steps
