"""The way back from an expression to where the program made its value.

It goes from a name to its assignment, from a parameter to the caller's argument, from an attribute to `self.x =`, a
field or an option, from a call of an own function to what that returned, from a loop to what it goes through, and from
a batch to the data set. It reads the program only; values are added where a frame still has them.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator
from typing import Any

from dtdebug.account import evaluate, scopes
from dtdebug.account.makers import Making, creation, makings, of_class, option_of
from dtdebug.account.objects import MISSING, attribute, class_of_value, is_kind, loaded, module_of
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Sources
from dtdebug.account.values import masked, named, one_line
from dtdebug_taxonomy.model.account import MAX_LINKS, How, Link, NamedValue, Place
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

_DEEPEST = 9
_NOT_FOLLOWED = frozenset({"self", "cls", "__file__", "__name__", "super"})
_EMPTY = ("empty", "empty_like", "new_empty")
_WRAPPERS = frozenset({"enumerate", "zip", "tqdm", "iter", "reversed", "list", "islice", "cycle", "next", "trange"})
_ENDS: tuple[How, ...] = ("literal", "option", "default", "environment", "file")
"""How a value is decided at the link itself."""


class WayBack:
    """Links found so far, in the order in which they are told."""

    def __init__(self, sources: Sources, deadline: float) -> None:
        self.links: list[Link] = []
        self.ends: list[tuple[int, int]] = []
        """(Index of a link at which a value was decided, how sure that is: 0 for most)."""
        self.stopped = ""
        self._sources = sources
        self._deadline = deadline
        self._seen: set[tuple[str, int]] = set()

    @property
    def root(self) -> int:
        """Index of the link at which the first value was decided, or -1."""
        return min(self.ends, key=lambda end: (end[1], end[0]))[0] if self.ends else -1

    def follow(self, node: ast.expr, scope: Scope, depth: int = 0, *, name: str = "") -> None:
        """Follow each part of an expression back; `name`: what to call a literal."""
        if _constant(node) and name:
            text = masked(name, ast.unparse(node))
            self._add(Link(value=text, how="literal", place=place(scope, node), depth=depth), sure=0, user=scope.user)
        for leaf in leaves(node, scope):
            self._follow(leaf, scope, depth)

    def _follow(self, node: ast.expr, scope: Scope, depth: int) -> None:
        text = ast.unparse(node)
        key = (text, id(scope))
        if key in self._seen or text in _NOT_FOLLOWED:
            return
        if depth > _DEEPEST or len(self.links) >= MAX_LINKS:
            self.stopped = self.stopped or "the way back is longer than what is kept"
            return
        if time.monotonic() > self._deadline:
            self.stopped = "the time for it was used up"
            return
        self._seen.add(key)
        value = scope.value(node)
        if isinstance(node, ast.Call):
            self._call(node, scope, depth, value)
            return
        if value is not MISSING and not scopes.is_plain_value(value):
            return
        for made in makings(node, scope, self._sources):
            self._made(node, value, made, scope, depth)
            break
        else:
            if isinstance(node, ast.Attribute | ast.Subscript):
                self._follow_owner(node, scope, depth, value)

    def _follow_owner(self, node: ast.Attribute | ast.Subscript, scope: Scope, depth: int, value: Any) -> None:
        """Go on with the object that an attribute or item belongs to."""
        for leaf in leaves(node.value, scope):
            self._follow(leaf, scope, depth)

    def _made(self, node: ast.expr, value: Any, made: Making, scope: Scope, depth: int) -> None:
        shown = named(ast.unparse(node), value, contents=not _is_empty(made.value))
        how = made.how
        sure = _sure(how, made, value)
        before = len(self.links)
        told = made.scope.user and (scope.user or how == "literal")  # a library's parameter is its own matter
        self._add(Link(value=shown, how=how, place=place(made.scope, made.node), depth=depth), sure, told)
        deeper = depth + (len(self.links) > before)
        if how == "loop":
            self._samples(made, deeper)
        for part in made.parts:
            for leaf in leaves(part, made.scope):
                self._follow(leaf, made.scope, deeper)

    def _call(self, node: ast.Call, scope: Scope, depth: int, value: Any) -> None:
        """Go on with what a function of the program returns, or with a call that asks for the environment."""
        entered = enter(node, scope, self._sources)
        if entered is None:
            how: How = "environment" if dotted_name(node.func).endswith(evaluate.ENVIRONMENT) else "called"
            shown = named(ast.unparse(node), value)
            self._add(Link(value=shown, how=how, place=place(scope, node), depth=depth), _LAUNCH, scope.user)
            return
        for each in scopes.statements(entered.node):  # type: ignore[arg-type]
            if isinstance(each, ast.Return) and each.value is not None:
                shown = named(ast.unparse(node), value)
                link = Link(value=shown, how="returned", place=place(entered, each), depth=depth)
                decided = not leaves(each.value, entered)
                self._add(link, _sure_of(each.value) if decided else None, entered.user)
                for leaf in leaves(each.value, entered):
                    self._follow(leaf, entered, depth + 1)

    def _samples(self, made: Making, depth: int) -> None:
        """Go from a batch to the samples of the data set: the loader runs that in a library, or in another process."""
        for part in made.parts:
            for leaf in (part, *leaves(part, made.scope)):
                found = _dataset(leaf, made.scope, self._sources)
                if found is None:
                    continue
                method = found
                for each in scopes.statements(method.node):  # type: ignore[arg-type]
                    if isinstance(each, ast.Return) and each.value is not None:
                        shown = NamedValue("samples of the data set")
                        link = Link(value=shown, how="returned", place=place(method, each), depth=depth)
                        self._add(link, None, user=True)
                        for inner in leaves(each.value, method):
                            self._follow(inner, method, depth + 1)
                return

    def _add(self, link: Link, sure: int | None, user: bool) -> None:
        if not user or len(self.links) >= MAX_LINKS:
            return
        if any((each.place, each.value.name) == (link.place, link.value.name) for each in self.links):
            return
        if sure is not None:
            self.ends.append((len(self.links), sure))
        self.links.append(link)


_DECIDED, _MADE, _LAUNCH = 0, 1, 2
"""How surely a value was decided at a link: by what stands there, by a call with nothing but literals, by the launch."""


def _sure(how: How, made: Making, value: Any) -> int | None:
    if how in _ENDS:
        return _DECIDED
    parts = [leaf for part in made.parts for leaf in leaves(part, made.scope)]
    if parts or how in ("passed", "loop"):
        return None
    return _MADE


def _sure_of(node: ast.expr) -> int:
    return _DECIDED if _constant(node) else _MADE


def _constant(node: ast.AST | None) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _constant(node.operand)
    if isinstance(node, ast.Tuple | ast.List):
        return bool(node.elts) and all(_constant(each) for each in node.elts)
    return isinstance(node, ast.Constant)


def _is_empty(node: ast.expr | None) -> bool:
    """True if an expression makes a tensor whose contents mean nothing."""
    return isinstance(node, ast.Call) and dotted_name(node.func).rpartition(".")[2] in _EMPTY


def place(scope: Scope, node: ast.AST) -> Place:
    """Return the place of an expression or statement."""
    line = getattr(node, "lineno", scope.line)
    code = scope.source(line)
    mark = (0, 0)
    if scope.program is not None and isinstance(node, ast.expr) and node.end_lineno == line:
        raw = scope.program.code.text.line(line)
        indent = len(raw) - len(raw.lstrip())
        first = len(raw.encode()[: node.col_offset].decode(errors="ignore")) - indent
        last = len(raw.encode()[: node.end_col_offset].decode(errors="ignore")) - indent
        mark = (first, last) if 0 <= first < last else mark
    shown = one_line(code)
    function = scope.function if isinstance(scope.node, (*FUNCTIONS, ast.Lambda)) else ""
    return Place(
        file=one_line(scope.file), line=line, function=function, code=shown, mark=mark if shown == code else (0, 0)
    )


def enter(call: ast.Call, scope: Scope, sources: Sources) -> Scope | None:
    """Return the function of the program that a call enters, or None."""
    if scope.program is None or not scope.user:
        return None
    function = scope.program.code.local_function(call)
    if function is not None:
        return _entered(scope, function, call, scope)
    name = dotted_name(call.func)
    if isinstance(call.func, ast.Attribute) and name:  # a method of an object of the program
        found = of_class(call.func.value, scope, sources)
        home, defined = found if found is not None else (None, None)
        if home is not None and defined is not None:
            for each in defined.body:
                if isinstance(each, FUNCTIONS) and each.name == call.func.attr:
                    return _entered(home, each, call, scope)
    imported = scope.program.code.imports.get(name.partition(".")[0], "")
    if not imported:
        return None
    whole = imported + name[len(name.partition(".")[0]) :]
    module, _, last = whole.rpartition(".")
    other = sources.of_module(module, scope.file) if module else None
    found_functions = other.code.functions.get(last, []) if other is not None else []
    if other is None or len(found_functions) != 1:
        return None
    home = Scope(other.file, found_functions[0].lineno, last, program=other, node=other.tree)
    return _entered(home, found_functions[0], call, scope)


def _entered(home: Scope, function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call, caller: Scope) -> Scope:
    last = function.end_lineno or function.lineno
    return Scope(
        home.file,
        last + 1,
        function.name,
        program=home.program,
        node=function,
        bound=(call, caller),
        world=home.world,
    )


def _dataset(node: ast.expr, scope: Scope, sources: Sources) -> Scope | None:
    """Return `__getitem__` of the data set that a loader, or what wraps it, goes through."""
    while isinstance(node, ast.Call) and dotted_name(node.func).rpartition(".")[2] in _WRAPPERS and node.args:
        node = node.args[0]
    value = scope.value(node)
    if is_kind(value, loaded("torch.utils.data", "DataLoader")):
        value = attribute(value, "dataset")
        home = scope.program
        kind = class_of_value(value) if value is not MISSING else None
        if kind is None or home is None or module_of(kind).startswith("torch"):
            return None
        name = type.__dict__["__name__"].__get__(kind)
    else:
        made = creation(node, scope, sources)
        if made is None or dotted_name(made[0].func).rpartition(".")[2] not in ("DataLoader", "StatefulDataLoader"):
            return None
        call, scope = made
        given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "dataset"), None)
        inner = creation(given, scope, sources) if given is not None else None
        if inner is None:
            return None
        name, home = dotted_name(inner[0].func), scope.program
    for program in filter(None, (home, _program_of(name, scope, sources))):
        for defined in program.code.nodes(ast.ClassDef):
            if defined.name != name:
                continue
            for each in defined.body:
                if isinstance(each, FUNCTIONS) and each.name in ("__getitem__", "__iter__"):
                    return Scope(
                        program.file, (each.end_lineno or each.lineno) + 1, each.name, program=program, node=each
                    )
    return None


def _program_of(name: str, scope: Scope, sources: Sources) -> Any:
    """Return the program that a class was imported from."""
    imported = scope.program.code.imports.get(name, "") if scope.program is not None else ""
    module = imported.rpartition(".")[0]
    return sources.of_module(module, scope.file) if module else None


def leaves(node: ast.expr | None, scope: Scope) -> list[ast.expr]:
    """Return the parts of an expression whose value was made elsewhere: names, attributes, items, own calls."""
    bound = {name.id for each in ast.walk(node) if isinstance(each, ast.comprehension)
             for name in ast.walk(each.target) if isinstance(name, ast.Name)} if node is not None else set()  # fmt: skip
    found = [each for each in _leaves(node, scope) if not (isinstance(each, ast.Name) and each.id in bound)]
    return [each for each in found if _root(each) not in bound]


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _leaves(node: ast.AST | None, scope: Scope) -> Iterator[ast.expr]:
    match node:
        case None | ast.Lambda():
            return
        case ast.Name():
            if not _is_outside(node.id, scope):
                yield node
        case ast.Attribute():
            if dotted_name(node):
                if not (isinstance(node.value, ast.Name) and _is_outside(node.value.id, scope)):
                    yield node
            else:
                yield from _leaves(node.value, scope)
        case ast.Subscript():
            name = dotted_name(node.value)
            if name.endswith("environ"):
                yield node
            elif isinstance(node.slice, ast.Constant | ast.Name):
                yield node
                yield from _leaves(node.slice, scope)
            else:
                yield from _leaves(node.value, scope)
                yield from _leaves(node.slice, scope)
        case ast.Call():
            yield from _of_call(node, scope)
        case ast.JoinedStr():
            for part in node.values:
                yield from _leaves(part, scope)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _leaves(child, scope)


def _of_call(node: ast.Call, scope: Scope) -> Iterator[ast.expr]:
    name = dotted_name(node.func)
    last = name.rpartition(".")[2]
    if name.endswith(evaluate.ENVIRONMENT) or last in evaluate.WORLD:
        yield node
        return
    own = scope.program.code.local_function(node) if scope.program is not None and scope.user else None
    if own is not None or (scope.user and isinstance(node.func, ast.Name) and _is_imported_own(name, scope)):
        yield node
        return
    for part in (*node.args, *(k.value for k in node.keywords)):
        yield from _leaves(part, scope)
    if isinstance(node.func, ast.Attribute):
        yield from _leaves(node.func.value, scope)
    elif isinstance(node.func, ast.Name) and not _is_outside(node.func.id, scope):
        yield node.func


def _is_imported_own(name: str, scope: Scope) -> bool:
    """True if a function comes from a module beside the program: one that torch or the standard library has not."""
    imported = scope.program.code.imports.get(name, "") if scope.program is not None else ""
    return bool(imported) and scope.value(ast.Name(name)) is MISSING and "torch" not in imported


def _is_outside(name: str, scope: Scope) -> bool:
    """True for a name that is imported, built in, or a function or class."""
    value = scope.value(ast.Name(name))
    if value is not MISSING:
        return not scopes.is_plain_value(value)
    if scope.program is None:
        return False
    code = scope.program.code
    bound = {n for s, n in scope.program.bindings if n == name}
    if name in code.imports or name in code.functions or any(c.name == name for c in code.nodes(ast.ClassDef)):
        return not bound or name in code.imports or name in code.functions
    return name in dir(__builtins__) and not bound
