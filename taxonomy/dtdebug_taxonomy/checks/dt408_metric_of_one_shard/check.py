"""Accuracies over a sharded test set that are shown without a reduction over the ranks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.divergence.interpreter import interpreter
from dtdebug_taxonomy.checks.divergence.origins import Value
from dtdebug_taxonomy.checks.shared.names import DIST, INIT, SAMPLER
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import is_size, rank, several

_TEST = re.compile(r"(^|_)(test|val?|valid|validation|eval|dev)(_|$|set|data|loader|sampler|iter)", re.IGNORECASE)
_METRIC = re.compile(
    r"(^|_)(acc|accuracy|correct|f1|bleu|auc|precision|recall|top1|top5|miou|map)(_|$|\d)", re.IGNORECASE
)
_LOSS = re.compile(r"(val|valid|validation|eval|test)_?(loss|ppl|perplexity)", re.IGNORECASE)
_REDUCES = re.compile(r"reduce|gather|torchmetrics|synchronize|metric_logger|send|recv")
_SHOWS = {"print", "info", "log", "add_scalar", "write", "debug"}


def check(code: Code) -> Iterator[Hit]:
    """Report the place where one rank shows it."""
    if not code.calls(INIT) or _REDUCES.search(code.text):
        return
    if not any(_is_test(code, call) for call in code.calls(SAMPLER)) and not _cut_otherwise(code):
        return
    for call in code.nodes(ast.Call):
        last = call.func.attr if isinstance(call.func, ast.Attribute) else dotted_name(call.func)
        if last not in _SHOWS or not any(g.test.equal for g in guards(code).around(call)):
            continue
        shown = [n for a in (*call.args, *call.keywords) for n in code.inside(a, ast.Name, ast.Attribute)]
        if any(_is_agreed(code, n) or _is_made_alone(code, n) for n in shown):
            continue
        if any(
            _METRIC.search(last) or _LOSS.fullmatch(last) for n in shown if (last := dotted_name(n).rsplit(".", 1)[-1])
        ):
            yield Hit(
                code.span(call),
                "One rank shows this metric from its own shard of the test data; nothing here reduces it over the "
                f"ranks ({DIST}all_reduce), so it describes one shard, not the test set.",
            )


def _is_agreed(code: Code, shown: ast.expr) -> bool:
    """True if a shown value comes from a call in which the ranks wait for each other."""
    made = (v for v in code.values(shown) if isinstance(v, ast.Call))
    return any(interpreter(code).met(c, Value(callees=frozenset(interpreter(code).callees(c)))) for c in made)


def _is_made_alone(code: Code, shown: ast.expr) -> bool:
    """True if a shown value, or one that it is taken from, is made only where there is one process."""
    values = [v for v in code.values(shown) if v is not None]
    values += [m for v in values for n in code.inside(v, ast.Name) for m in code.values(n) if m is not None]
    calls = [v for v in values if isinstance(v, ast.Call)]
    return any(
        isinstance(up, ast.If)
        and code.statement(c) in up.body
        and any(several(code, part) is False for part in _conjuncts(up.test))
        for c in calls
        for up in code.ancestors(c)
    )


def _conjuncts(test: ast.expr) -> list[ast.expr]:
    """Return what holds where a condition holds."""
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _is_test(code: Code, sampler: ast.Call) -> bool:
    """True if a sampler splits test data, judging by the names of its data set and of itself."""
    data = dotted_name(code.argument(sampler, "dataset", 0))
    statement = code.statement(sampler)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(_TEST.search(n.rsplit(".", 1)[-1]) for n in (data, *map(dotted_name, targets)) if n)


def _cut_otherwise(code: Code) -> bool:
    """True if a call with the rank and the number of ranks returns test data."""
    for assign in code.nodes(ast.Assign):
        call = assign.value
        if not isinstance(call, ast.Call) or not any(_TEST.search(dotted_name(t)) for t in assign.targets):
            continue
        given = [*call.args, *(k.value for k in call.keywords)]
        if any(is_size(code, a) for a in given) and any(rank(code, a) == "global" for a in given):
            return True
    return False
