"""Finds places that every rank reaches: no condition on the rank around them or their callers in the file."""

from __future__ import annotations

import ast
import re

from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank
from dtdebug_taxonomy.checks.shared.spawning import SPAWN
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard, guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import several
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS, Function

_ASKS = re.compile(
    r"rank|main|master|primary|chief|leader|zero|root|should|do_save|proc|verbose|first|writer|logger", re.IGNORECASE
)
_OWN = re.compile(
    r"rank|uuid|hostname|pid|tmp|temp|buffer|bytesio|worker|process|device|gpu|shard|(^|_)(fold|trial)(_|$)",
    re.IGNORECASE,
)
_SUFFIX = re.compile(r"\.te?mp\b")
"""Ending of a file that is renamed when it is complete."""
_ENTRY = re.compile(r"_*(main|train|run|worker|fit|demo|start|launch|entry)\w*", re.IGNORECASE)
_MAY_BE_ONE = re.compile(r"rank|main|master|primary|chief|leader|zero|root|should|do_save|proc", re.IGNORECASE)
_QUOTED = re.compile(r"""(["'])[a-z0-9_./-]{0,80}\1""")
"""Short quoted words, which are parts of a path rather than of a condition on the rank."""
_IN_TURN = re.compile(r"first|zero|main|master|rank|lock", re.IGNORECASE)
"""Contexts in which the ranks run one after another, or rank 0 before the others."""
_AWARE = re.compile(r"_*(init|save|setup|set_up|prepare|train|fit|run|main|build|configure|start)\w*", re.IGNORECASE)


def for_all(code: Code, node: ast.AST, depth: int = 4, inside: tuple[Function, ...] = ()) -> bool:
    """True if every rank reaches a place, according to this file; a call inside a function adds no way to it."""
    if guards(code).around(node):
        return False
    function: Function | None = None
    inner: ast.AST = node
    for up in code.ancestors(node):
        if isinstance(up, ast.If | ast.IfExp) and inner is not up.test and asks(code, up.test):
            return False
        if isinstance(inner, ast.stmt) and any(_leaves_by_rank(code, s, inner) for s in code.block(inner)):
            return False
        if isinstance(up, FUNCTIONS):
            function = up
            break
        inner = up
    if function is None or function in inside:
        return True
    if not code.is_plain(function) or not depth:
        return False
    is_method = isinstance(code.parent.get(function), ast.ClassDef)
    callers = code.callers.get(function) or (code.methods(function.name) if is_method else [])
    if not callers:
        return not is_method and (bool(_ENTRY.fullmatch(function.name)) or _is_spawned(code, function))
    return all(for_all(code, c, depth - 1, (*inside, function)) for c in callers)


def _is_spawned(code: Code, function: Function) -> bool:
    """True if a function is what each spawned process runs."""
    return any(dotted_name(code.argument(c, "fn", 0)) == function.name for c in code.calls(*SPAWN))


def nearby_guard(code: Code, node: ast.AST, depth: int = 3) -> Guard | None:
    """Return a condition on the main process near a place that every rank reaches.

    The condition is in the same function, for a constructor in its class. Code that tests the rank a few lines away is
    written for several ranks, so this place was probably forgotten.
    """
    function = code.function(node)
    main = main_guard(code, function) if function is not None and depth else None
    return main if function and main and all_in(code, node, function, depth - 1) else None


def nearby_module_guard(code: Code, node: ast.AST) -> Guard | None:
    """Return such a condition for a place outside functions; None if the program starts the ranks itself."""
    if code.function(node) is not None or code.calls(*SPAWN) or not for_all(code, node):
        return None
    return _main_in(code, code.tree)


def main_guard(code: Code, function: Function) -> Guard | None:
    """Return the first main-process condition in a function, for a constructor in its class; None for minor methods."""
    home: ast.AST = function
    if function.name in {"__init__", "__post_init__", "setup"}:
        home = code.class_of(function) or function
    elif code.class_of(function) is not None and not _AWARE.fullmatch(function.name):
        return None
    return _main_in(code, home)


def _main_in(code: Code, home: ast.AST) -> Guard | None:
    """Return the first condition on the main process in a function or class."""
    known: dict[ast.AST, Guard | None] = code.__dict__.setdefault("_main_in", {})
    if home not in known:
        tests = ((guards(code).test(condition.test), condition) for condition in code.inside(home, ast.If))
        known[home] = next(
            (Guard(t, c) for t, c in tests if t and t.value == "0" and t.equal and t.which in {"global", "local"}), None
        )
    return known[home]


