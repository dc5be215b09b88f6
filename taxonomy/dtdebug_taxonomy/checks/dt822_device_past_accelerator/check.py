"""`.cuda()` and `.to("cuda")` in programs of Accelerate."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import SCOPES
from dtdebug_taxonomy.source.text import Span

_MAKER = "accelerate.Accelerator"


def check(code: Code) -> Iterator[Hit]:
    """Report the call that moves."""
    if not code.calls(_MAKER):
        return
    for call in code.methods("cuda", "to"):
        func = call.func
        if not isinstance(func, ast.Attribute) or not _names_cuda(code, call, func.attr):
            continue
        accelerator = _accelerator(code, call)
        fix = None
        if accelerator:
            start = code.span(func.value).end
            edit = Edit(Span(start, code.span(call).end), f".to({accelerator}.device)")
            numbered = any(character.isdigit() for a in call.args for character in code.source_of(a))
            fix = Fix("Use the accelerator's device", (edit,), safe=not numbered) if not call.keywords else None
        yield Hit(
            code.span(call),
            "Accelerate chooses the device of each process; the one that is named here can be another one, or not "
            "exist where the program runs.",
            fix,
        )


def _names_cuda(code: Code, call: ast.Call, method: str) -> bool:
    if method == "cuda":
        return not call.args or isinstance(code.constant(call.args[0]), int | str)
    return len(call.args) == 1 and _is_cuda(code, call.args[0])


def _is_cuda(code: Code, node: ast.expr | None, depth: int = 5) -> bool:
    if node is None or not depth:
        return False
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value.split(":")[0] == "cuda"
    if isinstance(node, ast.Call) and code.name(node.func) == "torch.device":
        return len(node.args) > 0 and _is_cuda(code, node.args[0], depth - 1)
    if isinstance(node, ast.IfExp):
        return _is_cuda(code, node.body, depth - 1)
    if dotted_name(node):
        values = [v for v in code.values(node) if v is not node]
        return bool(values) and all(_is_cuda(code, v, depth - 1) for v in values)
    return False


def _accelerator(code: Code, node: ast.AST) -> str:
    """Return the name, visible at a node, of an accelerator made before it; "" if there is none."""
    for made in code.calls(_MAKER):
        up = code.parent[made]
        name = dotted_name(up.targets[0]) if isinstance(up, ast.Assign) else ""
        if not name or (code.order[made] > code.order[node] and not name.startswith("self.")):
            continue
        around = [a for a in (*code.ancestors(node), code.tree) if isinstance(a, SCOPES)]
        home = code.class_of(made) if name.startswith("self.") else code.scope(made)
        if home in around:
            return name
    return ""
