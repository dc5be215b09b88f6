"""Parameters that are frozen after the wrapper has registered their gradients."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.course import Step, Thing, courses
from dtdebug_taxonomy.checks.shared.wrapping import DDPS, Wrap, asks_wrap, bare_before, wrap_of
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_MESSAGE = (
    "Parameters are frozen after DistributedDataParallel took them: it still waits for their gradients, and "
    "the next step fails with 'Expected to have finished reduction in the prior iteration'."
)
_LISTS = {"parameters", "named_parameters", "children", "modules", "named_children", "named_modules"}


def check(code: Code) -> Iterator[Hit]:
    """Report the statement that freezes."""
    if not code.calls(*DDPS):
        return
    seen: set[ast.AST] = set()
    for node, owner, partial in _freezes(code):
        found = _find_wrap(code, owner)
        if found is None:
            continue
        wrap, part = found
        if (
            not (part or partial)
            or asks_wrap(code, node, wrap)
            or _tolerates(code, wrap)
            or _is_unfrozen(code, owner, node)
        ):
            continue
        if _wrapped_later(code, node, owner):
            continue
        seen.add(node)
        yield Hit(code.span(node), _MESSAGE)
    yield from _by_methods(code, seen)


def _by_methods(code: Code, seen: set[ast.AST]) -> Iterator[Hit]:
    """Report calls of functions that freeze a part of a wrapped model."""
    for steps in courses(code):
        changes = [s for s in steps if _sets_requires_grad(s) and s.on is not None]
        wraps = [(n, s) for n, s in enumerate(steps) if s.name in DDPS and s.given]
        for at, wrap in wraps if changes else ():
            model = wrap.given[0]
            own = [s for s in changes if _is_part(s.on, model)]
            first = next((s for s in own if steps.index(s) > at), None)
            if first is None or wrap.code is not code or not all(map(_freezes_by, own)) or own[0] is not first:
                continue  # alternates, or was frozen before
            if _tolerates(code, Wrap(wrap.node, True, code)) or first.excludes(wrap):  # type: ignore[arg-type]
                continue
            if any(n > at and w.given[0] is model for n, w in wraps) or not first.calls:
                continue
            node = first.seen_beside(wrap, code)
            if isinstance(node, ast.Call) and not {node, *(s.node for s in own)} & seen:
                seen.add(node)
                yield Hit(code.span(node), _MESSAGE)


def _sets_requires_grad(step: Step) -> bool:
    return step.attribute in {"requires_grad", "requires_grad_"}


def _freezes_by(step: Step) -> bool:
    """True if a step freezes what it sets."""
    node = step.node
    given = node.value if isinstance(node, ast.Assign) else step.code.argument(node, "requires_grad", 0)  # type: ignore[arg-type]
    return _is_false(given)


def _is_part(of: Thing | None, model: Thing) -> bool:
    """True if something belongs to a part of a model, not to all of it."""
    lineage = of.lineage() if of is not None else []
    return model in lineage and any(t.owner is model for t in lineage)


def _freezes(code: Code) -> Iterator[tuple[ast.AST, ast.expr, bool]]:
    """Yield (statement or call that freezes, owner of the parameters, whether it freezes only some)."""
    for assign in code.nodes(ast.Assign):
        for target in assign.targets:
            if isinstance(target, ast.Attribute) and target.attr == "requires_grad" and _is_false(assign.value):
                yield from _of_item(code, assign, target.value)
    for call in code.methods("requires_grad_"):
        func = call.func
        if not isinstance(func, ast.Attribute) or not _is_false(code.argument(call, "requires_grad", 0)):
            continue
        items = list(_of_item(code, call, func.value))
        yield from items
        if not items:
            yield call, func.value, False


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _of_item(code: Code, node: ast.AST, item: ast.expr) -> Iterator[tuple[ast.AST, ast.expr, bool]]:
    """Yield the owner of `p` in `for p in owner.parameters()` or `named_parameters()`, or of `owner.weight`."""
    name = dotted_name(item)
    loops = [
        *(a for a in code.ancestors(node) if isinstance(a, ast.For)),
        *(g for a in code.ancestors(node) if isinstance(a, ast.ListComp) for g in a.generators),
    ]
    for up in loops:
        names = (
            [dotted_name(e) for e in up.target.elts] if isinstance(up.target, ast.Tuple) else [dotted_name(up.target)]
        )
        if name not in names:
            continue
        lists = up.iter
        if isinstance(lists, ast.Call) and isinstance(lists.func, ast.Attribute) and lists.func.attr in _LISTS:
            conditional = any(isinstance(a, ast.If) for a in _between(code, node, up)) or bool(getattr(up, "ifs", ()))
            yield node, lists.func.value, conditional
        elif isinstance(lists, ast.Call) and lists.args:
            yield from _of_list(node, lists.args[0])
        return
    if isinstance(node, ast.Assign) and isinstance(item, ast.Attribute) and name:
        yield node, item.value, True


def _of_list(node: ast.AST, lists: ast.expr) -> Iterator[tuple[ast.AST, ast.expr, bool]]:
    """Yield the owner in `list(owner.parameters())[:5]` and the like."""
    if isinstance(lists, ast.Call) and isinstance(lists.func, ast.Attribute) and lists.func.attr in _LISTS:
        yield node, lists.func.value, True


def _between(code: Code, node: ast.AST, up: ast.AST) -> Iterator[ast.AST]:
    for a in code.ancestors(node):
        if a is up:
            return
        yield a


def _find_wrap(code: Code, owner: ast.expr) -> tuple[Wrap, bool] | None:
    """Return the wrap of the model that owns parameters, and whether they are those of a part of it."""
    part = False
    node = owner
    while True:
        wrap = wrap_of(code, node, DDPS) or bare_before(code, node, DDPS)
        if wrap is not None:
            return wrap, part
        if isinstance(node, ast.Subscript):
            node, part = node.value, True
        elif isinstance(node, ast.Attribute):
            node, part = node.value, part or node.attr != "module"
        else:
            found = _source(code, node)
            if found is None:
                return None
            node, part = found, True


def _source(code: Code, node: ast.expr) -> ast.expr | None:
    """Return the model that a name is a part of: a layer of a loop, or the value of the only call's argument."""
    bindings = code.bound(node) if isinstance(node, ast.Name) else []
    if len(bindings) != 1 or bindings[0].value is None or bindings[0].value is node:
        return None
    value = bindings[0].value
    if bindings[0].how == "loop":
        func = value.func if isinstance(value, ast.Call) else None
        return func.value if isinstance(func, ast.Attribute) else None if func is not None else value
    return value if isinstance(bindings[0].node, ast.arg) and dotted_name(value) else None