def all_within(code: Code, node: ast.AST, function: Function) -> bool:
    """True if nothing in its function keeps any rank from a place."""
    if not code.is_plain(function) or guards(code).around(node):
        return False
    inner: ast.AST = node
    for up in code.ancestors(node):
        if isinstance(up, ast.If | ast.IfExp) and inner is not up.test and _leaves_some_out(code, up, inner):
            return False
        if isinstance(up, ast.With) and any(_IN_TURN.search(code.source_of(i.context_expr)) for i in up.items):
            return False
        if isinstance(inner, ast.stmt) and any(_leaves_by_rank(code, s, inner) for s in code.block(inner)):
            return False
        if up is function:
            break
        inner = up
    return True


def _leaves_some_out(code: Code, up: ast.If | ast.IfExp, inner: ast.AST) -> bool:
    """True if a branch may be for one rank, or is for single-process runs: `if world_size == 1`."""
    if _may_be_one(code, up.test):
        return True
    many = several(code, up.test)
    return many is not None and many is not (inner is up.body or (isinstance(up, ast.If) and inner in up.body))


def all_in(code: Code, node: ast.AST, function: Function, depth: int) -> bool:
    """True if nothing in its function or in its known callers keeps any rank from a place."""
    if not all_within(code, node, function):
        return False
    is_method = isinstance(code.parent.get(function), ast.ClassDef)
    callers = code.callers.get(function) or (code.methods(function.name) if is_method else [])
    others = [c for c in callers if code.function(c) is not function]
    return all(for_all(code, c, 2) or nearby_guard(code, c, depth) is not None for c in others)


def for_all_in(code: Code, node: ast.AST) -> bool:
    """True if no condition around a place in its function, or around calls of that function here, may test the rank."""
    function = code.function(node)
    calls = [node, *(code.callers.get(function, ()) if function is not None else ())]
    return not any(
        guards(code).around(place)
        or any(isinstance(up, ast.If | ast.IfExp) and asks(code, up.test) for up in code.ancestors(place))
        for place in calls
    )


def _may_be_one(code: Code, test: ast.expr) -> bool:
    return bool(_MAY_BE_ONE.search(_QUOTED.sub("", code.source_of(test))))


def asks(code: Code, test: ast.expr) -> bool:
    """True if a condition may test the rank, judging by its names."""
    written = code.source_of(test)
    return bool(_ASKS.search(written)) and "__name__" not in written


def is_shared(code: Code, path: ast.expr, *, listed: bool = False) -> bool:
    """True if all ranks definitely mean the same path; with `listed`, an item of a sorted list qualifies."""
    values = [path, *(v for n in code.inside(path, ast.Name, ast.Attribute) for v in code.values(n) if v is not None)]
    if isinstance(path, ast.Name) and len(values) > 1 and None not in code.values(path):
        del values[0]  # what it is called says less than what it is
    if any(_OWN.search(_SUFFIX.sub("", code.source_of(v))) or depends_on_rank(code, v) for v in values):
        return False
    return not any(_of_a_loop(code, n, listed=listed) for v in values for n in code.inside(v, ast.Name))


def _of_a_loop(code: Code, name: ast.Name, *, listed: bool) -> bool:
    """True if a name is a loop variable over data that may be split between ranks."""
    for binding in code.bound(name):
        if binding.how in {"loop", "with"} and isinstance(binding.node, ast.For | ast.AsyncFor | ast.comprehension):
            iterated = binding.node.iter
            if _is_counter(code, binding.node, name.id):
                continue  # the same in the same round
            values = [v.value if isinstance(v, ast.Subscript) else v for v in code.values(iterated)]
            if listed and all(isinstance(v, ast.Call) and code.name(v.func) == "sorted" for v in values):
                continue
            if not (isinstance(iterated, ast.Call) and code.name(iterated.func) in {"range", "tqdm.trange"}):
                return True
    return False


def _is_counter(code: Code, loop: ast.For | ast.AsyncFor | ast.comprehension, name: str) -> bool:
    """True for the number that `enumerate()` gives in a loop."""
    if not isinstance(loop.target, ast.Tuple) or dotted_name(loop.target.elts[0]) != name:
        return False
    return isinstance(loop.iter, ast.Call) and code.name(loop.iter.func) == "enumerate"


def _leaves_by_rank(code: Code, statement: ast.stmt, until: ast.stmt) -> bool:
    if not isinstance(statement, ast.If) or code.order[statement] >= code.order[until]:
        return False
    leaves = isinstance(statement.body[-1], ast.Return | ast.Continue)
    return leaves and asks(code, statement.test)
