"""Gradients that are clipped between a step and the next backward pass, where they are no longer used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import own_lines, statement_lines
from dtdebug_taxonomy.checks.shared.gradients import CLIPS, calls_method, only_measures, steps
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.text import Span


def check(code: Code) -> Iterator[Hit]:
    """Report the clip, where backward pass, step and clip follow each other in one block."""
    clips = code.calls(*CLIPS)
    for clip in clips:
        statement = code.statement(clip)
        block = code.block(statement)
        at = block.index(statement) if statement in block else 0
        step = next((s for s in reversed(block[:at]) if steps(code, s)), None)
        if step is None or only_measures(code, clip):
            continue
        before, between, after = block[: block.index(step)], block[block.index(step) + 1 : at], block[at + 1 :]
        if not any(calls_method(code, s, "backward") for s in before):
            continue
        if any(calls_method(code, s, "backward") for s in between):
            continue
        if any(calls_method(code, s, "step", "backward") and not _schedules(code, s) for s in after):
            continue
        if any(code.function(c) is code.function(clip) and code.order[c] < code.order[step] for c in clips):
            continue
        yield Hit(
            code.span(clip),
            "The step has used these gradients already, so the limit has no effect: clip before step().",
            _fix(code, statement, step),
        )


def _schedules(code: Code, statement: ast.stmt) -> bool:
    return "sched" in code.source_of(statement).lower() and not steps(code, statement)


def _fix(code: Code, clip: ast.stmt, step: ast.stmt) -> Fix | None:
    lines = statement_lines(code, clip)
    before = statement_lines(code, step)
    if lines is None or before is None or own_lines(code, clip) is None or not code.cut(lines).endswith("\n"):
        return None
    return Fix("Clip before the step", (Edit(Span(before.start, before.start), code.cut(lines)), Edit(lines, "")))
