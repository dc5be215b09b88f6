"""Data sets of one or few files under a multi-worker strategy with the default sharding policy."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.python.code import Code

_STRATEGIES = (
    "tensorflow.distribute.MultiWorkerMirroredStrategy",
    "tensorflow.distribute.experimental.MultiWorkerMirroredStrategy",
)
_READERS = (
    "tensorflow.data.TFRecordDataset",
    "tensorflow.data.TextLineDataset",
    "tensorflow.data.FixedLengthRecordDataset",
)
_KNOWS = ("auto_shard_policy", "AutoShardPolicy")


def check(code: Code) -> Iterator[Hit]:
    """Report the file."""
    if not code.calls(*_STRATEGIES) or any(w in code.text for w in _KNOWS) or code.methods("shard"):
        return
    for call in code.calls(*_READERS):
        files = code.argument(call, "filenames", 0)
        if files is not None and _is_one(code, files):
            yield Hit(
                code.span(files),
                "By default the data is divided by files, and here is but one: with several workers TensorFlow "
                "refuses, or some of them get nothing. AutoShardPolicy.DATA divides the records.",
            )


def _is_one(code: Code, node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Tuple):
        return len(node.elts) == 1 and not isinstance(node.elts[0], ast.Starred)
    value = code.constant(node)
    if isinstance(value, str):
        return "*" not in value
    values = code.values(node)
    only = values[0] if len(values) == 1 else None
    return only is not node and isinstance(only, ast.List | ast.Tuple) and _is_one(code, only)
