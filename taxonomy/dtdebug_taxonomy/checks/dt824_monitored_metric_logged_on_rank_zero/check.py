"""Metrics of Lightning that rank 0 alone logs although a callback or scheduler of every rank watches them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.arguments import keyword
from dtdebug_taxonomy.source.guards import guards
from dtdebug_taxonomy.source.python import Code

_PACKAGES = ("pytorch_lightning", "lightning")


def check(code: Code) -> Iterator[Hit]:
    """Reports the argument, or the call under the condition."""
    if not code.imports_any(*_PACKAGES):
        return
    watched = _watched(code)
    if not watched:
        return
    for call in code.methods("log", "log_dict"):
        names = _logged(code, call) & watched
        if not names:
            continue
        name, given = min(names), keyword(call, "rank_zero_only")
        message = (
            f'"{name}" exists on rank 0 only, and a callback of every rank watches it: '
            "the ranks decide differently and hang, or end with an error."
        )
        if given is not None and code.constant(given.value) is True:
            fix = Fix("Log it on all ranks", (Edit(code.span(given), "sync_dist=True"),))
            yield Hit(code.span(given), message, None if keyword(call, "sync_dist") else fix)
        elif any(g.test.which == "global" and g.test.equal for g in guards(code).around(call)):
            yield Hit(code.span(call), message)


def _watched(code: Code) -> set[str]:
    """The names that are given as `monitor`."""
    found: set[object] = set()
    for call in code.nodes(ast.Call):
        last = code.name(call.func).rsplit(".", 1)[-1]
        if (given := keyword(call, "monitor")) is not None:
            found.add(code.constant(given.value))
        elif last == "EarlyStopping" and call.args:
            found.add(code.constant(call.args[0]))
        elif last == "ModelCheckpoint" and len(call.args) > 2:
            found.add(code.constant(call.args[2]))
    for table in code.nodes(ast.Dict):
        found |= {
            code.constant(v)
            for k, v in zip(table.keys, table.values, strict=True)
            if k and code.constant(k) == "monitor"
        }
    return {f for f in found if isinstance(f, str)}


def _logged(code: Code, call: ast.Call) -> set[str]:
    first = code.argument(call, "name", 0) or code.argument(call, "dictionary", 0)
    keys = first.keys if isinstance(first, ast.Dict) else [first]
    return {k for key in keys if isinstance(k := code.constant(key), str)}
