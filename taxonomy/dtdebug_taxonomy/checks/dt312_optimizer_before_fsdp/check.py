"""Optimizers created before FSDP replaces the parameters."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.course import Step, courses
from dtdebug_taxonomy.checks.shared.fixing import indent_of, statement_lines
from dtdebug_taxonomy.checks.shared.names import FULLY_SHARD, OPTIMIZERS
from dtdebug_taxonomy.checks.shared.wrapping import FSDP1, wrap_of
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_WRAPS = FSDP1 | FULLY_SHARD
_OWN = "configure_optimizers"


def check(code: Code) -> Iterator[Hit]:
    """Report the optimizer."""
    wraps = code.calls(*_WRAPS)
    if not wraps:
        return
    by_model: dict[tuple[object, ...], list[ast.Call]] = defaultdict(list)
    for wrap in wraps:
        inner = code.argument(wrap, "module", 0)
        if inner is not None and dotted_name(inner):
            by_model[_of(code, wrap, inner)].append(wrap)
    made: dict[str, int] = {}
    for optimizer in _optimizers(code):
        made[_target(code, optimizer)] = max(code.order[optimizer], made.get(_target(code, optimizer), -1))
    for optimizer in _optimizers(code):
        model = _model(code, _parameters(code, optimizer))
        if model is None or not (same := by_model.get(_of(code, optimizer, model))) or wrap_of(code, model, FSDP1):
            continue
        wrap = next((w for w in same if _wraps_after(code, w, optimizer)), None)
        if wrap is None or _sharded_before(code, wraps, optimizer, model):
            continue
        if made.get(_target(code, optimizer) or "?", -1) > code.order[wrap]:
            continue  # another optimizer takes its place
        name = code.name(wrap.func).rsplit(".", 1)[-1]
        yield Hit(
            code.span(optimizer),
            f"The optimizer holds the parameters as they were before {name} (line "
            f"{code.text.place(code.span(wrap).start).line}) replaced them by shards: its steps no longer change "
            "the model.",
            _fix(code, optimizer, wrap),
        )
    yield from _across_functions(code)


def _across_functions(code: Code) -> Iterator[Hit]:
    """Report optimizers that are made in another function than the wrap."""
    seen: set[ast.AST] = set()
    for steps in courses(code):
        made = [(n, s) for n, s in enumerate(steps) if s.name in OPTIMIZERS and s.given]
        lineages = {n: s.given[0].lineage() for n, s in made}
        wraps = [(n, s) for n, s in enumerate(steps) if s.name in _WRAPS and s.given]
        for at, optimizer in made:
            after = [(n, w) for n, w in wraps if n > at and w.given[0] in lineages[at] and _replaces(w)]
            if not after or any(n < at and w.given[0] in lineages[at] for n, w in wraps):
                continue
            last, wrap = after[-1]
            if any(n > last and wrap.given[0] in lineages[n] for n, _ in made) or wrap.excludes(optimizer):
                continue  # another optimizer takes its place
            if wrap.code.function(wrap.node) is optimizer.code.function(optimizer.node):
                continue
            node, by = optimizer.seen_beside(wrap, code), wrap.seen_beside(optimizer, code)
            if node is None or by is None or node in seen:
                continue
            seen.add(node)
            yield Hit(
                code.span(node),
                f"The optimizer holds the parameters as they were before {wrap.name.rpartition('.')[2]} (line "
                f"{code.text.place(code.span(by).start).line}) replaced them by shards: its steps no longer change "
                "the model.",
            )


def _replaces(wrap: Step) -> bool:
    """True if a wrap replaces the parameters of its model."""
    if wrap.name not in FSDP1 or not isinstance(wrap.node, ast.Call):
        return True
    return wrap.code.argument(wrap.node, "use_orig_params") is None and not wrap.code.has_unpacking(wrap.node)


def _of(code: Code, call: ast.Call, model: ast.expr) -> tuple[object, ...]:
    """Return a key for calls of one function on the same model: its scope, name and bindings."""
    return code.scope(call), dotted_name(model), frozenset(id(b.node) for b in code.bound(model))


def _optimizers(code: Code) -> Iterator[ast.Call]:
    yield from code.calls(*OPTIMIZERS)
    yield from (c for c in code.methods(_OWN) if dotted_name(c.func) not in {f"self.{_OWN}", f"super.{_OWN}"})
    for name, last in (("optim", "AdamW"), ("optim", "Adam"), ("optimizers", "FusedAdam")):
        yield from (
            c
            for c in code.methods(last)
            if dotted_name(c.func).endswith(f"{name}.{last}") and not _is_known_optimizer(code, c)
        )


def _parameters(code: Code, optimizer: ast.Call) -> ast.expr | None:
    """Return the parameters that an optimizer is made from, also for `model.configure_optimizers()`."""
    if isinstance(optimizer.func, ast.Attribute) and optimizer.func.attr == _OWN:
        return ast.Call(ast.Attribute(optimizer.func.value, "parameters", ast.Load()), [], [])
    return code.argument(optimizer, "params", 0)


def _is_known_optimizer(code: Code, call: ast.Call) -> bool:
    return code.name(call.func) in OPTIMIZERS


def _model(code: Code, parameters: ast.expr | None, depth: int = 3) -> ast.expr | None:
    """Return the model whose parameters an optimizer gets."""
    if parameters is None or not depth:
        return None
    if isinstance(parameters, ast.Call):
        if isinstance(parameters.func, ast.Attribute) and parameters.func.attr == "parameters":
            return parameters.func.value
        if code.name(parameters.func) in {"list", "tuple", "filter"} and parameters.args:
            return _model(code, parameters.args[-1], depth - 1)
    if isinstance(parameters, ast.ListComp | ast.GeneratorExp):
        return _model(code, parameters.generators[0].iter, depth - 1)
    if isinstance(parameters, ast.Name):
        values = code.values(parameters)
        return _model(code, values[0], depth - 1) if len(values) == 1 else None
    return None


def _wraps_after(code: Code, wrap: ast.Call, optimizer: ast.Call) -> bool:
    """True if a later call wraps the optimizer's model, so that its parameters are replaced."""
    if code.order[wrap] < code.order[optimizer] or surely_before(code, optimizer, wrap) is None:
        return False
    original = code.argument(wrap, "use_orig_params")
    return code.name(wrap.func) not in FSDP1 or (original is None and not code.has_unpacking(wrap))


