"""Finds where a model got its wrapper (`DistributedDataParallel`, FSDP), and whether every run has it."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from dtdebug_taxonomy.checks.shared.flow import is_never_run
from dtdebug_taxonomy.checks.shared.names import DDP, FSDP
from dtdebug_taxonomy.checks.shared.preparing import PREPARED, prepares_model
from dtdebug_taxonomy.checks.shared.values import returned_values
from dtdebug_taxonomy.checks.shared.wrappers import code_of
from dtdebug_taxonomy.source.python.bindings import Binding, name_scope, surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import SCOPES, Function
from dtdebug_taxonomy.source.python.values import KEEPS

DDPS = {DDP, "apex.parallel.DistributedDataParallel"}
DATA_PARALLEL = {
    "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel",
    "torch.nn.parallel.data_parallel.DataParallel",
}
FSDP1 = {FSDP, "fairscale.nn.FullyShardedDataParallel", "fairscale.nn.data_parallel.FullyShardedDataParallel"}
_KEPT = KEEPS | {"compile"}
_ASKS = re.compile(
    r"\b(isinstance|hasattr|getattr|type|unwrap\w*|is_parallel\w*|de_parallel)\b|\.module\b|_ddp\b|wrapped"
)
_DISTRIBUTED = re.compile(
    r"distribut|\bddp|fsdp|parallel|world_?size|is_?dist|n_?gpus?\b|num_?gpus|multi_?gpu|device_count|rank|strategy|is_initialized|sharded",
    re.IGNORECASE,
)


class Wrap(NamedTuple):
    """Call that wraps a model, as seen from a use of the model."""

    call: ast.Call
    always: bool
    """True if the model is wrapped there in every run; else only in some, as in `if args.distributed:`."""
    home: Code
    """File that contains the call."""


def wrap_of(code: Code, node: ast.expr | None, names: set[str], depth: int = 6) -> Wrap | None:
    """Return the wrap by one of these callables that an expression definitely or possibly results from.

    None if there is none, if it is unknown, or if the bare model may have been taken out again.
    """
    if node is None or depth == 0:
        return None
    if isinstance(node, ast.Call):
        return _of_call(code, node, names, depth)
    if isinstance(node, ast.NamedExpr):
        return wrap_of(code, node.value, names, depth - 1)
    if isinstance(node, ast.IfExp):
        one, other = (wrap_of(code, n, names, depth - 1) for n in (node.body, node.orelse))
        if one and other:
            return one._replace(always=one.always and other.always)
        found, rest = (one, node.orelse) if one else (other, node.body)
        if found is None or _ASKS.search(code.source_of(node.test)) or ".module" in code.source_of(rest):
            return None
        return found._replace(always=False)
    return _of_name(code, node, names, depth) if dotted_name(node) else None


def _of_call(code: Code, call: ast.Call, names: set[str], depth: int) -> Wrap | None:
    name = code.name(call.func)
    if name in names:
        return None if is_never_run(code, call) else Wrap(call, always=True, home=code)
    if PREPARED in names and prepares_model(code, call, 0):
        return Wrap(call, always=False, home=code)
    if name == "torch.compile" and call.args:
        return wrap_of(code, call.args[0], names, depth - 1)
    if isinstance(call.func, ast.Attribute) and call.func.attr in _KEPT:
        return wrap_of(code, call.func.value, names, depth - 1)
    return _of_results(code, call, names, depth)


def _of_results(code: Code, call: ast.Call, names: set[str], depth: int, place: int | None = None) -> Wrap | None:
    """Return the wrap of a function's result, in this file or another; `place` selects one of several results."""
    defined = code_of(code, call)
    if defined is None or _returns_first(code, call, defined[1]):
        return None
    home, function = defined
    values = returned_values(home, function)
    if place is not None:
        values = [v.elts[place] if isinstance(v, ast.Tuple) and place < len(v.elts) else None for v in values]
    wraps = [w for value in values if (w := wrap_of(home, value, names, depth - 1))]
    if not wraps:
        return None
    return wraps[-1]._replace(always=len(wraps) == len(values) and all(w.always for w in wraps))


def _returns_first(code: Code, call: ast.Call, function: Function) -> bool:
    """True if the call passes False for the condition of an early return: `if not training: return model`."""
    denied = {k.arg for k in call.keywords if isinstance(k.value, ast.Constant) and k.value.value is False}
    return any(
        isinstance(s.test, ast.UnaryOp)
        and isinstance(s.test.op, ast.Not)
        and dotted_name(s.test.operand) in denied
        and isinstance(s.body[-1], ast.Return)
        for s in (code.inside(function, ast.If) if denied else ())
    )


