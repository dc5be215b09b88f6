"""Finds the statement or argument that gave one name, attribute or item its value, one step back."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator, Sequence

from dtdebug.account import scopes
from dtdebug.account.callers import Called, call_into, creation_of, loader_joining_by
from dtdebug.account.expressions import (
    PARSERS,
    destinations,
    entry,
    field_names,
    how_of,
    is_literal,
    packed_item,
    position_in,
    positional,
)
from dtdebug.account.files import writer_of
from dtdebug.account.last_bindings import (
    Making,
    asks_environment,
    cells_around,
    fillings,
    last_bindings,
    making_of_binding,
)
from dtdebug.account.objects import MISSING, bases, class_of_value, is_exactly, module_dict, module_of, name_of
from dtdebug.account.returned import object_of, of_constructor, of_method
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Program, Sources
from dtdebug_taxonomy.model.account import How
from dtdebug_taxonomy.source.python.bindings import Binding
from dtdebug_taxonomy.source.python.names import dotted_name, keyword, last_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

_LAST = 10**9
_FIELDS = frozenset({"dataclass", "define", "frozen", "attrs", "BaseModel", "BaseSettings", "NamedTuple", "Struct"})
_STEPS = 6
"""Maximum number of names between an object and the call that made it."""
SCALARS = (bool, int, float, str, type(None))


def makings(node: ast.expr, scope: Scope, sources: Sources) -> Iterator[Making]:
    """Yield what made the value of a name, attribute or item; several where it was changed after it was made."""
    if scope.program is None:
        return
    if isinstance(node, ast.Name):
        yield from _of_name(node.id, scope, sources)
    elif isinstance(node, ast.Attribute):
        yield from _of_attribute(node, scope, sources)
    elif isinstance(node, ast.Subscript):
        yield from _of_item(node, scope, sources)


def _of_name(name: str, scope: Scope, sources: Sources) -> Iterator[Making]:
    program = scope.program
    if program is None:
        return
    home = scope.node or program.tree
    found = list(last_bindings(name, home, scope))
    if found:
        yield from found
        return
    if (own := scopes.parameter(scope, name)) is not None:
        yield from _of_argument(name, own, scope, sources)
        return
    if home is not program.tree:
        for outer in list(program.code.scopes(home))[:8]:
            if outer is home or isinstance(outer, ast.ClassDef):
                continue
            around = next((s for s in scope.callers if s.node is outer), None) or _around(scope, outer)
            rows = list(last_bindings(name, outer, around))
            if rows:
                yield from rows
                return
            if (own := scopes.parameter(around, name)) is not None:
                yield from _of_argument(name, own, around, sources)
                return
    for cell in cells_around(scope):
        for made in last_bindings(name, cell.node or ast.Module([], []), cell):
            yield made
            return
    yield from _of_import(name, scope, sources)


def _around(scope: Scope, outer: ast.AST) -> Scope:
    """Return the scope of a function or module around another, whose frame is not on the stack."""
    program = scope.program
    top = program is not None and outer is program.tree
    name = "" if top else getattr(outer, "name", "")
    return Scope(scope.file, _LAST, name, program=program, node=outer, live=scope.live,
                 local=scope.world if top else scope.local, world=scope.world, reached=_LAST)  # fmt: skip


def _of_argument(name: str, own: ast.arg, scope: Scope, sources: Sources) -> Iterator[Making]:
    """Yield the argument that a parameter got: of the caller, of the command line, or its default."""
    if (loader := loader_joining_by(scope, sources)) is not None:
        yield Making("loop", loader[0], loader[1], loader[0], (loader[0],))
        return
    came = scopes.argument(scope, name)
    if came is None and (started := call_into(scope, sources)) is not None:
        found = scopes.bind(started[0], scope).get(name)
        came = (found, started[1]) if found is not None else None
    if came is not None:
        yield _making_of(*came)
        return
    node = scope.node
    for decorator in node.decorator_list if isinstance(node, FUNCTIONS) else ():
        if isinstance(decorator, ast.Call) and name in destinations(decorator):
            yield Making("option", decorator, scope, None)
            return
    given_default = scopes.default(scope, name)
    if given_default is not None:
        last = dotted_name(given_default.func) if isinstance(given_default, ast.Call) else ""
        option = last.endswith(("Option", "Argument"))
        yield Making("option" if option else "default", own, scope, given_default)


def _making_of(node: ast.expr, caller: Scope) -> Making:
    how: How = "environment" if asks_environment(node, caller) else "literal" if is_literal(node) else "passed"
    return Making(how, node, caller, node, (node,))


def option_of(node: ast.Attribute, scope: Scope, sources: Sources) -> Making | None:
    """Return the `add_argument` of an attribute of parsed options."""
    value = scope.value(node.value)
    made = None
    if value is not MISSING:
        kind = class_of_value(value)
        if f"{module_of(kind)}.{name_of(kind)}" != "argparse.Namespace":
            return None
    else:
        made = creation(node.value, scope, sources)
        if made is None or dotted_name(made[0].func).rpartition(".")[2] not in PARSERS:
            parser = isinstance(made[0].func, ast.Attribute) and made[0].func.attr in PARSERS if made else False
            if not parser:
                return None
    made = made or creation(node.value, scope, sources)
    homes = [made[1]] if made is not None else []
    for home in (*homes, scope, *scope.callers):
        if home.program is None:
            continue
        for call in home.program.code.methods("add_argument"):
            if node.attr in destinations(call):
                where = Scope(home.file, _LAST, "", program=home.program, node=home.program.code.scope(call))
                return Making("option", call, where, None)
    return None


def _of_attribute(node: ast.Attribute, scope: Scope, sources: Sources) -> Iterator[Making]:
    written = dotted_name(node)
    program = scope.program
    if program is None:
        return
    if written and scope.node is not None and not (scope.user and written.startswith(("self.", "cls."))):
        found = list(last_bindings(written, scope.node, scope))
        if found:
            yield from found
            return
    if not scope.user:
        yield from _of_library(node, scope, sources)
        return
    option = option_of(node, scope, sources)
    if option is not None:
        yield option
        return
    owner = scope.value(node.value)
    imported = program.code.imports.get(dotted_name(node.value), "")
    if (owner is not MISSING and module_dict(owner)) or imported:
        other = sources.of_module(imported, scope.file) if imported else None
        if other is not None:
            yield from last_bindings(node.attr, other.tree, _module_scope(other))
        return
    home = of_class(node.value, scope, sources)
    if home is not None:
        yield from _of_field(node, home[0], home[1], scope, sources)
    elif owner is not MISSING and scopes.is_plain_value(owner) and scope.value(node) is not MISSING:
        made = creation(node.value, scope, sources)
        given = made and (keyword(made[0], node.attr) or _by_position(made[0], type(owner), node.attr))
        if made and given:
            yield _making_of(given, made[1])


def _of_library(node: ast.Attribute, scope: Scope, sources: Sources) -> Iterator[Making]:
    """Yield what an attribute of a library's object was made of: an argument of that name where the program made it."""
    owner = scope.value(node.value)
    if owner is MISSING or not scopes.is_plain_value(owner):
        return
    for caller in scope.callers:
        if not caller.user or (written := _name_of(owner, caller)) is None:
            continue
        made = creation(written, caller, sources)
        given = made and (keyword(made[0], node.attr) or _by_position(made[0], type(owner), node.attr))
        if made and given:
            yield _making_of(given, made[1])
        return


