"""Progress bars that all ranks draw, in functions that leave other output to rank 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Fix, Hit
from dtdebug_taxonomy.checks.shared.arguments import add
from dtdebug_taxonomy.checks.shared.everyone import nearby_guard
from dtdebug_taxonomy.checks.shared.fixing import main_process, negate_condition
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard

_BARS = tuple(
    f"tqdm.{home}{name}" for home in ("", "auto.", "std.", "notebook.", "autonotebook.") for name in ("tqdm", "trange")
)


def check(code: Code) -> Iterator[Hit]:
    """Report the bar."""
    if code.role == "test":
        return
    for call in code.calls(*_BARS):
        if code.argument(call, "disable") is not None or code.argument(call, "position") is not None:
            continue
        if code.has_unpacking(call) or any(depends_on_rank(code, k.value) for k in call.keywords):
            continue  # `desc=f"rank {rank}"`: one per rank is intended
        if any(b.how != "import" for b in code.bound(call.func)):
            continue  # `tqdm = lambda x: x` on the other ranks
        if (guard := nearby_guard(code, call)) is None:
            continue
        line = code.text.place(code.span(guard.node).start).line
        yield Hit(
            code.span(call),
            f"Every rank draws this bar, unlike what line {line} leaves to rank 0: the bars write over each other.",
            _fix(code, call, guard),
        )


def _fix(code: Code, call: ast.Call, guard: Guard) -> Fix | None:
    test, imports = main_process(code, guard, call)
    return (
        Fix("Draw it on rank 0 only", (*imports, add(code, call, f"disable={negate_condition(test)}")))
        if test
        else None
    )
