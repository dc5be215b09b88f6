"""Reads the refusal: the tests over the line that raised, or the arguments of the last call into compiled code."""

from __future__ import annotations

import ast
import builtins
import re
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

from dtdebug.account import evaluate, scopes
from dtdebug.account.makers import creation
from dtdebug.account.objects import (
    MISSING,
    class_of_value,
    is_class,
    is_exactly,
    is_tensor,
    item,
    member_of,
    module_dict,
    module_of,
    name_of,
    qualified_name,
    stored,
    stored_in_class,
)
from dtdebug.account.parts import leaves
from dtdebug.account.places import place
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Sources
from dtdebug.account.values import named, one_line
from dtdebug_taxonomy.model.account import MAX_PARAMETERS, NamedValue, Refusal
from dtdebug_taxonomy.source.python.bindings import Binding
from dtdebug_taxonomy.source.python.bindings import leaves as ends_block
from dtdebug_taxonomy.source.python.names import canonical, dotted_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

_TESTS, _VALUES, _PASSES, _WRAPPED = 3, 8, 32, 8
_OPERATORS = {
    ast.MatMult: "torch.matmul",
    ast.Add: "torch.add",
    ast.Sub: "torch.sub",
    ast.Mult: "torch.mul",
    ast.Div: "torch.div",
}

Refused = list[tuple[ast.expr, Scope]]


def refusal_of(stack: Sequence[Scope], own: int, sources: Sources, message: str) -> tuple[Refusal, Refused]:
    """Return what was refused at the stack's end, and the expressions to follow back, the most telling first.

    `own`: index of the user's innermost frame.
    """
    while len(stack) > own + 1 and stack[-1].function == "__getattr__":
        stack = stack[:-1]  # the class has no such attribute: what is refused is the object on the line before
    at, tests, looked = _guard_of(stack, own)
    innermost = stack[-1]
    scope = at if at is not None else innermost
    if at is None and isinstance(innermost.call, ast.AST):
        looked = _operands(innermost.call, innermost)
    spoken = frozenset(re.findall(r"[a-z_]{3,}", message.lower()))
    looked = sorted(looked, key=lambda each: not _is_spoken_of(each, spoken))
    if scope.user:
        looked = sorted(looked, key=lambda each: not _is_nothing(scope.value(each)))
    refused: Refused = [(leaf, scope) for each in looked for leaf in leaves(each, scope)]
    call = stack[own].call
    refusal = Refusal(
        api=api_of(call, stack[own], sources) if own < len(stack) - 1 or at is None else "",
        place=place(scope, ast.Pass(lineno=scope.line)) if not scope.user else None,
        tests=tuple((one_line(ast.unparse(test)), way) for test, way in tests),
        values=_values(looked, scope),
        arguments=_arguments(stack, own) if at is None or own < len(stack) - 1 else (),
        parameters=_parameters(call, stack[own]),
    )
    return refusal, refused


def _parameters(call: ast.AST | None, scope: Scope) -> tuple[str, ...]:
    """Return the names of the parameters of what a line calls, in order, without `self`."""
    if not isinstance(call, ast.Call) or not scope.live:
        return ()
    value, bound = scope.value(call.func), 0
    if value is MISSING and isinstance(call.func, ast.Attribute):
        value, bound = stored_in_class(scope.value(call.func.value), call.func.attr), 1
    elif is_class(value):
        value, bound = member_of(value, "__init__"), 1
    for _ in range(_WRAPPED):
        inner = item(stored(value), "__wrapped__") if type(value) is types.FunctionType else MISSING
        if inner is MISSING:
            break
        value = inner
    if type(value) is not types.FunctionType:
        return ()
    code = value.__code__
    return tuple(map(one_line, code.co_varnames[bound : code.co_argcount + code.co_kwonlyargcount][:MAX_PARAMETERS]))


