"""Finds decisions by a value of this rank alone, after which ranks wait for each other in different places."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from dtdebug_taxonomy.checks.divergence.interpreter import all_decisions, interpreter
from dtdebug_taxonomy.checks.divergence.origins import Kind
from dtdebug_taxonomy.checks.divergence.summaries import Decision
from dtdebug_taxonomy.checks.shared.diverging import condition
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard, guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import is_main, rank
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

_SPLITS = re.compile(r"split_by_node|split_dataset_by_node|DistributedSampler|\.shard\(|sampler\.set_epoch")
How = Literal["branch", "leave", "skip", "loop", "call"]
_PARALLEL = re.compile(r"(?i)ddp|fsdp|dist|parallel|multi")
_MAY_WAIT = re.compile(r"torch\.distributed|accelerate|deepspeed|horovod|DistributedDataParallel|\.backward\(")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_LEAVES = (ast.Return, ast.Break, ast.Continue)
_ENDS = {"sys.exit", "exit", "quit", "os._exit"}
_ORDER: tuple[Kind, ...] = ("rank", "clock", "signal", "random", "machine", "file", "part", "batch")


class Divergence(NamedTuple):
    """Decision by which some ranks do not come to a call in which the others wait."""

    node: ast.AST
    """Condition or call by which it is decided."""
    kind: Kind
    """Source of the value that decides."""
    how: How
    call: str
    """Name of the call in which the others wait."""
    guard: Guard | None = None
    """Condition on the rank around the call, if it is that."""
    decided: ast.AST | None = None
    """Condition around the node that decides."""


def of_check(code: Code, check: str) -> Iterator[Divergence]:
    """Yield the divergences that a check's page explains; each has exactly one."""
    if code.role != "test" and _MAY_WAIT.search(code.text):  # tests diverge on purpose
        yield from (d for d in divergences(code) if _explained_by(code, d) == check)


def _explained_by(code: Code, found: Divergence) -> str:
    if found.kind == "rank":
        return "DT101" if found.how in {"call", "branch"} else "DT118"
    if found.kind == "clock":
        return "DT122"
    if found.kind in {"batch", "part", "loader"}:
        if found.how == "skip":
            return "DT107"
        around = (a for a in code.ancestors(found.node) if isinstance(a, _LOOPS))
        if found.how == "leave" and any(around) and not _is_left_out(code, found.node):
            return "DT119"
        if found.how == "loop" and found.decided is None:
            return "DT119"
    return "DT124"


def _is_left_out(code: Code, test: ast.AST) -> bool:
    """True if a condition leaves out a round of its loop, not the loop."""
    node = code.parent[test]
    return isinstance(node, ast.If) and isinstance(_leave(code, node.body) or _leave(code, node.orelse), ast.Continue)


def divergences(code: Code) -> list[Divergence]:
    """Return the divergences of a program, in its order; kept with it."""
    found: list[Divergence] | None = code.__dict__.get("_divergences")
    if found is None:
        found = [one for d in all_decisions(code) if (one := _divergence(code, d)) is not None]
        code.__dict__["_divergences"] = found
    return found


def _divergence(code: Code, decision: Decision) -> Divergence | None:
    node = decision.node
    kind = next((k for k in _ORDER if decision.value.of_kind(k)), None)
    if isinstance(node, ast.Call):
        return _at_call(code, node, kind)
    if kind is None:
        found = _at_condition(code, node, decision, "loader") if _is_split(code, decision) else None
        return found if found is not None and found.how == "leave" else None
    if isinstance(node, ast.While | ast.For | ast.AsyncFor):
        return _at_loop(code, node, kind) if kind != "file" or _is_decisive(code, node, decision) else None
    if isinstance(node, ast.ExceptHandler):
        leave = _leave(code, node.body)
        missed = _missed_meetings(code, node, leave) if leave is not None else ()
        return Divergence(leave, kind, "leave", missed[0]) if leave is not None and missed else None
    return _at_condition(code, node, decision, kind)


def _is_split(code: Code, decision: Decision) -> bool:
    """True if a value comes from data that a caller elsewhere passes, in a program that gives each rank a part."""
    if not any(o.kind == "parameter" and o.item for o in decision.value.origins):
        return False
    return code.function(decision.node) not in code.callers and _SPLITS.search(code.text) is not None


def _at_call(code: Code, node: ast.Call, kind: Kind | None) -> Divergence | None:
    """Return the divergence at the call of a value that may be a function in which the ranks wait."""
    names = interpreter(code).leads(node)
    if not names:
        return None
    if kind is not None:
        return Divergence(node, kind, "call", names[0])
    guard = condition(code, node, _alike(code, names))
    return Divergence(node, "rank", "call", names[0], guard) if guard is not None else None


def _at_loop(code: Code, node: ast.While | ast.For | ast.AsyncFor, kind: Kind) -> Divergence | None:
    names = interpreter(code).meetings_of(node.body)
    if not names:
        return None
    if isinstance(node, ast.While):
        return Divergence(node.test, kind, "loop", names[0])
    if kind != "part":
        return None  # its items differ, but not their number
    return Divergence(_first_call(code, node.body), kind, "loop", names[0], decided=node.iter)


