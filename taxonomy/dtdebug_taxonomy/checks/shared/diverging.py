"""Finds calls that a condition on the rank keeps some ranks from; shared by the checks of diverging ranks."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.checks.shared.names import COLLECTIVES, DIST, TRAINERS
from dtdebug_taxonomy.knowledge.facts import torch_distributed
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard, guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import several
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS, Function

_OPERATIONS = (
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
)
_DIFFERENTIABLE = tuple(f"{DIST}nn.{home}{name}" for home in ("", "functional.") for name in _OPERATIONS)
_HOROVOD = (
    *(
        f"{name}{suffix}"
        for name in ("allreduce", "grouped_allreduce", "allgather", "broadcast", "alltoall", "reducescatter")
        for suffix in ("", "_", "_async", "_async_")
    ),
    *(f"broadcast_{what}" for what in ("parameters", "optimizer_state", "object", "variables", "global_variables")),
    "allgather_object",
    "barrier",
)
_OF_TRAINER = ("train", "evaluate", "predict")
_TRAINERS = frozenset(TRAINERS)


def collectives(code: Code) -> list[ast.Call]:
    """Return the calls that all ranks must make: collectives of the default group, in program order."""
    found = [
        *(c for c in code.calls(*COLLECTIVES) if of_all(code, c)),
        *(c for c in code.calls(*_DIFFERENTIABLE) if code.argument(c, "group") is None),
        *(c for c in horovod.calls(code, *_HOROVOD) if code.argument(c, "process_set") is None),
        *(c for c in code.methods(*_OF_TRAINER) if code.made_by(c.func.value) <= _TRAINERS),  # type: ignore[attr-defined]
    ]
    return sorted(found, key=code.order.__getitem__)


def of_all(code: Code, call: ast.Call) -> bool:
    """True if a torch.distributed function is called for the default group."""
    fact = torch_distributed().functions.get(code.name(call.func).removeprefix(DIST))
    place = fact.parameters.index("group") if fact and "group" in fact.parameters else None
    group = code.argument(call, "group", place)
    if group is None:
        return not code.has_unpacking(call)
    return (isinstance(group, ast.Constant) and group.value is None) or code.name(group).endswith("group.WORLD")


def last_name(code: Code, call: ast.Call) -> str:
    """Return the unqualified name of the called function."""
    return code.name(call.func).rsplit(".", 1)[-1] or getattr(call.func, "attr", "")


def condition(code: Code, call: ast.Call, same: Sequence[ast.AST] = ()) -> Guard | None:
    """Return the condition that keeps some ranks from a call, unless those ranks make one of the same calls.

    Conditions around the call take precedence over early returns before it.
    """
    around = [g for g in guards(code).around(call) if g.test.which != "group"]
    if not around or guards(code).has_counterpart(call, same):
        return None
    return next((g for g in around if not g.early), around[0])


def helpers(code: Code, calls: Iterable[ast.Call]) -> dict[Function, ast.Call]:
    """Return functions of this file that definitely lead to one of these calls, each with that call."""
    found: dict[Function, ast.Call] = {}
    todo = [(call, call) for call in calls]
    while todo:
        call, origin = todo.pop()
        function = code.function(call)
        if function is None or function in found or any(map(_keeps_results, function.decorator_list)):
            continue
        if is_sure(code, call) and not guards(code).around(call):
            found[function] = origin
            todo += [(c, origin) for c in callers(code, function)]
    return found


def collective_helpers(code: Code) -> dict[Function, ast.Call]:
    """Return the functions of this file that definitely lead to a collective by calls within it; kept with it."""
    found: dict[Function, ast.Call] | None = code.__dict__.get("_collective_helpers")
    if found is None:
        found = code.__dict__["_collective_helpers"] = helpers(code, collectives(code))
    return found


def callers(code: Code, function: Function) -> Sequence[ast.Call]:
    """Return the calls of a function in this file; of an `__init__`, those that make an object of its class."""
    home = _made_by(code, function)
    if home is None:
        return code.callers.get(function, ())
    alone = sum(c.name == home.name for c in code.nodes(ast.ClassDef)) == 1
    return [*code.callers.get(function, ()), *(code.calls(home.name) if alone else ())]


def _made_by(code: Code, function: Function) -> ast.ClassDef | None:
    """Return the class whose objects a function sets up, if it is its `__init__`."""
    home = code.parent.get(function)
    return home if function.name == "__init__" and isinstance(home, ast.ClassDef) else None


def through_call(code: Code, function: Function, origin: ast.Call) -> str:
    """Return what a call of a function leads to: `save(), which calls barrier(),`."""
    home = _made_by(code, function)
    return f"{home.name if home is not None else function.name}(), which calls {last_name(code, origin)}(),"


def _keeps_results(decorator: ast.expr) -> bool:
    """True if a decorator answers later calls from a cache, as `functools.cache` does."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return dotted_name(called).rpartition(".")[2] in {"cache", "lru_cache", "cached", "memoize"}


def is_sure(code: Code, call: ast.Call) -> bool:
    """True if its function makes a call every time, given several processes."""
    inner: ast.AST = call
    for up in code.ancestors(call):
        if isinstance(up, ast.If | ast.IfExp):
            if inner is not up.test and several(code, up.test) is not (inner in _list(up.body)):
                return False
        elif isinstance(up, ast.ExceptHandler | ast.BoolOp | ast.While | ast.Lambda | ast.Match):
            return False
        if isinstance(inner, ast.stmt) and _first_leave(code, inner) < code.order[inner]:
            return False
        if isinstance(up, FUNCTIONS):
            return True
        inner = up
    return True


def _list(body: list[ast.stmt] | ast.expr) -> list[ast.AST]:
    return list(body) if isinstance(body, list) else [body]


def _first_leave(code: Code, statement: ast.stmt) -> float:
    """Return the position of the first statement that may leave a statement's block; infinity if there is none."""
    known: dict[int, float] = code.__dict__.setdefault("_first_leaves", {})
    block = code.block(statement)
    if id(block) not in known:
        known[id(block)] = next((code.order[s] for s in block if _may_leave(code, s)), inf)
    return known[id(block)]


def _may_leave(code: Code, statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.If) or several(code, statement.test) is False:
        return False
    return any(isinstance(s, ast.Return | ast.Continue | ast.Break) for s in (*statement.body, *statement.orelse))


class Diverging(NamedTuple):
    """Call that some ranks make and the others don't."""

    call: ast.Call
    what: str
    """Description of the call: `barrier()`, `save(), which calls barrier(),`."""
    guard: Guard


def diverging(
    code: Code, calls: Sequence[ast.Call], through: Mapping[Function, ast.Call] | None = None
) -> Iterator[Diverging]:
    """Yield calls that all ranks must make but a condition keeps some from, directly or through a function.

    `through` are the `helpers` of these calls, if they are known.
    """
    through = helpers(code, calls) if through is None else through
    places: dict[str, list[ast.AST]] = defaultdict(list)
    for call in calls:
        places[last_name(code, call)].append(call)
    for function, origin in through.items():
        places[last_name(code, origin)] += callers(code, function)
    for call in calls:
        name = last_name(code, call)
        if (guard := condition(code, call, places[name])) is not None:
            yield Diverging(call, f"{name}()", guard)
    for function, origin in through.items():
        name = last_name(code, origin)
        for call in callers(code, function):
            if (guard := condition(code, call, places[name])) is not None:
                yield Diverging(call, through_call(code, function, origin), guard)