def _of_name(code: Code, node: ast.expr, names: set[str], depth: int) -> Wrap | None:
    bindings = _bindings(code, node)
    if _is_taken_out(code, node) or any(
        isinstance(b.value, ast.Attribute) and b.value.attr == "module" for b in bindings
    ):
        return None
    if not bindings or any(b.how not in {"assign", "import", "definition", "argument"} for b in bindings):
        return None
    if any(b.how == "argument" for b in bindings) and not _is_rewrapped(code, bindings, node):
        return None
    wraps = [_of_binding(code, b, node, names, depth) for b in bindings]
    if all(isinstance(b.node, ast.arg) for b in bindings):
        sure = [w for w in wraps if w]
        return sure[0]._replace(always=all(w.always for w in sure)) if len(sure) == len(wraps) else None
    last = max((n for n, w in enumerate(wraps) if w), default=-1)
    wrap = wraps[last] if last >= 0 else None
    if wrap is None:
        return None
    for later in bindings[last + 1 :]:
        if surely_before(code, bindings[last].node, later.node) is not None:
            return None
    name = dotted_name(node)
    elsewhere = "." in name and len(bindings) < len(code.bindings.get((name_scope(code, node, name), name), ()))
    always = wrap.always and ((all(wraps) and not elsewhere) or not _conditional(code, bindings[last].node, node))
    return wrap._replace(always=always)


def _is_rewrapped(code: Code, bindings: list[Binding], node: ast.expr) -> bool:
    """True if a function that this file does not call wraps its bare argument in some runs."""
    name, function = dotted_name(node), code.function(node)
    return (function is None or function not in code.callers) and any(
        isinstance(b.value, ast.Call) and b.value.args and dotted_name(b.value.args[0]) == name for b in bindings
    )


def _is_taken_out(code: Code, node: ast.expr) -> bool:
    """True if a method puts the inner model into the attribute that held the wrapper."""
    name = dotted_name(node)
    if "." not in name:
        return False
    bound = code.bindings.get((name_scope(code, node, name), name), ())
    return any(f"{name}.module" in code.source_of(b.value) for b in bound if b.value is not None)


def _of_binding(code: Code, binding: Binding, node: ast.expr, names: set[str], depth: int) -> Wrap | None:
    """Return the wrap that a binding gives to a name, also as one of several results: `model, optimizer = build()`."""
    assign = binding.node
    if binding.value is not None or not isinstance(assign, ast.Assign) or not isinstance(assign.value, ast.Call):
        found = wrap_of(code, binding.value, names, depth - 1)
        return None if found and dotted_name(binding.value) and _tests_wrap(code, assign) else found
    target = next((t for t in assign.targets if isinstance(t, ast.Tuple)), None)
    place = (
        next((n for n, e in enumerate(target.elts) if dotted_name(e) == dotted_name(node)), None) if target else None
    )
    if place is None:
        return None
    if PREPARED in names and prepares_model(code, assign.value, place):
        return Wrap(assign.value, always=False, home=code)
    return _of_results(code, assign.value, names, depth, place)


def _tests_wrap(code: Code, statement: ast.AST) -> bool:
    """True if an `if` around a statement of a function tests how the model is wrapped, so that a branch unwraps it."""
    inner = statement
    for up in code.ancestors(statement):
        if isinstance(up, SCOPES):
            return False
        if isinstance(up, ast.If) and inner is not up.test and _ASKS.search(code.source_of(up.test)):
            return True
        inner = up
    return False


def _bindings(code: Code, node: ast.expr) -> list[Binding]:
    """Return the possible bindings of a name; of a `self` attribute, as the constructor or this function leaves it."""
    name = dotted_name(node)
    if not name.startswith(("self.", "cls.")):
        return code.bound(node)
    here = code.bindings.get((name_scope(code, node, name), name), [])
    mine = code.function(node)
    this = code.statement(node)
    if any(
        code.function(b.node) is mine and code.order[b.node] < code.order[node] and b.node is not this for b in here
    ):
        return code.bound(node)
    return [b for b in here if _surely_done(code, b, mine, node) and not _runs_before(code, mine, b)]


def _surely_done(code: Code, binding: Binding, mine: Function | None, node: ast.AST) -> bool:
    """True if another method's binding is done before this place: by the constructor, or by a call."""
    setter = code.function(binding.node)
    if setter is None or setter.name == "__init__":
        return setter is not None
    for call in code.callers.get(setter, ()):
        caller = code.function(call)
        if caller is not None and caller.name == "__init__":
            return True
        if caller is mine and code.order[call] < code.order[node]:
            return True
        users = code.callers.get(mine, ()) if mine is not None else ()
        if any(code.function(c) is caller and code.order[c] > code.order[call] for c in users):
            return True
    return False


def _runs_before(code: Code, function: Function | None, binding: Binding) -> bool:
    """True if the method that binds an attribute calls this function before it does so."""
    if function is None:
        return False
    return any(
        code.function(call) is code.function(binding.node) and code.order[call] < code.order[binding.node]
        for call in code.callers.get(function, ())
    )


