"""Gradients that are clipped between a scaled backward pass and its step without `unscale_`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.course import Step, courses
from dtdebug_taxonomy.checks.shared.fixing import indent_of, statement_lines
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_CLIPS = tuple(
    f"torch.nn.utils.{home}{name}" for home in ("", "clip_grad.") for name in ("clip_grad_norm_", "clip_grad_value_")
)
_PRECISION = re.compile(r"amp|scal|fp16|half|mixed|dtype|precision|bf16", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the clip."""
    clips = code.calls(*_CLIPS)
    if not clips or not code.methods("scale"):
        return
    backwards = [(c, name) for c in code.methods("backward") if (name := _scaler(code, c))]
    yield from _across_functions(code)
    for clip in clips:
        for backward, scaler in backwards:
            step = _step(code, clip, scaler)
            if step is None or not _follows(code, backward, clip) or _is_conditional(code, clip, backward):
                continue
            if _is_unscaled(code, clip, scaler):
                continue
            yield Hit(
                code.span(clip),
                f"The gradients are still multiplied by the scale of {scaler} here, so they are cut to a limit that is "
                f"thousands of times too low: {scaler}.unscale_() comes first.",
                _fix(code, clip, backward, step, scaler),
            )
            break


def _across_functions(code: Code) -> Iterator[Hit]:
    """Report clips between the backward pass and the step of a scaler that are in functions of their own."""
    seen: set[ast.AST] = set()
    for steps in courses(code):
        for place, clip in enumerate(steps):
            if clip.name not in _CLIPS or clip.code is not code or clip.node in seen:
                continue
            scale = next((s for s in reversed(steps[:place]) if s.attribute == "scale" and s.on is not None), None)
            step = next((s for s in steps[place:] if scale and s.on is scale.on and s.attribute == "step"), None)
            if scale is None or step is None or clip.excludes(scale) or step.excludes(clip) or step.excludes(scale):
                continue
            if code.function(clip.node) is code.function(step.node) is code.function(scale.node):
                continue
            between = steps[steps.index(scale) : place]
            if any(s.attribute == "unscale_" for s in between) or _is_extra_condition(clip, scale):
                continue
            seen.add(clip.node)
            name = dotted_name(scale.node.func).rpartition(".")[0]  # type: ignore[attr-defined]
            yield Hit(
                code.span(clip.node),
                f"The gradients are still multiplied by the scale of {name} here, so they are cut to a limit that is "
                f"thousands of times too low: {name}.unscale_() comes first.",
            )


def _is_extra_condition(clip: Step, scale: Step) -> bool:
    """True if a condition on the precision is around the clip but not around the backward pass."""
    shared = {p.node for p in scale.places}
    own = (p.node for p in clip.places if isinstance(p.node, ast.If) and p.node not in shared)
    return any(_PRECISION.search(ast.unparse(test.test)) for test in own)


def _scaler(code: Code, backward: ast.Call) -> str:
    """Return the scaler of `scaler.scale(loss).backward()`; empty if there is none or it is disabled."""
    inner = backward.func.value if isinstance(backward.func, ast.Attribute) else None
    if not isinstance(inner, ast.Call) or not isinstance(inner.func, ast.Attribute) or inner.func.attr != "scale":
        return ""
    for value in code.values(inner.func.value):
        if isinstance(value, ast.Call) and code.constant(code.argument(value, "enabled")) is False:
            return ""
    return dotted_name(inner.func.value)


def _step(code: Code, clip: ast.Call, scaler: str) -> ast.Call | None:
    """Return the step of the scaler that follows a clip."""
    for call in code.methods("step"):
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        if dotted_name(receiver) == scaler and call.args and _follows(code, clip, call):
            return call
    return None


def _follows(code: Code, first: ast.Call, then: ast.Call) -> bool:
    """True if a call may follow another one of the same function in one pass."""
    same = code.function(first) is code.function(then) and code.order[first] < code.order[then]
    return same and surely_before(code, first, then) is not None


def _is_conditional(code: Code, clip: ast.Call, backward: ast.Call) -> bool:
    """True if a condition on the scaler or the precision is around the clip but not around the backward pass."""
    shared = set(code.ancestors(backward))
    own = [a for a in code.ancestors(clip) if isinstance(a, ast.If) and a not in shared]
    return any(_PRECISION.search(code.source_of(a.test)) for a in own)


def _is_unscaled(code: Code, clip: ast.Call, scaler: str) -> bool:
    """True if `unscale_` comes before the clip, or is in a function that this one may call."""
    for call in code.methods("unscale_"):
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        if code.function(call) is not code.function(clip) or dotted_name(receiver) != scaler:
            return True
        if code.order[call] < code.order[clip]:
            return True
    return False


def _fix(code: Code, clip: ast.Call, backward: ast.Call, step: ast.Call, scaler: str) -> Fix | None:
    """Return a fix that unscales under the condition that the scaled backward pass is under, and the clip is not."""
    statement = code.statement(clip)
    lines = statement_lines(code, statement)
    around = set(code.ancestors(clip))
    tests = [a for a in code.ancestors(backward) if isinstance(a, ast.If) and a not in around]
    if lines is None or len(tests) > 1 or any(code.statement(backward) not in t.body for t in tests):
        return None
    indent, line = indent_of(code, statement), f"{scaler}.unscale_({code.source_of(step.args[0])})\n"
    for test in tests:
        line = f"if {code.source_of(test.test)}:\n{indent}    {line}"
    return Fix("Divide by the scale first", (Edit(Span(lines.start, lines.start), indent + line),))
