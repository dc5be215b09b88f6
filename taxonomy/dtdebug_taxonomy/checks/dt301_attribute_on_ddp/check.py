"""Attributes of a model that are read from its wrapper."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.wrappers import may_wrap
from dtdebug_taxonomy.checks.shared.wrapping import DATA_PARALLEL, DDPS, Wrap, asks_wrap, wrap_of
from dtdebug_taxonomy.knowledge.facts import nn_module
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span


def check(code: Code) -> Iterator[Hit]:
    """Report the attribute."""
    if not may_wrap(code, DDPS | DATA_PARALLEL):
        return
    for node in code.nodes(ast.Attribute):
        if node.attr in _public() or node.attr.startswith("_") or not isinstance(node.ctx, ast.Load):
            continue
        written = dotted_name(node.value)
        direct = isinstance(node.value, ast.Call) and code.name(node.value.func) in DDPS | DATA_PARALLEL
        if not direct and (not written or code.name(node.value) != written):
            continue
        wrap = wrap_of(code, node.value, DDPS | DATA_PARALLEL)
        if wrap is None or asks_wrap(code, node, wrap) or _set_here(code, node):
            continue
        yield _hit(code, node, wrap)


def _hit(code: Code, node: ast.Attribute, wrap: Wrap) -> Hit:
    span = code.span(node)
    inner = code.span(node.value)
    name = wrap.home.name(wrap.call.func).rsplit(".", 1)[-1]
    model = dotted_name(node.value) or "The model"
    edits = [Edit(Span(inner.end, inner.end), ".module")]
    if not wrap.always:
        written = code.source_of(node.value)
        edits = [Edit(inner, f'getattr({written}, "module", {written})')] if dotted_name(node.value) else []
    fix = Fix("Ask the model inside", tuple(edits)) if edits else None
    return Hit(
        Span(inner.end, span.end),
        f"{model} is {'' if wrap.always else 'in some runs '}wrapped by {name}, which has no {node.attr}: "
        "this raises AttributeError. The model itself is its .module.",
        fix,
    )


@lru_cache(maxsize=1)
def _public() -> frozenset[str]:
    facts = nn_module()
    wrappers = (*facts.wrappers["DistributedDataParallel"], *facts.wrappers["DataParallel"])
    return frozenset((*facts.module, *wrappers))


def _set_here(code: Code, node: ast.Attribute) -> bool:
    """True if the program sets this attribute on the wrapper itself."""
    written = f"{dotted_name(node.value)}.{node.attr}"
    return any(name == written for _, name in code.bindings)
