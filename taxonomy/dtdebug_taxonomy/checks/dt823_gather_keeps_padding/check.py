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
    calls = [c for c in code.methods("gather") if _is_gather(code, c) and _in_evaluation(code, c)]
    for call in calls:
        if not _has_results(code, call.args[0]):
            continue
        together = [c for c in calls if c is call or _belong_together(code, c, call)]
        yield Hit(
            code.span(call),
            "gather() keeps the samples that fill up the last batch, so some count twice in the metric; "
            "gather_for_metrics() drops them.",
            Fix("Use gather_for_metrics()", tuple(_edit(code, c) for c in together)),
        )


def _is_gather(code: Code, call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and _is_accelerator(code, call.func.value) and len(call.args) == 1


def _belong_together(code: Code, one: ast.Call, other: ast.Call) -> bool:
    """True if what two calls gather is of the same samples: in one statement, or both results in one function."""
    if code.statement(one) is code.statement(other):
        return True
    both = _has_results(code, one.args[0]) and _has_results(code, other.args[0])
    return both and code.function(one) is code.function(other)


def _edit(code: Code, call: ast.Call) -> Edit:
    end = code.span(call.func).end
    return Edit(Span(end - len("gather"), end), "gather_for_metrics")


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
