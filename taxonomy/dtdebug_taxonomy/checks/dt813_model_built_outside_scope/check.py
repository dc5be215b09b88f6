"""Keras models made outside `strategy.scope()` and compiled inside, or without any scope."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_STRATEGY = re.compile(
    r"tensorflow\.distribute\.(experimental\.)?(MultiWorkerMirrored|Mirrored|TPU|CentralStorage|ParameterServer)Strategy$"
)
_MODEL = re.compile(
    r"(^|\.)(tf_)?keras\.(Sequential|Model|models\.\w+|applications\.(\w+\.)?[A-Z]\w+)$|^TF\w+\.from_pretrained$|"
    r"^transformers\.TF\w+\.from_(pretrained|config)$"
)


def check(code: Code) -> Iterator[Hit]:
    """Report the call that builds the model."""
    strategies = [c for c in code.nodes(ast.Call) if _STRATEGY.match(code.name(c.func))]
    if not strategies:
        return
    scopes = [w for w in code.nodes(ast.With) if any(_is_scope(code, i.context_expr) for i in w.items)]
    seen: set[ast.AST] = set()
    for compiled in code.methods("compile"):
        func = compiled.func
        if not isinstance(func, ast.Attribute) or not dotted_name(func.value):
            continue
        if not _is_in_scope(code, compiled, scopes):
            continue
        built = [v for v in code.values(func.value) if isinstance(v, ast.Call) and _makes_model(code, v)]
        for call in built:
            near = code.function(call) is code.function(compiled) or dotted_name(func.value).startswith("self.")
            if not _is_in_scope(code, call, scopes) and call not in seen and near:
                seen.add(call)
                yield _hit(code, call, "compile() under strategy.scope() then ends with an error about its variables")
    if not scopes and not code.methods("scope") and _is_unused(code, strategies):
        for call in code.nodes(ast.Call):
            if (
                _MODEL.search(code.name(call.func))
                and code.order[call] > code.order[strategies[0]]
                and code.methods("fit")
            ):
                yield _hit(code, call, "nothing here uses strategy.scope(), so one device trains alone")
                return


def _hit(code: Code, call: ast.Call, what: str) -> Hit:
    return Hit(code.span(call), f"This model is built outside the strategy's scope: {what}.")


def _is_scope(code: Code, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "scope"


def _is_in_scope(code: Code, node: ast.AST, scopes: list[ast.With]) -> bool:
    return any(a in scopes for a in code.ancestors(node))


def _makes_model(code: Code, call: ast.Call) -> bool:
    if _MODEL.search(code.name(call.func)):
        return True
    function = code.local_function(call)
    if function is not None:
        if any(_is_scope(code, c) for c in code.inside(function, ast.Call)):
            return False
        return any(_MODEL.search(code.name(c.func)) for c in code.inside(function, ast.Call))
    name = dotted_name(call.func)
    return any(c.name == name and any(_MODEL.search(code.name(b)) for b in c.bases) for c in code.nodes(ast.ClassDef))


def _is_unused(code: Code, strategies: list[ast.Call]) -> bool:
    """True if no strategy is passed to anything; reading its number of replicas does not count."""
    for call in strategies:
        up = code.parent[call]
        if not isinstance(up, ast.Assign) or not isinstance(up.targets[0], ast.Name):
            return False
        for name in code.nodes(ast.Name):
            if name.id == up.targets[0].id and isinstance(name.ctx, ast.Load):
                use = code.parent[name]
                if not isinstance(use, ast.Attribute) or use.attr != "num_replicas_in_sync":
                    return False
    return True