def _at_condition(code: Code, node: ast.AST, decision: Decision, kind: Kind) -> Divergence | None:
    """Return the divergence of the branches of an `if`, by where they wait and where they leave."""
    if not isinstance(node, ast.If) or _has_twin(code, node):
        return None
    if any(g.test.which != "group" for g in guards(code).around(node)) or (
        kind == "rank" and _names_rank(code, node.test)
    ):
        return None  # known by what it asks for, with its counterpart
    if _raises(node.body) or _raises(node.orelse):
        return None  # an error ends the others, too
    if kind == "file" and not _is_decisive(code, node, decision):
        return None
    home = interpreter(code)
    body, orelse = home.meetings_of(node.body), home.meetings_of(node.orelse)
    leave, other = _leave(code, node.body), _leave(code, node.orelse)
    if type(leave) is not type(other):
        missed = _missed_meetings(code, node, leave if leave is not None else other)
        if not missed or (body if leave is not None else orelse) == missed:
            return None  # those that leave come to the same calls before
        skips = missed[0] == "backward" and not isinstance(leave or other, ast.Break)
        return Divergence(node.test, kind, "skip" if skips else "leave", missed[0])
    if body == orelse:
        return None
    if "backward" in (*body[:1], *orelse[:1]):
        return Divergence(node.test, kind, "skip", "backward")
    longer = node.body if len(body) > len(orelse) else node.orelse
    return Divergence(_first_call(code, longer), kind, "branch", home.meetings_of(longer)[0], decided=node.test)


def _first_call(code: Code, block: list[ast.stmt]) -> ast.Call:
    """Return the first call of a block that leads to a meeting."""
    met = interpreter(code).leads
    return next(c for s in block for c in code.inside(s, ast.Call) if met(c))


def _alike(code: Code, names: tuple[str, ...]) -> list[ast.AST]:
    """Return the calls of a program that lead to a meeting of the same name."""
    known: dict[str, list[ast.AST]] = code.__dict__.setdefault("_alike", {})
    if names[0] not in known:
        met = interpreter(code).leads
        known[names[0]] = [c for c in code.nodes(ast.Call) if names[0] in met(c)[:1]]
    return known[names[0]]


def _names_rank(code: Code, test: ast.expr) -> bool:
    """True if a condition itself names a rank: what it means is known, or unclear."""
    return guards(code).test(test) is not None or any(
        rank(code, n) or is_main(code.name(n)) for n in code.inside(test, ast.Name, ast.Attribute, ast.Call)
    )


def _has_twin(code: Code, node: ast.AST) -> bool:
    """True if the function around a node has a variant for several ranks: `step_torch` and `step_torch_ddp`."""
    function = code.function(node)
    stem = function.name if function else ""
    names = (n[len(stem) :] for n in code.functions if stem and n.startswith(stem) and n != stem)
    return any(_PARALLEL.search(rest) for rest in names)


def _raises(block: list[ast.stmt]) -> bool:
    """True if a block ends with an error, or ends the program as one."""
    last = block[-1] if block else None
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and dotted_name(last.value.func) in _ENDS:
        status = last.value.args[0] if last.value.args else None
        return status is not None and not (isinstance(status, ast.Constant) and status.value in {0, None})
    return isinstance(last, ast.Raise)


def _is_decisive(code: Code, node: ast.AST, decision: Decision) -> bool:
    """True if ranks may well find a file in different states: it is their own, or they look while others work."""
    names = {o.name for o in decision.value.origins if o.kind == "file"}
    loop = next((a for a in (node, *code.ancestors(node)) if isinstance(a, _LOOPS)), None)
    return "own" in names or ("again" in names and loop is not None and bool(interpreter(code).meetings_of(loop.body)))


def _leave(code: Code, block: list[ast.stmt]) -> ast.stmt | None:
    """Return the statement by which a block leaves its loop, function or program."""
    if not block:
        return None
    last = block[-1]
    if isinstance(last, _LEAVES):
        return last
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and dotted_name(last.value.func) in _ENDS:
        return last
    if isinstance(last, ast.With):
        return _leave(code, last.body)
    if isinstance(last, ast.If):
        return _leave(code, last.body) or _leave(code, last.orelse)
    return None


def _missed_meetings(code: Code, node: ast.AST, leave: ast.stmt | None) -> tuple[str, ...]:
    """Return the meetings that a rank misses after it leaves."""
    home = interpreter(code)
    function = code.function(node) or code.tree
    loops = [a for a in code.ancestors(node) if isinstance(a, _LOOPS) and (code.function(a) or code.tree) is function]
    if isinstance(leave, ast.Continue):
        return tuple(_after(code, node, loops[0])) if loops else ()
    if isinstance(leave, ast.Break):
        return home.meetings_of(loops[0].body) if loops else ()
    around = loops[-1] if loops else None
    inside = home.meetings_of(around.body) if around is not None else ()
    return inside or tuple(_after(code, node, function))


def _after(code: Code, node: ast.AST, home: ast.AST) -> Iterator[str]:
    """Yield the meetings after a statement in a loop or function, but those on its other branches."""
    inner = node
    for up in code.ancestors(node):
        if isinstance(inner, ast.stmt):
            block = code.block(inner)
            for later in block[block.index(inner) + 1 :] if inner in block else ():
                if not isinstance(later, (*FUNCTIONS, ast.ClassDef)):
                    yield from interpreter(code).meetings(later)
        if up is home:
            return
        inner = up
