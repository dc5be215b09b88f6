"""Models with all parameters frozen when they are wrapped, which DistributedDataParallel refuses."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.wrapping import DDPS
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_HARMLESS = {"to", "eval", "train", "cuda", "parameters", "named_parameters"}


def check(code: Code) -> Iterator[Hit]:
    """Report the call that wraps."""
    wraps = code.calls(*DDPS)
    if not wraps or code.role == "test":
        return
    frozen = sorted(_frozen(code), key=lambda f: code.order[f[0]])
    for wrap in wraps:
        model = dotted_name(code.argument(wrap, "module", 0))
        if not model:
            continue
        before = [f for f in frozen if f[1] == model and code.function(f[0]) is code.function(wrap)]
        before += [f for f in before if _around_again(code, f[0], wrap)]
        last = next((f for f in reversed(before) if _comes_first(code, f[0], wrap)), None)
        if last is None or _is_changed(code, model, last[0], wrap):
            continue
        line = code.text.place(code.span(last[0]).start).line
        yield Hit(
            code.span(wrap),
            f'All parameters of {model} are frozen at line {line}: DistributedDataParallel ends with "not needed when '
            "a module doesn't have any parameters that require a gradient\".",
        )


def _frozen(code: Code) -> Iterator[tuple[ast.stmt, str]]:
    """Yield the statements that freeze a whole model, with its name: `m.requires_grad_(False)`, a loop."""
    for call in code.methods("requires_grad_"):
        value = code.constant(code.argument(call, "requires_grad", 0))
        owner = dotted_name(call.func.value)  # type: ignore[attr-defined]
        if value is False and owner and isinstance(code.parent.get(call), ast.Expr):
            yield code.statement(call), owner
    for loop in code.nodes(ast.For):
        iterated = loop.iter
        if not (isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Attribute)):
            continue
        if iterated.func.attr != "parameters" or not isinstance(loop.target, ast.Name) or len(loop.body) != 1:
            continue
        only = loop.body[0]
        if (
            isinstance(only, ast.Assign)
            and dotted_name(only.targets[0]) == f"{loop.target.id}.requires_grad"
            and isinstance(only.value, ast.Constant)
            and only.value.value is False
        ):
            yield loop, dotted_name(iterated.func.value)


def _comes_first(code: Code, first: ast.stmt, wrap: ast.Call) -> bool:
    if code.order[first] < code.order[wrap]:
        return surely_before(code, first, wrap) is True
    return _around_again(code, first, wrap)


def _around_again(code: Code, first: ast.stmt, wrap: ast.Call) -> bool:
    """True if a loop's next iteration runs the wrap after the freezing."""
    loops = {a for a in code.ancestors(wrap) if isinstance(a, ast.For | ast.While)}
    inner = next((a for a in code.ancestors(first) if isinstance(a, ast.For | ast.While | ast.If)), None)
    return code.order[first] > code.order[wrap] and inner in loops


def _is_changed(code: Code, model: str, first: ast.stmt, wrap: ast.Call) -> bool:
    """True if the model is recreated, or a part of it unfrozen, before the wrap."""
    low, high = code.order[first], code.order[wrap]
    again = low > high
    loop = next((a for a in code.ancestors(wrap) if isinstance(a, ast.For | ast.While)), None)
    ours = {*ast.walk(first), code.statement(wrap)}

    def between(node: ast.AST) -> bool:
        at = code.order[node]
        if node in ours:
            return False
        if not again:
            return low < at < high
        return loop is not None and any(a is loop for a in code.ancestors(node))

    root = model.partition(".")[0]
    for assign in code.nodes(ast.Assign):
        targets = {dotted_name(t).partition(".")[0] for t in assign.targets}
        grad = any(dotted_name(t).endswith("requires_grad") for t in assign.targets)
        thaws = grad and not (isinstance(assign.value, ast.Constant) and assign.value.value is False)
        if (thaws or (root in targets and not grad)) and between(assign):
            return True
    for call in code.nodes(ast.Call):
        if between(call) and call is not wrap and any(root == dotted_name(a).partition(".")[0] for a in call.args):
            return True  # a function that may add parameters, such as an adapter
        if isinstance(call.func, ast.Attribute) and between(call):
            last, owner = call.func.attr, dotted_name(call.func.value)
            thaws = last == "requires_grad_" and code.constant(code.argument(call, "requires_grad", 0)) is not False
            if thaws or (owner == model and last not in _HARMLESS):
                return True
    return False