def _name_of(owner: object, scope: Scope) -> ast.expr | None:
    """Return the expression by which a frame calls an object."""
    inside = ast.walk(scope.call) if isinstance(scope.call, ast.AST) else ()
    for node in inside:
        if isinstance(node, ast.Name | ast.Attribute) and scope.value(node) is owner:
            return node
    found = next((name for name, value in scope.local.items() if value is owner), None)
    return ast.Name(found, lineno=scope.line) if found is not None else None


def _by_position(call: ast.Call, kind: type, name: str) -> ast.expr | None:
    """Return a positional argument of a class by the parameters of its `__init__`."""
    for each in bases(kind):
        function = type.__dict__["__dict__"].__get__(each).get("__init__")
        if type(function) is types.FunctionType:
            names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
            number = names.index(name) if name in names else _LAST
            return call.args[number] if number < len(call.args) else None
    return None


def _module_scope(program: Program) -> Scope:
    return Scope(program.file, _LAST, "<module>", program=program, node=program.tree)


def of_class(node: ast.expr, scope: Scope, sources: Sources) -> tuple[Scope, ast.ClassDef] | None:
    """Return the class of an object of the program, and the file that defines it as a scope."""
    program = scope.program
    if program is None:
        return None
    value = scope.value(node)
    name, module = "", ""
    if value is not MISSING:
        kind = class_of_value(value)
        name, module = name_of(kind), module_of(kind)
    elif dotted_name(node) in ("self", "cls") and scope.node is not None:
        own = program.code.class_of(scope.node)
        return (scope, own) if own is not None else None
    else:
        made = creation(node, scope, sources)
        if made is not None:
            name, scope = dotted_name(made[0].func), made[1]
            program = scope.program or program
            module = program.code.imports.get(name.partition(".")[0], "").rpartition(".")[0]
            name = name.rpartition(".")[2]
    if not name:
        return None
    others = [s.program for s in scope.callers if s.user and s.program is not None]
    imported = sources.of_module(module, scope.file) if module and module != "__main__" else None
    for each in dict.fromkeys((program, *others, *([imported] if imported is not None else []))):
        for defined in each.code.nodes(ast.ClassDef):
            if defined.name == name:
                return (scope if each is scope.program else _module_scope(each)), defined
    return None