def _conditional(code: Code, binding: ast.AST, use: ast.AST) -> bool:
    """True if a binding is made only in some runs, seen from a use."""
    around = set(map(id, code.ancestors(use)))
    for up in code.ancestors(binding):
        if id(up) in around or isinstance(up, SCOPES):
            return False
        if isinstance(up, ast.If | ast.IfExp | ast.Try | ast.While | ast.Match):
            return True
    return False


def asks_wrap(code: Code, node: ast.AST, wrap: Wrap) -> bool:
    """True if the code around a use first tests how, or whether, the model is wrapped."""
    inner = node
    for up in code.ancestors(node):
        if isinstance(up, ast.Try) and inner in up.body and up.handlers:
            return True
        test: ast.AST | None = None
        if (isinstance(up, ast.If | ast.IfExp | ast.While) and inner is not up.test) or (
            isinstance(up, ast.BoolOp) and inner is not up.values[0]
        ):
            test = up if isinstance(up, ast.BoolOp) else up.test
        if test is not None:
            text = code.source_of(test)
            if _ASKS.search(text):
                return True
            rank = isinstance(test, ast.expr) and guards(code).test(test) is not None
            if not wrap.always and not rank and (_DISTRIBUTED.search(text) or _same_test(code, wrap, text)):
                return True
        if isinstance(up, SCOPES):
            return _left_before(code, node, wrap) or (not wrap.always and _ruled_out(code, node, wrap))
        inner = up
    return False


def _left_before(code: Code, node: ast.AST, wrap: Wrap) -> bool:
    """True if an earlier `if` on the wrapper leaves the function, so that only one kind of model gets here."""
    statement: ast.AST = code.statement(node)
    while isinstance(statement, ast.stmt) and not isinstance(statement, SCOPES):
        for earlier in code.block(statement):
            if earlier is statement:
                break
            if isinstance(earlier, ast.If) and isinstance(earlier.body[-1], ast.Return | ast.Continue | ast.Raise):
                text = code.source_of(earlier.test)
                if _ASKS.search(text) or (not wrap.always and _DISTRIBUTED.search(text)):
                    return True
        statement = code.parent.get(statement, code.tree)
        while not isinstance(statement, ast.stmt | ast.Module):
            statement = code.parent[statement]
    return False


def _ruled_out(code: Code, node: ast.AST, wrap: Wrap) -> bool:
    """True if an earlier error ends the runs in which the conditions of the wrap and of the use both hold.

    `if args.ddp: if args.encoders > 1: raise ...`, then `if args.ddp: model = DDP(model)` and a use under
    `if args.encoders > 1:`.
    """
    if wrap.home is not code:
        return False
    wrapped, used = _conditions(code, wrap.call), _conditions(code, node)
    if not wrapped or not used:
        return False
    for error in code.nodes(ast.Raise):
        if code.function(error) is code.function(wrap.call) and code.order[error] < code.order[wrap.call]:
            asked_there = _conditions(code, error)
            if asked_there & wrapped and asked_there & used and asked_there <= wrapped | used:
                return True
    return False


def _conditions(code: Code, node: ast.AST) -> set[str]:
    """Return the source of the conditions that hold at a node, by the `if`s around it in its function."""
    found: set[str] = set()
    inner = node
    for up in code.ancestors(node):
        if isinstance(up, SCOPES):
            break
        if isinstance(up, ast.If) and inner in up.body:
            parts = up.test.values if isinstance(up.test, ast.BoolOp) and isinstance(up.test.op, ast.And) else [up.test]
            found |= {code.source_of(part) for part in parts}
        inner = up
    return found


def _same_test(code: Code, wrap: Wrap, text: str) -> bool:
    home = wrap.home
    around = (a for a in home.ancestors(wrap.call) if isinstance(a, ast.If | ast.IfExp))
    words = {w for a in around for w in re.findall(r"[A-Za-z_]\w+", home.source_of(a.test))} - {"args", "self", "not"}
    return bool(words & set(re.findall(r"[A-Za-z_]\w+", text)))


def bare_before(code: Code, node: ast.expr, names: set[str]) -> Wrap | None:
    """Return the wrap around the very object that a name refers to: `m` after `ddp = DDP(m)`."""
    written = dotted_name(node)
    if not written:
        return None
    bound = {id(b.node) for b in code.bound(node)}
    for call in code.calls(*names):
        inner = code.argument(call, "module", 0)
        if inner is None or dotted_name(inner) != written or code.order[call] > code.order[node]:
            continue
        if code.scope(call) is code.scope(node) and surely_before(code, call, node) is not None:
            then = {id(b.node) for b in code.bound(inner)}
            if then == bound and id(code.statement(call)) not in bound:
                return Wrap(call, surely_before(code, call, node) is True, code)
    return None
