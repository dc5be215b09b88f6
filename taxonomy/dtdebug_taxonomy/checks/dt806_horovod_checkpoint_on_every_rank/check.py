"""Checkpoints that every rank of Horovod writes to one path."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.checks.shared.fixing import indent_of, statement_lines
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_MODEL = re.compile(r"(^|[._])(model|net|network|saver|checkpoint|ckpt)\w*$", re.IGNORECASE)
_OWN = re.compile(r"te?mp|uuid|hostname|BytesIO|buffer", re.IGNORECASE)
_CALLBACK = re.compile(r"(^|\.)keras\.callbacks\.(ModelCheckpoint|TensorBoard)$")


def check(code: Code) -> Iterator[Hit]:
    """Report the call that writes."""
    starts = horovod.calls(code, "init")
    if not starts:
        return
    for call in _writes(code):
        given = (*call.args, *call.keywords)
        if _is_guarded(code, call) or any(depends_on_rank(code, a) or _OWN.search(code.source_of(a)) for a in given):
            continue
        yield Hit(
            code.span(call),
            "Every rank writes this file: they overwrite each other, and a reader may find a truncated one.",
            _fix(code, call, horovod.prefix(code, starts[0])),
        )


def _writes(code: Code) -> Iterator[ast.Call]:
    yield from code.calls("torch.save")
    for call in code.methods("save", "save_weights", "save_model"):
        if isinstance(call.func, ast.Attribute) and _MODEL.search(dotted_name(call.func.value)) and call.args:
            yield call
    for call in code.nodes(ast.Call):
        if _CALLBACK.search(code.name(call.func)):
            yield call


def _is_guarded(code: Code, call: ast.Call, depth: int = 3) -> bool:
    if guards(code).around(call):
        return True
    function = code.function(call)
    callers = code.callers.get(function, []) if function and depth else []
    return bool(callers) and all(_is_guarded(code, c, depth - 1) for c in callers)


def _fix(code: Code, call: ast.Call, prefix: str) -> Fix | None:
    statement = code.parent[call]
    if not prefix or not isinstance(statement, ast.Expr) or statement_lines(code, statement) is None:
        return None
    indent = indent_of(code, statement)
    inner = "\t" if "\t" in indent else "    "
    start = code.span(statement).start
    return Fix("Write on rank 0 only", (Edit(Span(start, start), f"if {prefix}rank() == 0:\n{indent}{inner}"),))
