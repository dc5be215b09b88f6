"""Losses over the output of `all_gather`, in which the rank's own part was not put back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.names import DIST
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code, Function

_GATHERS = {DIST + "all_gather": ("tensor_list", 0), DIST + "all_gather_into_tensor": ("output_tensor", 0)}
_LOSS = re.compile(r"(loss|criterion|cross_entropy|cosine_similarity|mse|nll|kl_div|triplet|^logits$)", re.IGNORECASE)
_PRODUCTS = {"matmul", "mm", "bmm", "einsum", "cosine_similarity", "cdist"}
_EVALUATES = re.compile(
    r"eval|valid|test|metric|infer|predict|log|accuracy|queue|retriev|concat_all_gather", re.IGNORECASE
)


def check(code: Code) -> Iterator[Hit]:
    """Reports the gather."""
    if "no_grad" not in code.text and not code.methods("backward") and "oss" not in code.text:
        return
    if "distributed.nn" in code.text:  # gathers that carry the gradient, where that is wanted
        return
    for call in code.calls(*_GATHERS):
        home = code.function(call)
        name = code.name(call.func)
        output = dotted(code.argument(call, *_GATHERS[name]))
        if home is None or not output or _without_gradient(code, call, home) or _put_back(code, home, output):
            continue
        if _meets_loss(code, home, {output}, after=call) or _returned_to_loss(code, home, output, call):
            yield Hit(
                code.span(call),
                f"{name.removeprefix(DIST)}() gives tensors without gradient, and they go into a loss: "
                "no rank learns from its own features there.",
            )


def _without_gradient(code: Code, call: ast.AST, home: Function) -> bool:
    if _EVALUATES.search(home.name) or any(a.arg == "ctx" for a in home.args.args):
        return True
    marks = [*home.decorator_list]
    marks += [i.context_expr for up in code.ancestors(call) if isinstance(up, ast.With) for i in up.items]
    return any(re.search("no_grad|inference_mode", code.source_of(m)) for m in marks)


def _put_back(code: Code, home: Function, output: str) -> bool:
    """`out[rank] = x`, or a list joined from the parts before and after the own one."""
    for assign in code.inside(home, ast.Assign):
        if any(isinstance(t, ast.Subscript) and dotted(t.value) == output for t in assign.targets):
            return True
    return any(
        isinstance(add.op, ast.Add) and any(dotted(s.value) == output for s in code.inside(add, ast.Subscript))
        for add in code.inside(home, ast.BinOp)
    )


def _uses(code: Code, node: ast.AST, names: set[str]) -> bool:
    return any(n.id in names for n in code.inside(node, ast.Name)) or any(
        dotted(n) in names for n in code.inside(node, ast.Attribute)
    )


def _meets_loss(code: Code, home: Function, names: set[str], after: ast.AST) -> bool:
    """Whether something made of these names is multiplied, or given to a loss, further down."""
    found = set(names)
    own = [n for n in code.inside(home, ast.Assign) if code.order[n] > code.order[after] and code.function(n) is home]
    for assign in sorted(own, key=code.order.__getitem__):
        if _uses(code, assign.value, found) and not isinstance(assign.value, ast.Attribute | ast.Constant):
            if re.search(r"\.(detach|item|shape|size|argmax|topk)\b", code.source_of(assign.value)):
                continue
            found |= {n.id for t in assign.targets for n in code.inside(t, ast.Name)}
    for product in code.inside(home, ast.BinOp):
        if (
            isinstance(product.op, ast.MatMult)
            and code.order[product] > code.order[after]
            and _uses(code, product, found)
        ):
            return _is_training(code, home)
    for call in code.inside(home, ast.Call):
        last = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
        if code.order[call] < code.order[after] or not (last in _PRODUCTS or _LOSS.search(last)):
            continue
        if any(_uses(code, a, found) for a in (*call.args, *call.keywords)):
            return _is_training(code, home)
    return False


def _is_training(code: Code, home: Function) -> bool:
    """A loss by its name, or by the backward pass beside it."""
    around = code.class_of(home)
    named = home.name + (around.name if around else "")
    return bool(_LOSS.search(named) or re.search("oss|backward|train|logits", code.source_of(home)))


def _returned_to_loss(code: Code, home: Function, output: str, gather: ast.Call) -> bool:
    found = {output}
    for assign in code.inside(home, ast.Assign):
        if code.order[assign] > code.order[gather] and _uses(code, assign.value, found):
            found |= {n.id for t in assign.targets for n in code.inside(t, ast.Name)}
    if not any(r.value is not None and _uses(code, r.value, found) for r in code.inside(home, ast.Return)):
        return False
    for call in code.callers.get(home, ()):
        there, up = code.function(call), code.statement(call)
        if there is None or _without_gradient(code, call, there) or not isinstance(up, ast.Assign):
            continue
        names = {n.id for t in up.targets for n in code.inside(t, ast.Name)}
        if _meets_loss(code, there, names, after=call):
            return True
    return False
