"""Models that every worker of a strategy saves to one path."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name

_STRATEGIES = (
    "tensorflow.distribute.MultiWorkerMirroredStrategy",
    "tensorflow.distribute.experimental.MultiWorkerMirroredStrategy",
)
_KNOWS = re.compile(r"chief|task_?(type|id|index)|worker_?(id|index)|is_main|tempfile|mkdtemp|temp_dir", re.IGNORECASE)
_MODEL = re.compile(r"model|net|checkpoint|ckpt|manager|saved_model", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the call that saves."""
    if not code.calls(*_STRATEGIES) or any(_KNOWS.search(n) for n in _names(code)):
        return
    for call in code.methods("save", "save_weights", "save_model"):
        if not isinstance(call.func, ast.Attribute) or not _MODEL.search(dotted_name(call.func.value)):
            continue
        if guards(code).around(call) or not (call.args or call.keywords):
            continue
        yield Hit(
            code.span(call),
            "Every worker saves here, and to one path: they write into each other's files. All must save, the others "
            "than the chief to a path of their own.",
        )


def _names(code: Code) -> Iterator[str]:
    yield from (n.id for n in code.nodes(ast.Name))
    yield from (n.attr for n in code.nodes(ast.Attribute))
    yield from code.imports
    yield from (f for f in code.functions)
