"""`accelerator.gather` of predictions in evaluation loops that do not cut off the padding."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_MAKER = "accelerate.Accelerator"
_CUTS = re.compile(
    r"samples_seen|remainder|even_batches\s*=\s*False|total_dataset_length|\[\s*:\s*len\(|num_samples\b|\[\s*:\s*num_"
)
_RESULTS = re.compile(
    r"pred|label|ref|target|logit|output|score|answer|correct|token|generated|result|^outs?$|^y$|acc", re.IGNORECASE
)


def check(code: Code) -> Iterator[Hit]:
    """Report the method."""
    if not code.imports_any("accelerate") or _CUTS.search(code.text):
        return
    for call in code.methods("gather"):
        func = call.func
        if not isinstance(func, ast.Attribute) or not _is_accelerator(code, func.value) or len(call.args) != 1:
            continue
        if not _has_results(code, call.args[0]) or not _in_evaluation(code, call):
            continue
        end = code.span(func).end
        span = Span(end - len("gather"), end)
        yield Hit(
            code.span(call),
            "gather() keeps the samples that fill up the last batch, so some count twice in the metric; "
            "gather_for_metrics() drops them.",
            Fix("Use gather_for_metrics()", (Edit(span, "gather_for_metrics"),)),
        )


def _is_accelerator(code: Code, node: ast.expr) -> bool:
    return _MAKER in code.made_by(node) or bool(re.search(r"accelerator$|(^|\.)acc$", dotted_name(node), re.IGNORECASE))


def _has_results(code: Code, node: ast.expr) -> bool:
    names = [dotted_name(n).rsplit(".", 1)[-1] for n in code.inside(node, ast.Name, ast.Attribute)]
    text = [str(n.value) for n in code.inside(node, ast.Constant) if isinstance(n.value, str)]
    return any(_RESULTS.search(n) for n in (*names, *text)) and not any("loss" in n.lower() for n in names)


def _in_evaluation(code: Code, call: ast.Call) -> bool:
    """True if the innermost loop around a call iterates a loader, without a backward pass."""
    for up in code.ancestors(call):
        if isinstance(up, ast.For):
            over = code.source_of(up.iter)
            if any(isinstance(c.func, ast.Attribute) and c.func.attr == "backward" for c in code.inside(up, ast.Call)):
                return False
            return not re.match(r"t?range\(|t?qdm\(range", over)
        if isinstance(up, ast.FunctionDef):
            return False
    return False