def _of_field(
    node: ast.Attribute, home: Scope, defined: ast.ClassDef, scope: Scope, sources: Sources
) -> Iterator[Making]:
    """Yield where an object of the program got an attribute: `self.x =` of its class, or a field."""
    program = home.program
    if program is None:
        return
    made = creation(node.value, scope, sources)
    if made is not None and dotted_name(made[0].func).rpartition(".")[2] != defined.name and not _is_cls(made, defined):
        made = None
    made = made or creation_of(defined, program, scope, sources)
    value = scope.value(node)
    rows = [row for row in program.bindings.get((defined, f"self.{node.attr}"), ()) if row.how != "argument"]
    rows = rows or _registered(node.attr, defined, program)
    rows = [row for row in rows if not _is_other(row.value, value)]
    first = [row for row in rows if getattr(program.code.function(row.node), "name", "") in ("__init__", "setup")]
    for row in (first or rows)[-1:]:
        method = program.code.function(row.node) or program.tree
        inside = next((s for s in scope.callers if s.node is method), None)
        name = getattr(method, "name", "")
        kept = of_constructor(method, program, scope.value(node.value))
        where = Scope(home.file, getattr(row.node, "lineno", _LAST), name, program=program, node=method,
                      local=kept, callers=inside.callers if inside is not None else (),
                      bound=made if name == "__init__" else None)  # fmt: skip
        name = f"self.{node.attr}"
        found = next(iter(fillings(name, row, where)), None) or making_of_binding(name, row, where)
        yield found._replace(how="attribute" if found.how in ("assigned", "called") else found.how)
        return
    if (worked_out := _of_property(node, home, defined, scope)) is not None:
        yield worked_out
        return
    rows = program.bindings.get((defined, node.attr), [])
    given = _given_to(made, node.attr, defined, rows) if made is not None else None
    if made is not None and given is not None:
        yield _making_of(given, made[1])
        return
    if (bare := _bare_field(node, home, defined, scope)) is not None:
        yield bare
        return
    for row in rows:
        if row.how == "assign" and not _is_other(row.value, value):
            yield Making("default", row.node, Scope(home.file, _LAST, "", program=program, node=defined), row.value)
            return
    for base in defined.bases:
        for other in program.code.nodes(ast.ClassDef):
            if other.name == dotted_name(base).rpartition(".")[2] and other is not defined:
                yield from _of_field(node, home, other, scope, sources)
                return


def _registered(name: str, defined: ast.ClassDef, program: Program) -> list[Binding]:
    """Return the calls by which a module got a buffer or parameter of a name."""
    return [
        Binding(call, call.args[1], "assign")
        for call in program.code.methods("register_buffer", "register_parameter")
        if len(call.args) > 1 and program.code.class_of(call) is defined
        and isinstance(call.args[0], ast.Constant) and call.args[0].value == name
    ]  # fmt: skip


def _given_to(made: Called, name: str, defined: ast.ClassDef, rows: Sequence[Binding]) -> ast.expr | None:
    """Return the argument by which a call that made an object gave it a field."""
    if not _has_fields(defined) or not (rows or name in field_names(defined)):
        return None
    given = keyword(made[0], name) or positional(made[0], defined, name)
    packed = packed_item(made[0], name) if given is None else None
    has_default = any(row.how == "assign" for row in rows)
    return packed if packed is not None and (not has_default or made[1].value(packed) is not MISSING) else given


