"""Accumulation whose unsynchronised micro-step is the last one before the optimizer's step."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.accumulating import steps
from dtdebug_taxonomy.checks.shared.course import Step, courses
from dtdebug_taxonomy.checks.shared.fixing import indent_of, own_lines
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import several
from dtdebug_taxonomy.source.text import Span

_EVERY, _STEPS = 4, 40
_HOMES = (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)
_SWITCH = "require_backward_grad_sync"
_AVERAGES = ("all_reduce", "reduce_scatter", "all_gather", "allreduce", _SWITCH)
"""Names in programs that average the gradients by themselves."""
_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mod: operator.mod, ast.Mult: operator.mul,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


def check(code: Code) -> Iterator[Hit]:
    """Report the condition of `no_sync()`."""
    known = list(_never_off(code))
    yield from known
    yield from (h for h in _never_off_in_functions(code) if h.span not in {k.span for k in known})
    for call in code.methods("no_sync"):
        loop = next((a for a in code.ancestors(call) if isinstance(a, ast.For)), None)
        quiet = _condition(code, call, loop)
        if loop is None or quiet is None:
            continue
        if _off_in_last_round(code, loop, quiet):
            yield Hit(
                code.span(call),
                "no_sync() is on in the last micro-step, after which the optimizer steps: its gradients are never "
                "averaged, so each rank steps by its own. It belongs into the rounds before.",
            )
            continue
        step = _only_step(code, loop)
        if step is not None and _steps_unsynchronised(code, loop, quiet, step):
            yield Hit(
                code.span(quiet[0]),
                "no_sync() is on in the micro-step after which the optimizer steps: its gradients are never averaged, "
                "so each rank steps by its own. Both conditions have to count alike.",
                _fix(code, quiet, step),
            )
    for loop, test in _switched(code):
        step = _only_step(code, loop)
        if step is not None and _steps_unsynchronised(code, loop, (test, False), step):
            yield Hit(
                code.span(test),
                "This is false in a micro-step after which the optimizer steps: its gradients are never averaged, so "
                "each rank steps by its own. It has to be true where the optimizer steps.",
                _fix(code, (test, False), step),
            )


def _only_step(code: Code, loop: ast.For) -> tuple[ast.expr, bool] | None:
    """Return the condition in a loop under which the optimizer steps, and whether it must hold."""
    found = [c for s in steps(code) if code.order[s] > code.order[loop] and (c := _condition(code, s, loop))]
    return found[0] if len(found) == 1 else None


def _switched(code: Code) -> Iterator[tuple[ast.For, ast.expr]]:
    """Yield a loop and the condition on which it averages gradients: `model.require_backward_grad_sync = ...`."""
    switches = [n for n in code.nodes(ast.Assign) if [getattr(t, "attr", "") for t in n.targets] == [_SWITCH]]
    for switch in switches:
        around = list(code.ancestors(switch))
        loop = next((a for a in around if isinstance(a, _HOMES)), None)
        if not isinstance(loop, ast.For) or sum(loop in set(code.ancestors(s)) for s in switches) > 1:
            continue
        tests = [a.test for a in around[: around.index(loop)] if isinstance(a, ast.If)]
        before = (c for c in code.inside(loop, ast.Call) if code.order[c] < code.order[switch])
        if any(dotted_name(n) == _index(loop) for t in tests for n in _names(t)) or any(
            _goes_back(code, c)
            for c in before  # so that it is about the next micro-step
        ):
            continue
        yield loop, switch.value


def _goes_back(code: Code, call: ast.Call) -> bool:
    """True if a call is a backward pass, or of a function of this file that has one."""
    if getattr(call.func, "attr", "") == "backward":
        return True
    function = code.local_function(call)
    return function is not None and any(function in set(code.ancestors(c)) for c in code.methods("backward"))


def _never_off(code: Code) -> Iterator[Hit]:
    """Report no_sync() around each backward pass of a loop, or of a function without one, that steps the optimizer."""
    if any(name in code.text for name in _AVERAGES):
        return
    blocks = [w for w in code.nodes(ast.With) if any(i.context_expr in _contexts(code) for i in w.items)]
    for block in blocks:
        home = next((a for a in code.ancestors(block) if isinstance(a, _HOMES) and _steps_after(code, a, block)), None)
        passes = [c for c in code.methods("backward") if home in set(code.ancestors(c))] if home else []
        around = [next((b for b in blocks if b in set(code.ancestors(c))), None) for c in passes]
        if passes and None not in around and around[0] is block:
            yield Hit(
                code.span(block.items[0].context_expr),
                "Each backward pass before optimizer.step() runs in no_sync(): no gradient is ever averaged, so each "
                "rank trains a model of its own. The last pass before the step has to run outside.",
                _without(code, block) if len(passes) == 1 and home is _loop(code, block) else None,
            )


def _never_off_in_functions(code: Code) -> Iterator[Hit]:
    """Report such a no_sync() if its backward passes are in functions that it calls."""
    contexts = _contexts(code)
    blocks = {
        w: next(i for i in w.items if i.context_expr in contexts) for w in code.nodes(ast.With) if _is_in(w, contexts)
    }
    seen: set[ast.AST] = set()
    for course in courses(code) if blocks else ():
        passes = [s for s in course if s.attribute == "backward" and not s.is_followed]
        around = [next((p.node for p in s.places if p.node in blocks), None) for s in passes]
        block = around[0] if around else None
        if block is None or None in around or block in seen or _is_apart(code, passes[0], block):
            continue
        later = course[course.index(passes[0]) :]
        if any(s.name.rpartition(".")[2] in _AVERAGES for s in course) or not any(map(_is_optimizer_step, later)):
            continue
        seen.add(block)
        if code.function(passes[0].node) is not code.function(block):
            yield Hit(
                code.span(blocks[block].context_expr),
                "Each backward pass before optimizer.step() runs in no_sync(): no gradient is ever averaged, so each "
                "rank trains a model of its own. The last pass before the step has to run outside.",
            )


def _is_in(block: ast.With, contexts: set[ast.expr]) -> bool:
    return any(i.context_expr in contexts for i in block.items)


def _is_apart(code: Code, backward: Step, block: ast.AST) -> bool:
    """True if a condition decides whether a pass runs in a block."""
    return any(isinstance(p.node, ast.If) and block in set(code.ancestors(backward.node)) for p in backward.places)


def _is_optimizer_step(step: Step) -> bool:
    return step.attribute == "step" and "opt" in dotted_name(step.node.func).lower()  # type: ignore[attr-defined]


def _contexts(code: Code) -> set[ast.expr]:
    return set(code.methods("no_sync"))


def _loop(code: Code, node: ast.AST) -> ast.AST | None:
    return next((a for a in code.ancestors(node) if isinstance(a, _HOMES)), None)


def _steps_after(code: Code, home: ast.AST, block: ast.With) -> bool:
    """True if an optimizer steps in a loop or function after a block; a function within it is another matter."""
    return any(
        "opt" in dotted_name(c.func).lower() and code.order[c] > code.order[block] and home in set(code.ancestors(c))
        for c in code.methods("step")
        if code.function(c) is code.function(block)
    )


def _without(code: Code, block: ast.With) -> Fix | None:
    """Return a fix that takes the context away from its statements."""
    lines = [own_lines(code, s) for s in block.body]
    if len(block.items) != 1 or None in lines or own_lines(code, block) is None:
        return None
    outer, inner = indent_of(code, block), indent_of(code, block.body[0])
    first = code.text.starts[code.text.place(code.span(block).start).line - 1]
    body = code.text.starts[code.text.place(code.span(block.body[0]).start).line - 1]
    starts = [code.text.starts[n - 1] for r in lines if r for n in r if code.text.line(n).startswith(inner)]
    cuts = (Edit(Span(s, s + len(inner) - len(outer)), "") for s in starts)
    return Fix("Average the gradients", (Edit(Span(first, body), ""), *cuts), safe=False)


def _off_in_last_round(code: Code, loop: ast.For, quiet: tuple[ast.expr, bool]) -> bool:
    """True if no_sync() is active only in the last iteration of a loop that the step follows."""
    if any(loop in set(code.ancestors(c)) for c in code.methods("step")):
        return False
    test = quiet[0]
    values = code.values(test)
    if dotted_name(test) and len(values) == 1 and values[0] is not None:
        test = values[0]
    index, size = _index(loop), loop.iter.args[0] if isinstance(loop.iter, ast.Call) and loop.iter.args else None
    last = _STEPS - 1 + _start(code, loop)
    known: dict[str, int] = {index: last} | ({dotted_name(size): _STEPS} if dotted_name(size) else {})
    known |= {dotted_name(n): 1 for n in _names(test) if several(code, n)}
    rounds = [_value(code, test, known | {index: i}) for i in (last - 1, last)]
    return bool(index) and None not in rounds and [bool(r) is quiet[1] for r in rounds] == [False, True]


def _fix(code: Code, quiet: tuple[ast.expr, bool], step: tuple[ast.expr, bool]) -> Fix | None:
    """Return a fix that uses the condition of the optimizer's step for the backward pass."""
    if any(isinstance(n, ast.Call) and dotted_name(n.func) != "len" for n in ast.walk(step[0])):
        return None
    asked = code.source_of(step[0])
    text = f"not ({asked})" if quiet[1] is step[1] else asked
    return Fix("Count as the optimizer's step does", (Edit(code.span(quiet[0]), text),), safe=False)