def _is_spoken_of(node: ast.expr, spoken: frozenset[str]) -> bool:
    """True if the message has the name of a parameter or attribute: `Target 3 is out of bounds`."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.lower() in spoken


def _is_nothing(value: object) -> bool:
    return value is None or (is_exactly(value, (int, float)) and value == 0)


def _guard_of(stack: Sequence[Scope], own: int) -> tuple[Scope | None, list[tuple[ast.expr, bool]], list[ast.expr]]:
    """Return the frame whose tests led to the raise, these with the way each went, and what they looked at."""
    helper = False
    for scope in reversed(stack[own:]):
        found = guards(scope, helper=helper)
        if found is None:
            return None, [], []
        if found:
            looked = [each for test, _ in found for each in _operands(test, scope)]
            return scope, found, looked
        helper = True  # it only raises: the tests are its caller's
    return None, [], []


def guards(scope: Scope, *, helper: bool = False) -> list[tuple[ast.expr, bool]] | None:
    """Return the tests over a line that raises, innermost first; None if it does not raise.

    `helper`: it calls a function that only raises.
    """
    program = scope.program
    if program is None or scope.node is None:
        return [] if helper else None
    at = [
        each
        for each in scopes.statements(scope.node)
        if each.lineno <= scope.line <= (each.end_lineno or 0)
        and (isinstance(each, ast.Raise | ast.Assert) or (helper and not hasattr(each, "body")))
    ]
    if not at:
        return None
    raised = at[-1]
    if isinstance(raised, ast.Raise) and raised.exc is None:
        return None  # raised again: its test is elsewhere
    found: list[tuple[ast.expr, bool]] = [(raised.test, False)] if isinstance(raised, ast.Assert) else []
    inner: ast.AST = raised
    found += _tests_above(program.code.block(raised), raised)
    for up in program.code.ancestors(raised):
        if isinstance(up, (*FUNCTIONS, ast.Lambda, ast.ClassDef)) or len(found) >= _TESTS:
            break
        if isinstance(up, ast.If):
            found.append((up.test, inner in up.body))
        if isinstance(up, ast.stmt):
            found += _tests_above(program.code.block(up), up)
        inner = up
    return found[:_TESTS]


def _tests_above(block: Sequence[ast.stmt], before: ast.stmt) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the tests just above a statement that would have left its block."""
    number = next((n for n, each in enumerate(block) if each is before), 0)
    for each in reversed(block[:number]):
        if not (isinstance(each, ast.If) and ends_block(each.body) and not each.orelse):
            return
        if isinstance(each.body[-1], ast.Raise):
            continue
        yield each.test, False


def _operands(node: ast.AST, scope: Scope) -> list[ast.expr]:
    """Return the operands of a test, or the parts of an expression that failed."""
    match node:
        case ast.BoolOp():
            return [part for each in node.values for part in _operands(each, scope)]
        case ast.UnaryOp():
            return _operands(node.operand, scope)
        case ast.Compare():
            return [each for each in (node.left, *node.comparators) if not isinstance(each, ast.Constant)]
        case ast.Call():
            parts = [*node.args, *(k.value for k in node.keywords)]
            owner = [node.func.value] if isinstance(node.func, ast.Attribute) else [node.func]
            return [part.value if isinstance(part, ast.Starred) else part for part in (*parts, *owner)]
        case ast.Subscript():
            return [node.slice, node.value]
        case ast.Attribute():
            return [node.value]
        case ast.BinOp():
            return [node.left, node.right]
        case ast.expr():
            return [node]
    return []


def _values(looked: Sequence[ast.expr], scope: Scope) -> tuple[NamedValue, ...]:
    """Return the operands with their values, and the names in them."""
    found: dict[str, NamedValue] = {}
    for each in looked:
        for part in (each, *leaves(each, scope)):
            text, value = ast.unparse(part), _gone_through(part, scope)
            if (
                isinstance(part, ast.Constant | ast.List | ast.Tuple)
                or text in (*found, "self")
                or (text in dir(builtins) and text not in scope.local)
                or (value is not MISSING and not scopes.is_plain_value(value))
            ):
                continue
            if value is not MISSING or (not scope.live and part is not each):
                found[text] = named(text, value)
    return tuple(found.values())[:_VALUES]


def _gone_through(node: ast.expr, scope: Scope) -> Any:
    """Return the value of an operand; of a generator that was used up, what it had yielded, worked out again."""
    value, program = scope.value(node), scope.program
    if type(value) is not types.GeneratorType or program is None or not isinstance(node, ast.Name):
        return value
    rows = program.bindings.get((scope.node or program.tree, node.id), ())
    match rows[0].value if len(rows) == 1 else None:
        case ast.GeneratorExp(elt=each, generators=[ast.comprehension(target=ast.Name(id=name), iter=over, ifs=[])]):
            items = scope.value(over)
            if is_exactly(items, (list, tuple)) and len(items) <= _PASSES:
                found = [evaluate.value(each, {**scope.local, name: one}, scope.world) for one in items]
                return value if any(one is MISSING for one in found) else found
    return value


