"""Multi-worker strategies that are created after TensorFlow's first ops."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code

_STRATEGIES = (
    "tensorflow.distribute.MultiWorkerMirroredStrategy",
    "tensorflow.distribute.experimental.MultiWorkerMirroredStrategy",
)
_OPS = re.compile(
    r"tensorflow\.(constant|Variable|zeros|ones|fill|range|eye|convert_to_tensor|matmul|reduce_\w+|cast|stack|concat|"
    r"random\.(normal|uniform|truncated_normal|shuffle|stateless_\w+)|data\.(Dataset\.\w+|TFRecordDataset|TextLineDataset)|"
    r"keras\.applications\.(\w+\.)?[A-Z]\w+|keras\.models\.load_model)$"
)
_GRAPH = ("tensorflow.compat.v1.disable_eager_execution", "tensorflow.compat.v1.disable_v2_behavior")


def check(code: Code) -> Iterator[Hit]:
    """Report the strategy."""
    strategies = code.calls(*_STRATEGIES)
    if not strategies or code.calls(*_GRAPH):
        return
    for call in strategies:
        first = next((op for op in code.nodes(ast.Call) if _is_before(code, op, call)), None)
        if first is not None:
            name = code.source_of(first.func)
            yield Hit(
                code.span(call),
                f"{name}() has started TensorFlow's runtime before: with several workers this ends with "
                '"Collective ops must be configured at program startup".',
            )


def _is_before(code: Code, op: ast.Call, strategy: ast.Call) -> bool:
    if code.order[op] > code.order[strategy] or code.scope(op) not in (code.scope(strategy), code.tree):
        return False
    if not _runs_ops(code, op):
        return False
    if code.scope(op) is code.tree and code.scope(strategy) is not code.tree:
        return surely_before(code, op, strategy) is not None and not _in_main(code, op)
    return surely_before(code, op, strategy) is True


def _runs_ops(code: Code, call: ast.Call) -> bool:
    if _OPS.match(code.name(call.func)):
        return True
    function = code.local_function(call)
    if function is None or function.decorator_list:
        return False
    return any(_OPS.match(code.name(c.func)) and code.function(c) is function for c in code.inside(function, ast.Call))


def _in_main(code: Code, node: ast.AST) -> bool:
    return any(isinstance(a, ast.If | ast.ClassDef | ast.Try) for a in code.ancestors(node))
