"""Models that only some ranks wrap."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.lifting import lift_call
from dtdebug_taxonomy.checks.shared.wrapping import DDPS, FSDP1
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards


def check(code: Code) -> Iterator[Hit]:
    """Report the wrap under a condition on the rank."""
    calls = code.calls(*DDPS, *FSDP1)
    for call in calls:
        if code.argument(call, "process_group") is not None or code.has_unpacking(call):
            continue
        around = [g for g in guards(code).around(call) if g.test.which in {"global", "local"}]
        if around and not guards(code).has_counterpart(call, calls):
            test = around[0].test
            where = f"{'on' if test.equal else 'on all but'} rank {test.value}"
            yield Hit(
                code.span(call),
                f"The model is wrapped {where} only: wrapping compares the models of all ranks, so this waits for the "
                "others until the timeout, and the unwrapped copies would train alone.",
                fix._replace(safe=False) if (fix := lift_call(code, call, "Wrap it on every rank")) else None,
            )
