"""`ray.train.report` on some of the workers only."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.diverging import diverging
from dtdebug_taxonomy.checks.shared.lifting import lift_call
from dtdebug_taxonomy.source.python.code import Code

_REPORTS = ("ray.train.report", "ray.air.session.report")


def check(code: Code) -> Iterator[Hit]:
    """Report the call under the condition, or the call of a local function that makes it."""
    calls = code.calls(*_REPORTS)
    for call, what, guard in diverging(code, calls):
        yield Hit(
            code.span(call),
            f"{what} runs {guard.test.words}, but Ray waits until each worker has reported as often as the others: "
            "the run hangs. Report on every worker, and give a checkpoint on the one that has it.",
            lift_call(code, call, "Report on every worker") if call in calls else None,
        )
