"""HfDeepSpeedConfig that is created after its model, or not kept."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.source.python.code import Code

_MODEL = re.compile(r"Model|ForCausalLM|For[A-Z]\w+|LMHead")


def check(code: Code) -> Iterator[Hit]:
    """Report both cases; Transformers finds the configuration only while the object is alive."""
    made = [c for c in code.nodes(ast.Call) if code.name(c.func).rsplit(".", 1)[-1] == "HfDeepSpeedConfig"]
    if not made or not code.imports_any("transformers"):
        return
    for call in made:
        statement = code.parent.get(call)
        if isinstance(statement, ast.Expr):
            at = code.span(statement).start
            yield Hit(
                code.span(call),
                "The object is kept nowhere and gone at once: Transformers then loads the whole model in every "
                "process, as without ZeRO-3.",
                Fix("Keep it", (Edit(code.span(call)._replace(start=at, end=at), "dschf = "),)),
            )
        first = next((m for m in _models(code, call) if code.order[m] < code.order[call]), None)
        if first is not None and not any(c is not call and code.order[c] < code.order[first] for c in made):
            yield Hit(
                code.span(call),
                f"The model is loaded before this, on line {first.lineno}: ZeRO-3 is not known there, and every "
                "process holds the whole model.",
            )


def _models(code: Code, call: ast.Call) -> list[ast.Call]:
    """Return the models loaded in the same function, on the path to the call."""
    block = {id(s) for s in (code.statement(call), *(a for a in code.ancestors(call) if isinstance(a, ast.stmt)))}
    found = []
    for load in code.methods("from_pretrained", "from_config"):
        name = code.name(load.func).rsplit(".", 2)[-2:-1]
        if not name or not _MODEL.search(name[0]) or code.scope(load) is not code.scope(call):
            continue
        outer = code.statement(load)
        siblings = [s for s in code.block(outer) if id(s) in block]
        if siblings:
            found.append(load)
    return found