def _arguments(stack: Sequence[Scope], own: int) -> tuple[NamedValue, ...]:
    """Return the arguments of the user's call by the names of the parameters."""
    scope = stack[own]
    call = scope.call
    if not isinstance(call, ast.Call):
        return ()
    called = next((s for s in stack[own + 1 :] if s.parameters or not _passes_on(s)), None)
    given = scopes.bind(call, called) if called is not None else {}
    if not given:
        pairs = [(ast.unparse(each), each) for each in call.args]
        given = dict([*pairs, *((k.arg, k.value) for k in call.keywords if k.arg)])
    found = []
    for name, each in given.items():
        value = scope.value(each)
        if value is MISSING and called is not None and called.program is not None and called.node is not None:
            rows = called.program.bindings.get((called.node, name), ())
            value = called.local.get(name, MISSING) if all(_keeps(row, name) for row in rows) else MISSING
        if value is MISSING or scopes.is_plain_value(value) or is_class(value):
            found.append(named(name, value))
    return tuple(found[:_VALUES])


def _keeps(binding: Binding, name: str) -> bool:
    """True if a parameter is what was passed, also after `x = x if ... else torch.view_as_real(x)`."""
    value = binding.value
    sides = (value.body, value.orelse) if isinstance(value, ast.IfExp) else ()
    return binding.how == "argument" or any(isinstance(each, ast.Name) and each.id == name for each in sides)


def _passes_on(scope: Scope) -> bool:
    """True if a function takes whatever it gets: it only passes that on."""
    node = scope.node
    return isinstance(node, FUNCTIONS) and node.args.vararg is not None


def api_of(call: ast.AST | None, scope: Scope, sources: Sources) -> str:
    """Return the qualified name of what a line of the user's calls."""
    if isinstance(call, ast.BinOp) and is_exactly(call.op, _OPERATORS):
        sides = [scope.value(call.left), scope.value(call.right)]
        return _OPERATORS[type(call.op)] if any(map(is_tensor, sides)) else ""
    if not isinstance(call, ast.Call) or scope.program is None:
        return ""
    func = call.func
    value = scope.value(func)
    if is_class(value):
        return public_name(value)
    if value is not MISSING and scopes.is_plain_value(value):  # a module, or another object that is called
        return public_name(class_of_value(value))
    if isinstance(func, ast.Attribute):
        owner = scope.value(func.value)
        if owner is not MISSING and scopes.is_plain_value(owner):
            return f"{public_name(class_of_value(owner))}.{func.attr}"
    name = scope.program.code.name(func)
    if isinstance(func, ast.Name) and func.id not in scope.program.code.imports:
        return func.id if func.id in dir(builtins) else ""
    if (
        name.partition(".")[0] != dotted_name(func).partition(".")[0]
        or name.partition(".")[0] in scope.program.code.imports
    ):
        return one_line(name)
    made = creation(func.value, scope, sources) if isinstance(func, ast.Attribute) else creation(func, scope, sources)
    maker = made[1].program.code.name(made[0].func) if made is not None and made[1].program is not None else ""
    if "." not in maker:
        return "" if isinstance(func, ast.Attribute) else one_line(name)
    owner = maker if maker.rpartition(".")[2][:1].isupper() else "torch.Tensor" if maker.startswith("torch.") else ""
    return one_line(f"{owner}.{func.attr}" if isinstance(func, ast.Attribute) and owner else owner)


def public_name(kind: type) -> str:
    """Return the shortest name under which a loaded package has a class: `torch.nn.Linear`."""
    name, home = name_of(kind), module_of(kind)
    if home in ("builtins", "__main__"):
        return one_line(name)
    parts = home.split(".")
    for size in range(1, len(parts)):
        package = ".".join(parts[:size])
        if module_dict(sys.modules.get(package)).get(name) is kind:
            return one_line(f"{package}.{name}")
    return one_line(canonical(qualified_name(kind)))