def _tolerates(code: Code, wrap: Wrap) -> bool:
    unused = wrap.home.argument(wrap.call, "find_unused_parameters", 7)
    return (unused is not None and not _is_false(unused)) or wrap.home.has_unpacking(wrap.call)


def _is_unfrozen(code: Code, owner: ast.expr, node: ast.AST) -> bool:
    """True if the program also unfreezes these parameters: they alternate, as in GANs."""
    name = dotted_name(owner).removesuffix(".module")
    for other in [*code.nodes(ast.Assign), *code.methods("requires_grad_")]:
        text = code.source_of(other)
        if "requires_grad" not in text or "False" in text or "True" not in text:
            continue
        loop = next((a for a in code.ancestors(other) if isinstance(a, ast.For)), other)
        first = loop.iter if isinstance(loop, ast.For) else other
        if name and code.source_of(first).startswith(name):
            return True
    return False


def _wrapped_later(code: Code, node: ast.AST, owner: ast.expr) -> bool:
    """True if the model is unwrapped and wrapped again later."""
    root = dotted_name(owner).split(".module", 1)[0] or dotted_name(owner)
    return any(
        code.order[call] > code.order[node]
        and (inner := code.argument(call, "module", 0)) is not None
        and dotted_name(inner).split(".module", 1)[0] == root
        for call in code.calls(*DDPS)
    )
