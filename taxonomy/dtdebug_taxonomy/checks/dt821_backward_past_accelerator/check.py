"""`loss.backward()` for a model that Accelerate has prepared."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import SCOPES

_MAKER = "accelerate.Accelerator"
_BACKENDS = re.compile(r"accelerator|^acc$|fabric|engine|manager|strategy|^amp$|scaler", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the call."""
    if not code.calls(_MAKER) or code.role == "test":
        return
    prepared = _prepared_names(code)
    if not prepared:
        return
    for call in code.methods("backward"):
        func = call.func
        if (
            not isinstance(func, ast.Attribute)
            or call.args
            or _BACKENDS.search(dotted_name(func.value).rsplit(".", 1)[-1])
        ):
            continue
        if dotted_name(func.value).startswith("torch.autograd") or not _comes_from(code, func.value, prepared):
            continue
        if _is_without(code, call):
            continue
        accelerator = _accelerator(code, call)
        fix = None
        if accelerator:
            given = "".join(f", {code.source_of(k)}" for k in call.keywords)
            text = f"{accelerator}.backward({code.source_of(func.value)}{given})"
            fix = Fix("Let the accelerator do it", (Edit(code.span(call), text),))
        yield Hit(
            code.span(call),
            "backward() of the tensor leaves Accelerate out: no loss scaling for fp16, no division for gradient "
            "accumulation, and DeepSpeed never learns of the gradients.",
            fix,
        )


def _is_without(code: Code, call: ast.Call) -> bool:
    """True if the other branch of a condition uses Accelerate, so that this one is for runs without it."""
    inner: ast.AST = call
    for up in code.ancestors(call):
        if isinstance(up, ast.If) and inner is not up.test:
            other = up.orelse if inner in up.body else up.body
            calls = (c for s in other for c in code.inside(s, ast.Call))
            if any(getattr(c.func, "attr", "") == "backward" and c.args for c in calls):
                return True
        if isinstance(up, SCOPES):
            break
        inner = up
    return False


def _prepared_names(code: Code) -> set[str]:
    """Return the names passed to `prepare()` or assigned from it."""
    found: set[str] = set()
    for call in code.methods("prepare", "prepare_model"):
        func = call.func
        if not isinstance(func, ast.Attribute):
            continue
        if _MAKER not in code.made_by(func.value) and not re.search("accel", dotted_name(func.value), re.IGNORECASE):
            continue
        found |= {dotted_name(a) for a in call.args}
        up = code.parent[call]
        if isinstance(up, ast.Assign):
            for target in up.targets:
                parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                found |= {dotted_name(p) for p in parts}
    return found - {""}


def _comes_from(code: Code, node: ast.AST | None, prepared: set[str], depth: int = 5) -> bool:
    """True if a value is computed by calling a prepared object."""
    if node is None or not depth:
        return False
    for call in code.inside(node, ast.Call):
        if _is_prepared(code, call.func, prepared):
            return True
        function = code.local_function(call)
        if function is not None and any(_is_prepared(code, c.func, prepared) for c in code.inside(function, ast.Call)):
            return True
    names: list[ast.Name | ast.Attribute] = [*code.inside(node, ast.Name), *code.inside(node, ast.Attribute)]
    for name in names:
        if not dotted_name(name) or not isinstance(name.ctx, ast.Load):
            continue
        if dotted_name(name) in prepared or (
            isinstance(code.parent[name], ast.Attribute) and isinstance(name, ast.Attribute)
        ):
            continue
        for binding in code.bound(name):
            value = binding.value or (binding.node.value if isinstance(binding.node, ast.Assign) else None)
            if value is not None and value is not node and _comes_from(code, value, prepared, depth - 1):
                return True
    return False


def _is_prepared(code: Code, node: ast.expr, prepared: set[str], depth: int = 3) -> bool:
    """True if a name holds a result of `prepare()`, or is an argument named like one."""
    if dotted_name(node) not in prepared or not depth:
        return False
    for binding in code.bound(node):
        if binding.how == "argument":
            return True
        made = binding.node.value if isinstance(binding.node, ast.Assign) else binding.value
        if isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr.startswith("prepare"):
            return True
        if (
            made is not None
            and dotted_name(made)
            and made is not node
            and _is_prepared(code, made, prepared, depth - 1)
        ):
            return True
    return False


def _accelerator(code: Code, node: ast.AST) -> str:
    """Return the name of the accelerator in a node's scope; "" if there is none."""
    names = {_target(code, c) for c in code.calls(_MAKER)} - {""}
    for up in (*code.ancestors(node), code.tree):
        if not isinstance(up, SCOPES):
            continue
        for name in sorted(names):
            if not name.startswith("self.") and (up, name) in code.bindings and "." not in name:
                return name
            if isinstance(up, ast.ClassDef) and name.startswith("self.") and (up, name) in code.bindings:
                return name
    return ""


def _target(code: Code, call: ast.Call) -> str:
    up = code.parent[call]
    return dotted_name(up.targets[0]) if isinstance(up, ast.Assign) else ""