def _is_cls(made: tuple[ast.Call, Scope], defined: ast.ClassDef) -> bool:
    """True if a class method of a class calls `cls`."""
    call, scope = made
    around = scope.program.code.class_of(scope.node) if scope.program is not None and scope.node is not None else None
    return isinstance(call.func, ast.Name) and call.func.id == "cls" and around is defined


def _is_other(written: ast.expr | None, value: object) -> bool:
    """True if a literal can't have given a value that is known; containers may have been changed since."""
    if value is MISSING or written is None or not is_literal(written):
        return False
    try:
        literal = ast.literal_eval(written)
    except ValueError:
        return False
    if is_exactly(literal, (list, dict, set)) or not is_exactly(value, SCALARS):
        return type(literal) is not type(value)
    return type(literal) is not type(value) or literal != value


def _of_property(node: ast.Attribute, home: Scope, defined: ast.ClassDef, scope: Scope) -> Making | None:
    """Return what a property returns."""
    own = object_of(scope.value(node.value))
    for each in defined.body:
        last = each.body[-1] if isinstance(each, FUNCTIONS) and each.name == node.attr else None
        if isinstance(last, ast.Return) and last.value is not None:
            inside = Scope(
                home.file, last.lineno, node.attr, program=home.program, node=each, live=scope.live, local=own
            )
            return Making("returned", last, inside, last.value, (last.value,))
    return None


def _bare_field(node: ast.Attribute, home: Scope, defined: ast.ClassDef, scope: Scope) -> Making | None:
    """Return the line of a field that has no default, for an object whose making is not found."""
    if dotted_name(node.value) != "self" or scope.function == "__init__" or not object_of(scope.value(node.value)):
        return None
    for each in defined.body:
        if isinstance(each, ast.AnnAssign) and each.value is None and dotted_name(each.target) == node.attr:
            return Making("attribute", each, Scope(home.file, _LAST, "", program=home.program, node=defined))
    return None


def _has_fields(defined: ast.ClassDef) -> bool:
    """True if the arguments of a class are its annotated names."""
    decorators = (each.func if isinstance(each, ast.Call) else each for each in defined.decorator_list)
    names = [dotted_name(each).rpartition(".")[2] for each in (*decorators, *defined.bases)]
    return any(name in _FIELDS for name in names)


def creation(
    node: ast.expr | None, scope: Scope, sources: Sources, steps: int = _STEPS, position: int | None = None
) -> tuple[ast.Call, Scope] | None:
    """Return the call that made an object, through names, arguments and own functions.

    `position`: its number among those that a function returns.
    """
    if node is None or not steps or scope.program is None:
        return None
    if isinstance(node, ast.Call):
        factory = keyword(node, "default_factory")
        if isinstance(factory, ast.Name):
            return ast.Call(factory, [], []), scope
        if _function_called(node, scope, sources) is None:
            return node, scope
        returned = _find_return(node, scope, sources)
        if returned is None:
            return None
        last, inside = returned
        if isinstance(last, ast.Tuple) and position is not None and position < len(last.elts):
            last = last.elts[position]
        return creation(last, inside, sources, steps - 1)
    if isinstance(node, ast.Tuple | ast.List):
        return None
    for made in makings(node, scope, sources):
        targets = made.node.targets if isinstance(made.node, ast.Assign) and isinstance(node, ast.Name) else ()
        at = next((n for each in targets if (n := position_in(ast.unparse(node), each)) is not None), None)
        value = made.node.value if at is not None and isinstance(made.node, ast.Assign) else made.value
        return creation(value, made.scope, sources, steps - 1, at)
    return None


def _of_import(name: str, scope: Scope, sources: Sources) -> Iterator[Making]:
    """Yield what a module of the program assigned to a name that is imported from it."""
    imported = scope.program.code.imports.get(name, "") if scope.program is not None else ""
    module, _, last = imported.rpartition(".")
    other = sources.of_module(module, scope.file) if module else None
    if other is not None:
        yield from last_bindings(last, other.tree, _module_scope(other))