def _condition(code: Code, node: ast.AST, loop: ast.For | None) -> tuple[ast.expr, bool] | None:
    """Return the only condition between a node and its loop, and whether it must hold."""
    found: list[tuple[ast.expr, bool]] = []
    inner = node
    for up in code.ancestors(node):
        if up is loop:
            return found[0] if len(found) == 1 else None
        if isinstance(up, ast.If) and inner is not up.test:
            found.append((up.test, inner in up.body))
        elif isinstance(up, ast.IfExp) and inner is not up.test:
            found.append((up.test, inner is up.body))
        inner = up
    return None


def _steps_unsynchronised(code: Code, loop: ast.For, quiet: tuple[ast.expr, bool], step: tuple[ast.expr, bool]) -> bool:
    start = _start(code, loop)
    names = {dotted_name(n) for test, _ in (quiet, step) for n in _names(test)}
    index = _index(loop)
    counts = names - {index}
    if not index or len(counts) > 1:
        return False
    for i in range(_STEPS):
        values = dict.fromkeys(counts, _EVERY) | {index: i + start}
        off, steps = _value(code, quiet[0], values), _value(code, step[0], values)
        if off is None or steps is None:
            return False
        if bool(off) is quiet[1] and bool(steps) is step[1]:
            return True
    return False


