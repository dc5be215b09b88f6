"""Gradients that are clipped between a step and the next backward pass, where nothing uses them any more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.fixing import own_lines, statement_lines
from dtdebug_taxonomy.checks.names import OPTIMIZERS
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.text import Span

_CLIPS = tuple(
    f"torch.nn.utils.{home}{name}" for home in ("", "clip_grad.") for name in ("clip_grad_norm_", "clip_grad_value_")
)
_OPTIMIZER = re.compile(r"(^|_)opt(im(izer)?)?s?(_|\d|$)", re.IGNORECASE)
_MEASURES = re.compile(r"inf\b|1e\d\d?\b", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Reports the clip, where backward pass, step and clip follow each other in one block."""
    clips = code.calls(*_CLIPS)
    for clip in clips:
        statement = code.statement(clip)
        block = code.block(statement)
        at = block.index(statement) if statement in block else 0
        step = next((s for s in reversed(block[:at]) if _steps(code, s)), None)
        if step is None or _measures(code, clip):
            continue
        before, between, after = block[: block.index(step)], block[block.index(step) + 1 : at], block[at + 1 :]
        if not any(_calls(code, s, "backward") for s in before) or any(_calls(code, s, "backward") for s in between):
            continue
        if any(_calls(code, s, "step", "backward") and not _schedules(code, s) for s in after):
            continue
        if any(code.function(c) is code.function(clip) and code.order[c] < code.order[step] for c in clips):
            continue
        yield Hit(
            code.span(clip),
            "The step has used these gradients already, so the limit has no effect: clip before step().",
            _fix(code, statement, step),
        )


def _steps(code: Code, statement: ast.stmt) -> bool:
    """Whether it is nothing but a step of an optimizer."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return False
    owner = call.func.value
    made = code.made_by(owner)
    return bool(made and made <= OPTIMIZERS) or bool(_OPTIMIZER.search(dotted(owner).rsplit(".", 1)[-1]))


def _schedules(code: Code, statement: ast.stmt) -> bool:
    return "sched" in code.source_of(statement).lower() and not _steps(code, statement)


def _calls(code: Code, statement: ast.stmt, *names: str) -> bool:
    return any(isinstance(c.func, ast.Attribute) and c.func.attr in names for c in code.inside(statement, ast.Call))


def _measures(code: Code, clip: ast.Call) -> bool:
    """Whether the limit is none, so that only the norm is wanted."""
    limit = code.argument(clip, "max_norm", 1) or code.argument(clip, "clip_value", 1)
    return limit is None or bool(_MEASURES.search(code.source_of(limit)))


def _fix(code: Code, clip: ast.stmt, step: ast.stmt) -> Fix | None:
    lines = statement_lines(code, clip)
    before = statement_lines(code, step)
    if lines is None or before is None or own_lines(code, clip) is None or not code.cut(lines).endswith("\n"):
        return None
    return Fix("Clip before the step", (Edit(Span(before.start, before.start), code.cut(lines)), Edit(lines, "")))