def _of_item(node: ast.Subscript, scope: Scope, sources: Sources) -> Iterator[Making]:
    """Yield what made one item of a dictionary or list: its entry in the literal, or an assignment to it."""
    program = scope.program
    if program is None:
        return
    if dotted_name(node.value).endswith("environ"):
        yield Making("environment", node, scope, None)
        return
    text = ast.unparse(node)
    home = scope.node or program.tree
    for assign in reversed(program.code.nodes(ast.Assign)):
        same = any(isinstance(t, ast.Subscript) and ast.unparse(t) == text for t in assign.targets)
        if same and assign.lineno < scope.line and program.code.scope(assign) in (home, program.tree):
            yield Making(how_of(assign.value), assign, scope, assign.value, (assign.value,))
            return
    key = node.slice.value if isinstance(node.slice, ast.Constant) else scope.value(node.slice)
    found = _container(node.value, scope, sources)
    part = entry(found[0], key) if found is not None else None
    if found is not None and part is not None and not _is_other(part, scope.value(node)):
        owner = next(makings(node.value, scope, sources), None)
        saved = owner is not None and owner.how == "file"
        yield Making(
            "literal" if is_literal(part) else "file" if saved else how_of(part), part, found[1], part, (part,)
        )


def _container(node: ast.expr, scope: Scope, sources: Sources, steps: int = _STEPS) -> tuple[ast.expr, Scope] | None:
    """Return the literal of a dictionary or list behind a name, through names, arguments and files."""
    node = _find_copied(node)
    if isinstance(node, ast.Dict | ast.List | ast.Tuple):
        return node, scope
    if isinstance(node, ast.Call):
        inside = (_find_return(node, scope, sources) or _find_written(node, scope, sources)) if steps else None
        return _container(*inside, sources, steps - 1) if inside is not None else (node, scope)
    for made in makings(node, scope, sources) if steps else ():
        return _container(made.value, made.scope, sources, steps - 1) if made.value is not None else None
    return None


def _find_copied(node: ast.expr) -> ast.expr:
    """Return what an expression copies: `dict(x)`, `copy.deepcopy(x)`, `x.copy()`."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="copy"), args=[]):
            return inner
        case ast.Call(args=[inner], keywords=[]) if last_name(node) in ("dict", "list", "tuple", "copy", "deepcopy"):
            return inner
    return node


def _find_return(call: ast.Call, scope: Scope, sources: Sources) -> tuple[ast.expr, Scope] | None:
    """Return what the last line of a function of the program returns, with the scope of the call."""
    entered = _function_called(call, scope, sources)
    if entered is None or not isinstance(entered.node, FUNCTIONS):
        return None
    returned = [s.value for s in scopes.statements(entered.node) if isinstance(s, ast.Return)]
    return (returned[-1], entered) if returned and returned[-1] is not None else None


def _find_written(call: ast.Call, scope: Scope, sources: Sources) -> tuple[ast.expr, Scope] | None:
    """Return what the program wrote to the file that a call reads."""
    written = writer_of(Making("file", call, scope, call), sources)
    return (written.value, written.scope) if written is not None and written.value is not None else None


def _function_called(call: ast.Call, scope: Scope, sources: Sources) -> Scope | None:
    """Return a function of the program that a call enters, of this file or imported from another, as a scope."""
    if scope.program is None:
        return None
    function, program = scope.program.code.local_function(call), scope.program
    if function is None:
        module, _, last = scope.program.code.imports.get(dotted_name(call.func), "").rpartition(".")
        other = sources.of_module(module, scope.file) if module else None
        found = other.code.functions.get(last, []) if other is not None else []
        if other is None or len(found) != 1:
            return None
        function, program = found[0], other
    return entered_call(Scope(program.file, 0, "", program=program), function, call, scope)


def entered_call(home: Scope, function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call, caller: Scope) -> Scope:
    """Return the scope of a function that a call entered and that has returned."""
    last = function.end_lineno or function.lineno
    scope = Scope(home.file, last + 1, function.name, program=home.program, node=function, bound=(call, caller),
                  world=home.world)  # fmt: skip
    if caller.local:
        given = {name: caller.value(node) for name, node in scopes.bind(call, scope).items()}
        given = {name: value for name, value in given.items() if is_exactly(value, (int, float, bool, str, dict))}
        scope.local = of_method(call, function, home.program, caller) | given
    return scope