def _sharded_before(code: Code, wraps: list[ast.Call], optimizer: ast.Call, model: ast.expr) -> bool:
    return any(
        code.order[w] < code.order[optimizer] and dotted_name(code.argument(w, "module", 0)) == dotted_name(model)
        for w in wraps
    )


def _target(code: Code, optimizer: ast.Call) -> str:
    assign = code.parent[optimizer]
    return dotted_name(assign.targets[0]) if isinstance(assign, ast.Assign) and len(assign.targets) == 1 else ""


def _shards(code: Code, statement: ast.stmt) -> bool:
    """True if a statement shards the model, or a part of it, by FSDP2."""
    return any(code.name(c.func) in FULLY_SHARD for c in code.inside(statement, ast.Call))


def _fix(code: Code, optimizer: ast.Call, wrap: ast.Call) -> Fix | None:
    """Return a fix that moves the optimizer's line below the wrap, if nothing in between uses it."""
    made, name = code.parent[optimizer], _target(code, optimizer)
    last = code.statement(wrap)
    if not name or not isinstance(made, ast.stmt) or code.block(made) is not code.block(last) or hasattr(last, "body"):
        return None
    block = code.block(last)
    last = next(s for s in reversed(block) if s is last or _shards(code, s))
    lines, end = statement_lines(code, made), statement_lines(code, last)
    if lines is None or end is None or not code.text[: end.end].endswith("\n"):
        return None
    between = code.text[lines.end : end.end]
    if name.rsplit(".", 1)[-1] in between:
        return None
    text = indent_of(code, last) + code.cut(lines).strip() + "\n"
    return Fix("Make it after the wrap", (Edit(lines, ""), Edit(Span(end.end, end.end), text)))