def _names(test: ast.expr) -> Iterator[ast.expr]:
    """Yield the names in a condition, an attribute counting as one, without those in calls."""
    if dotted_name(test):
        yield test
        return
    if isinstance(test, ast.Call):
        return
    for child in ast.iter_child_nodes(test):
        if isinstance(child, ast.expr):
            yield from _names(child)


def _index(loop: ast.For) -> str:
    target = loop.target
    if isinstance(target, ast.Tuple) and target.elts:
        called = dotted_name(loop.iter.func) if isinstance(loop.iter, ast.Call) else ""
        return dotted_name(target.elts[0]) if called in {"enumerate", "tqdm"} else ""
    return (
        dotted_name(target)
        if isinstance(loop.iter, ast.Call) and dotted_name(loop.iter.func) in {"range", "trange"}
        else ""
    )


def _start(code: Code, loop: ast.For) -> int:
    call = loop.iter
    if isinstance(call, ast.Call) and dotted_name(call.func) == "enumerate":
        value = code.constant(code.argument(call, "start", 1))
        return value if isinstance(value, int) else 0
    return 0


def _value(code: Code, node: ast.expr, values: dict[str, int]) -> int | None:
    """Return the value of an expression in one micro-step; None if it depends on anything else."""
    if dotted_name(node):
        return values.get(dotted_name(node))
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int) else None
    if isinstance(node, ast.Call):
        return _STEPS if dotted_name(node.func) == "len" else None
    if isinstance(node, ast.UnaryOp):
        inner = _value(code, node.operand, values)
        return None if inner is None or not isinstance(node.op, ast.Not) else int(not inner)
    if isinstance(node, ast.BoolOp):
        parts = [_value(code, v, values) for v in node.values]
        if None in parts:
            return None
        return int(all(parts) if isinstance(node.op, ast.And) else any(parts))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _apply(type(node.ops[0]), _value(code, node.left, values), _value(code, node.comparators[0], values))
    if isinstance(node, ast.BinOp):
        return _apply(type(node.op), _value(code, node.left, values), _value(code, node.right, values))
    return None


def _apply(kind: type, left: int | None, right: int | None) -> int | None:
    if left is None or right is None or kind not in _OPERATORS or (kind is ast.Mod and not right):
        return None
    return int(_OPERATORS[kind](left, right))
