"""Visible devices that are chosen after torch is loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.environment import Setting, settings
from dtdebug_taxonomy.checks.shared.fixing import statement_lines
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS
from dtdebug_taxonomy.source.text import Span

_LOADERS = {
    "torch", "torchvision", "torchaudio", "transformers", "accelerate", "pytorch_lightning", "lightning", "deepspeed",
    "timm", "diffusers", "peft", "trl", "fastai", "sentence_transformers",
}  # fmt: skip
"""Packages that load torch when imported."""
_STARTS_CUDA = (
    "set_device", "current_device", "synchronize", "get_device_name", "get_device_properties", "memory_allocated",
    "mem_get_info", "init", "get_device_capability", "is_available", "device_count",
)  # fmt: skip


def check(code: Code) -> Iterator[Hit]:
    """Report the place that sets the variable."""
    for setting in settings(code):
        if setting.variable != "CUDA_VISIBLE_DEVICES" or code.constant(setting.value) in {"-1", ""}:
            continue
        load = _load_before(code, setting.node)
        if load is None:
            continue
        use = _use_before(code, setting.node)
        inside = any(isinstance(a, FUNCTIONS) for a in code.ancestors(setting.node))
        if inside and use is None and not isinstance(setting.value, ast.Constant):
            continue
        if use is not None:
            line = code.text.place(code.span(use).start).line
            why = f"after torch has looked at the devices (line {line}): it has no effect."
        else:
            why = "after torch was imported: once anything has touched a GPU, all devices stay visible."
        yield Hit(code.span(setting.node), f"CUDA_VISIBLE_DEVICES is set {why}", _fix(code, setting, load))


def _load_before(code: Code, node: ast.AST) -> ast.stmt | None:
    """Return the first import of torch that runs before a node."""
    nodes: list[ast.Import | ast.ImportFrom] = [*code.nodes(ast.Import), *code.nodes(ast.ImportFrom)]
    for statement in sorted(nodes, key=code.order.__getitem__):
        names = [a.name for a in statement.names] if isinstance(statement, ast.Import) else [statement.module or ""]
        if not any(n.split(".", 1)[0] in _LOADERS for n in names) or getattr(statement, "level", 0):
            continue
        here = code.scope(statement) in {code.tree, code.scope(node)}
        if here and code.order[statement] < code.order[node] and surely_before(code, statement, node) is not None:
            return statement
    return None


def _use_before(code: Code, node: ast.AST) -> ast.Call | None:
    """Return the first call before a node, in its function or at module level, that initialises CUDA."""
    calls = [*code.calls(*(f"torch.cuda.{n}" for n in _STARTS_CUDA)), *_moves(code)]
    for call in sorted(calls, key=code.order.__getitem__):
        if code.order[call] > code.order[node]:
            return None
        if code.scope(call) in {code.tree, code.scope(node)} and surely_before(code, call, node) is not None:
            return call
    return None


def _moves(code: Code) -> list[ast.Call]:
    found = [c for c in code.methods("cuda") if not code.name(c.func).startswith("torch.")]
    for call in code.methods("to"):
        target = code.argument(call, "device", 0)
        if isinstance(target, ast.Constant) and str(target.value).startswith("cuda"):
            found.append(call)
    return found


def _fix(code: Code, setting: Setting, load: ast.stmt) -> Fix | None:
    """Return a fix that moves the line before the import, if both are at module level and nothing else is needed."""
    statement = setting.node
    if not isinstance(statement, ast.stmt) or not isinstance(setting.value, ast.Constant):
        return None
    lines, before = statement_lines(code, statement), statement_lines(code, load)
    if code.parent[statement] is not code.tree or code.parent[load] is not code.tree or not lines or not before:
        return None
    text = code.cut(lines).rstrip("\r\n") + "\n"
    root = code.source_of(statement).split(".", 1)[0].split("[", 1)[0]
    imports = next((n for n in code.tree.body if _imports(n, root)), None)
    if imports is None:
        return None
    if code.order[imports] > code.order[load]:
        text = code.source_of(imports) + "\n" + text
    start = before.start
    return Fix("Set it before the import", (Edit(Span(start, start), text), Edit(lines, "")))


def _imports(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom) and any((a.asname or a.name) == name for a in node.names)
