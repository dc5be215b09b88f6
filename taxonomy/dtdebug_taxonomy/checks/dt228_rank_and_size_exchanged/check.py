"""The rank given where a function wants the number of ranks, and that number where it wants the rank."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.names import INIT, SAMPLER
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.ranks import is_size, may_tell_rank, rank

_KNOWN = {
    SAMPLER: ("dataset", "num_replicas", "rank"),
    "datasets.distributed.split_dataset_by_node": ("dataset", "rank", "world_size"),
    INIT: ("backend", "init_method", "timeout", "world_size", "rank"),
}
"""Parameters in their order."""
_RANK = re.compile(r"(global_|world_|local_)?rank")
_SIZE = re.compile(r"world_size|num_replicas|num_processes|nprocs|size")


def check(code: Code) -> Iterator[Hit]:
    """Reports the first of the two arguments."""
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


def _may_be_rank(argument: ast.expr) -> bool:
    """Whether the name of an argument, or of what it calls, is that of a rank: soon told, and false of most."""
    named = argument.func if isinstance(argument, ast.Call) else argument
    return may_tell_rank(dotted(named).rpartition(".")[2])


def _parameters(code: Code, call: ast.Call) -> tuple[str, ...]:
    """The names of the parameters that positions stand for; empty where they can't be told."""
    known = _KNOWN.get(code.name(call.func))
    if known is not None:
        return known
    function = code.called(call)
    if function is None and code.project is not None and code.project.may_hold(code, call.func):
        defined = code.project.called(code, call)
        function = defined.node if defined is not None and not isinstance(defined.node, ast.ClassDef) else None
    if function is None:
        return ()
    names = tuple(a.arg for a in (*function.args.posonlyargs, *function.args.args))
    return names[1:] if names[:1] in {("self",), ("cls",)} else names
