"""Lightning metrics that only rank 0 logs although a callback or scheduler of every rank monitors them."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.arguments import keyword
from dtdebug_taxonomy.checks.shared.lightning import logged_names, watched_names
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards

_PACKAGES = ("pytorch_lightning", "lightning")


def check(code: Code) -> Iterator[Hit]:
    """Report the argument, or the call under the condition."""
    if not code.imports_any(*_PACKAGES):
        return
    watched = watched_names(code)
    if not watched:
        return
    for call in code.methods("log", "log_dict"):
        names = logged_names(code, call) & watched
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
