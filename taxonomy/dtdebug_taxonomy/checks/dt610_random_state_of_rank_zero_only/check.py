"""States of random number generators that rank 0 saves and every rank loads."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard, guards

_STATES = ("torch.get_rng_state", "torch.cuda.get_rng_state", "torch.cuda.get_rng_state_all")
_RESTORES = ("torch.set_rng_state", "torch.cuda.set_rng_state", "torch.cuda.set_rng_state_all")


def check(code: Code) -> Iterator[Hit]:
    """Report the call by which rank 0 reads the state that it saves."""
    if code.role == "test" or not code.calls(*_RESTORES) or not code.calls("torch.save"):
        return
    if any(guards(code).around(c) for c in code.calls(*_RESTORES)):
        return
    seen: set[ast.AST | None] = set()
    for call in code.calls(*_STATES):
        function = code.function(call)
        if function not in seen and any(_saves(code, save, call) for save in code.calls("torch.save")):
            seen.add(function)
            yield Hit(
                code.span(call),
                "Only rank 0 saves this, and every rank goes on with it after a restart: all draw "
                "the same numbers from "
                "then on. Save one state for each rank.",
            )


def _saves(code: Code, save: ast.Call, state: ast.Call) -> bool:
    """True if a call by rank 0 alone saves an object that contains a state."""
    path, what = code.argument(save, "f", 1), code.argument(save, "obj", 0)
    if what is None or path is None or depends_on_rank(code, path):
        return False
    if not any(_is_main(g) for g in guards(code).around(save)):
        return False
    return any(state in set(ast.walk(v)) for v in (what, *code.values(what)) if v is not None)


def _is_main(guard: Guard) -> bool:
    return guard.test.value == "0" and guard.test.equal and guard.test.which == "global"
