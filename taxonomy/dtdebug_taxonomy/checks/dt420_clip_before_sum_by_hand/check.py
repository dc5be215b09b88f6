"""Gradients that each rank clips before a loop of `all_reduce` sums or averages them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import statement_lines
from dtdebug_taxonomy.checks.shared.gradients import CLIPS, GRADIENT, NEAR, calls_method, only_measures, steps
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.checks.shared.stepping import in_step
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import Function
from dtdebug_taxonomy.source.text import Span

_PRIVATE = re.compile(r"opacus|privacy|noise_multiplier|(^|_)dp_?sgd", re.IGNORECASE)
"""Signs of private training, which limits each rank's contribution on purpose."""


def check(code: Code) -> Iterator[Hit]:
    """Report the clip if the sum comes after it and before the step."""
    sums = _sums(code)
    if not sums or in_step(code) or code.role == "test" or _PRIVATE.search(code.text):
        return
    homes = {home for call in sums if (home := code.function(call)) is not None}
    clips = code.calls(*CLIPS)
    for clip in clips:
        place = code.statement(clip)
        while isinstance(up := code.parent[place], ast.If):
            place = up
        block = code.block(place)
        at = block.index(place) + 1
        after = block[at : at + NEAR]
        step = next((s for s in after if steps(code, s)), None)
        between = after[: after.index(step)] if step is not None else []
        if step is None or only_measures(code, clip) or any(calls_method(code, s, "backward") for s in between):
            continue
        if not any(_exchanges(code, s, sums, homes) for s in between) or _clips_again(code, clip, clips, step):
            continue
        yield Hit(
            code.span(clip),
            "Each rank clips its own gradients here, by a norm of its own, and the ranks are summed afterwards: "
            "what the step uses is not the clipped gradient of the whole batch.",
            _fix(code, clip, step, between),
        )


def _sums(code: Code) -> set[ast.Call]:
    """Return the calls that sum or average gradients over all ranks."""
    found = set()
    for call in code.calls(DIST + "all_reduce"):
        given, op = code.argument(call, "tensor", 0), code.argument(call, "op", 1)
        if given is None or not GRADIENT.search(dotted_name(given)) or code.argument(call, "group", 2) is not None:
            continue
        if op is None or code.name(op).endswith((".SUM", ".AVG")):
            found.add(call)
    return found


def _exchanges(code: Code, statement: ast.stmt, sums: set[ast.Call], homes: set[Function]) -> bool:
    calls = list(code.inside(statement, ast.Call))
    return any(c in sums or code.local_function(c) in homes for c in calls)


def _clips_again(code: Code, clip: ast.Call, clips: list[ast.Call], step: ast.stmt) -> bool:
    return any(code.order[clip] < code.order[c] < code.order[step] for c in clips)


def _fix(code: Code, clip: ast.Call, step: ast.stmt, between: list[ast.stmt]) -> Fix | None:
    """Return a fix that moves the line down to the step, if nothing in between needs the norm."""
    statement = code.statement(clip)
    lines, before = statement_lines(code, statement), statement_lines(code, step)
    if lines is None or before is None or step not in code.block(statement):
        return None
    norms = {dotted_name(t) for t in statement.targets} if isinstance(statement, ast.Assign) else set()
    if norms & {n.id for s in between for n in code.inside(s, ast.Name)}:
        return None
    return Fix("Clip what the step uses", (Edit(lines, ""), Edit(Span(before.start, before.start), code.cut(lines))))
