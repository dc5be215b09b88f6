"""Rank and number of ranks passed in each other's place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.names import INIT, SAMPLER
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import is_size, may_tell_rank, rank
from dtdebug_taxonomy.source.text import Span

_KNOWN = {
    SAMPLER: ("dataset", "num_replicas", "rank"),
    "datasets.distributed.split_dataset_by_node": ("dataset", "rank", "world_size"),
    INIT: ("backend", "init_method", "timeout", "world_size", "rank"),
}
"""Function -> its parameters in order."""
_NAMES = {"rank", "local_rank", "world_size", "node_rank", "local_world_size"}
_RANK = re.compile(r"(global_|world_|local_)?rank")
_SIZE = re.compile(r"world_size|num_replicas|num_processes|nprocs|size")


def check(code: Code) -> Iterator[Hit]:
    """Report the first of the two arguments, or the names that receive swapped results."""
    yield from _taken_in_another_order(code)
    for call in code.nodes(ast.Call):
        given = [(k.arg or "", k.value) for k in call.keywords] if len(call.keywords) > 1 else []
        if len(call.args) > 1 and not any(isinstance(a, ast.Starred) for a in call.args):
            if not any(_may_be_rank(a) for a in call.args):
                continue
            given += zip(_parameters(code, call), call.args, strict=False)
        at_rank = next((a for n, a in given if _RANK.fullmatch(n) and is_size(code, a) and not rank(code, a)), None)
        at_size = next((a for n, a in given if _SIZE.fullmatch(n) and rank(code, a) and not is_size(code, a)), None)
        if at_rank is None or at_size is None:
            continue
        one, other = sorted((at_rank, at_size), key=code.span)
        yield Hit(
            code.span(one),
            f"The parameter for the rank gets {code.source_of(at_rank)}, and the one for the number of ranks gets "
            f"{code.source_of(at_size)}.",
            Fix(
                "Exchange them",
                (Edit(code.span(one), code.source_of(other)), Edit(code.span(other), code.source_of(one))),
            ),
        )


def _taken_in_another_order(code: Code) -> Iterator[Hit]:
    """Report `rank, local_rank = get_ranks()` for a function that returns the local rank first."""
    known: dict[ast.AST, list[str]] = {}
    for assign in code.nodes(ast.Assign):
        target, call = assign.targets[0], assign.value
        if not isinstance(target, ast.Tuple) or not isinstance(call, ast.Call) or len(assign.targets) != 1:
            continue
        taken = [_kind(e) for e in target.elts]
        if len(set(taken) - {""}) < 2:
            continue
        given = _returned_kinds(code, call, known)
        if len(given) != len(taken):
            continue
        wrong = [n for n, (t, g) in enumerate(zip(taken, given, strict=False)) if t and g and t != g]
        if len(wrong) < 2 or sorted(taken[n] for n in wrong) != sorted(given[n] for n in wrong):
            continue
        written = [code.source_of(e) for e in target.elts]
        right = [written[taken.index(g)] if n in wrong else written[n] for n, g in enumerate(given)]
        yield Hit(
            code.span(target),
            f"{code.source_of(call.func)}() returns {', '.join(given)} in this order, and they are taken as "
            f"{', '.join(taken)}.",
            Fix("Take them in their order", (Edit(Span(*_around(code, target)), ", ".join(right)),)),
        )


def _around(code: Code, target: ast.Tuple) -> tuple[int, int]:
    return code.span(target.elts[0]).start, code.span(target.elts[-1]).end


def _kind(node: ast.expr) -> str:
    """Return the kind of number that a name denotes: global rank, local rank, or number of ranks."""
    last = dotted_name(node).rpartition(".")[2].strip("_").lower()
    return last if last in _NAMES else {"global_rank": "rank", "world": "world_size"}.get(last, "")


def _returned_kinds(code: Code, call: ast.Call, known: dict[ast.AST, list[str]]) -> list[str]:
    """Return the kinds of the called function's results, by their names; empty if they vary or are unknown."""
    function, home = code.local_function(call), code
    if function is None and code.project is not None and code.project.may_hold(code, call.func):
        defined = code.project.resolve_call(code, call)
        if defined is not None and not isinstance(defined.node, ast.ClassDef):
            function, home = defined.node, defined.code
    if function is None or not home.is_plain(function):
        return []
    if function in known:
        return known[function]
    rows = [r.value for r in home.inside(function, ast.Return) if home.function(r) is function]
    kinds = {tuple(_kind(e) for e in r.elts) if isinstance(r, ast.Tuple) else () for r in rows}
    known[function] = list(kinds.pop()) if len(kinds) == 1 else []
    return known[function]


def _may_be_rank(argument: ast.expr) -> bool:
    """True if an argument's name, or that of its callee, may denote a rank: a cheap test that rules out most."""
    named = argument.func if isinstance(argument, ast.Call) else argument
    return may_tell_rank(dotted_name(named).rpartition(".")[2])


def _parameters(code: Code, call: ast.Call) -> tuple[str, ...]:
    """Return the names of a call's positional parameters; empty if unknown."""
    known = _KNOWN.get(code.name(call.func))
    if known is not None:
        return known
    function = code.local_function(call)
    if function is None and code.project is not None and code.project.may_hold(code, call.func):
        defined = code.project.resolve_call(code, call)
        function = defined.node if defined is not None and not isinstance(defined.node, ast.ClassDef) else None
    if function is None:
        return ()
    names = tuple(a.arg for a in (*function.args.posonlyargs, *function.args.args))
    return names[1:] if names[:1] in {("self",), ("cls",)} else names
