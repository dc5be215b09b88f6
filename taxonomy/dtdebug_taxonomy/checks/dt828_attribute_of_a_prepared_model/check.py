"""Model attributes read from the result of `accelerator.prepare()`, which is a wrapper on several GPUs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.preparing import is_accelerator, is_module
from dtdebug_taxonomy.knowledge.facts import nn_module
from dtdebug_taxonomy.source.python.bindings import name_scope
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_OF_MODELS = {
    *("config", "dtype", "generate", "save_pretrained", "encode", "decode", "get_input_embeddings", "text_model"),
    *("resize_token_embeddings", "get_output_embeddings", "push_to_hub", "gradient_checkpointing_enable"),
    *("enable_gradient_checkpointing", "merge_and_unload", "add_noise"),
}
_MODEL = re.compile(
    r"(?i)(^|_)(model|net|unet|vae|transformer|encoder|decoder|policy|actor|critic|student|teacher|llm|gpt|lora)\d?$"
)
_FORWARDS = re.compile(r"deepspeed|fsdp|FullySharded", re.IGNORECASE)
"""Wrappers that forward attributes to the model."""
_UNWRAPS = re.compile(r"unwrap|\.module\b|hasattr|isinstance|distributed_type|num_processes")


def check(code: Code) -> Iterator[Hit]:
    """Report the attribute."""
    calls = [c for c in code.methods("prepare", "prepare_model") if is_accelerator(code, c.func.value)]  # type: ignore[attr-defined]
    if not calls or code.role == "test":
        return
    prepared = {(place, name): call for call in calls for place, name in _prepared_models(code, call)}
    facts = nn_module()
    public = {*facts.module, *facts.wrappers["DistributedDataParallel"]}
    others = not _FORWARDS.search(code.text)
    bound = {name for _, name in code.bindings}
    for node in code.nodes(ast.Attribute):
        name = dotted_name(node.value)
        if not name or not isinstance(node.ctx, ast.Load) or not (node.attr in _OF_MODELS or others):
            continue
        if node.attr in public or node.attr.startswith("_"):
            continue
        call = prepared.get((name_scope(code, node, name), name))
        if call is None or (node.attr not in _OF_MODELS and ("ema" in name or f"{name}.{node.attr}" in bound)):
            continue  # a model without gradients, such as an average of weights, is not wrapped
        if not _comes_later(code, call, node, name) or _is_asked(code, node) or _is_mapping(code, node.value):
            continue
        yield Hit(
            code.span(node),
            f"{name} is what prepare() gave: with several processes that is DistributedDataParallel, which has no "
            f"{node.attr}, and this raises AttributeError. Ask accelerator.unwrap_model({name}).",
        )


def _prepared_models(code: Code, call: ast.Call) -> Iterator[tuple[ast.AST, str]]:
    """Yield the models that a call returns under the names by which it got them, with their scopes."""
    assign = code.parent.get(call)
    if not isinstance(assign, ast.Assign) or len(assign.targets) != 1:
        return
    target = assign.targets[0]
    targets = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    given = {dotted_name(a) for a in call.args}
    for element in targets:
        name = dotted_name(element)
        if name in given and (_MODEL.search(name.rpartition(".")[2]) or is_module(code, name)):
            yield name_scope(code, element, name), name


def _is_mapping(code: Code, model: ast.expr) -> bool:
    """True if the program gets single models out of what it prepares, by keys: `prepare()` gives that back as it is."""
    name, scope = dotted_name(model), name_scope(code, model, dotted_name(model))
    looked_up = (s.value for s in code.nodes(ast.Subscript) if isinstance(s.ctx, ast.Load))
    asked = (c.func.value for c in code.methods("keys", "items", "values"))  # type: ignore[attr-defined]
    return any(dotted_name(n) == name and name_scope(code, n, name) is scope for n in (*looked_up, *asked))


def _comes_later(code: Code, call: ast.Call, node: ast.Attribute, name: str) -> bool:
    """True if the name still holds the result of `prepare()`."""
    here = [
        b for b in code.bindings.get((name_scope(code, node, name), name), ()) if code.order[b.node] > code.order[call]
    ]
    if any(code.order[b.node] < code.order[node] and not isinstance(b.node, ast.arg) for b in here):
        return False
    if code.function(node) is code.function(call):
        return code.order[node] > code.order[call]
    function = code.function(node)
    bound = code.bindings.get((name_scope(code, node, name), name), ())
    if any(code.function(b.node) is function and code.order[b.node] < code.order[node] for b in bound):
        return False  # this method makes the model itself
    if function is None or not name.startswith("self.") or function.name in {"__init__", "setup"}:
        return False
    prepares = _calls_of(code, call)
    prepares = [*prepares, *(c for inner in prepares for c in _calls_of(code, inner))]
    return not any(code.function(c) is function and code.order[c] > code.order[node] for c in prepares)


def _calls_of(code: Code, node: ast.AST) -> list[ast.Call]:
    """Return the calls of the function that contains a place."""
    function = code.function(node)
    return code.callers.get(function, []) if function is not None else []


def _is_asked(code: Code, node: ast.Attribute) -> bool:
    """True if a condition around it, or its statement, may handle the wrapper."""
    for up in (node, *code.ancestors(node)):
        if isinstance(up, ast.If | ast.IfExp) and _UNWRAPS.search(code.source_of(up.test)):
            return True
        if isinstance(up, ast.Try):
            return True
    return bool(_UNWRAPS.search(code.source_of(code.statement(node)).partition("\n")[0]))
