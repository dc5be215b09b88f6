"""Random splits of the data that may differ between ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Fix, Hit
from dtdebug_taxonomy.checks.shared.arguments import add
from dtdebug_taxonomy.checks.shared.fixing import written_name
from dtdebug_taxonomy.checks.shared.lightning import many_devices
from dtdebug_taxonomy.checks.shared.names import SAMPLER
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank, seeded_alike, starts_ranks
from dtdebug_taxonomy.checks.shared.spawning import SPAWN
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name

_SPLITS = ("torch.utils.data.random_split",)
_MESSAGE = "Each rank draws its own split here: what one rank keeps for testing, another one trains on."


def check(code: Code) -> Iterator[Hit]:
    """Report the split."""
    splits = [c for c in code.calls(*_SPLITS) if not code.has_unpacking(c)]
    if not splits or not (starts_ranks(code) or code.calls(SAMPLER) or many_devices(code)):
        return
    alike = seeded_alike(code)
    for call in splits:
        given = code.argument(call, "generator", 2)
        if _one_rank_only(code, call) or _before_the_ranks(code, call) or (given is None and alike):
            continue
        if given is not None:
            if _is_of_rank(code, given):
                yield Hit(code.span(call), _MESSAGE)
            continue
        torch_generator, edits = written_name(code, "torch.Generator")
        fix = Fix(
            "Split by a seed of its own", (*edits, add(code, call, f"generator={torch_generator}().manual_seed(0)"))
        )
        yield Hit(code.span(call), _MESSAGE, fix)


def _is_of_rank(code: Code, generator: ast.expr) -> bool:
    """True if a generator is seeded by the rank, at its creation or in a separate statement."""
    if depends_on_rank(code, generator):
        return True
    name = dotted_name(generator)
    return bool(name) and any(
        dotted_name(c.func.value) == name and any(depends_on_rank(code, a) for a in c.args)
        for c in code.methods("manual_seed")
        if isinstance(c.func, ast.Attribute)
    )


def _one_rank_only(code: Code, call: ast.Call) -> bool:
    if guards(code).around(call):
        return True
    function = code.function(call)
    callers = code.callers.get(function, []) if function else []
    return bool(callers) and all(guards(code).around(c) for c in callers)


def _before_the_ranks(code: Code, call: ast.Call) -> bool:
    """True if the process that starts the ranks makes a call, directly or through a function, before it does so."""
    function = code.function(call)
    places = [call, *(code.callers.get(function, ()) if function else ())]
    return any(
        code.function(place) is code.function(start) and code.order[place] < code.order[start]
        for start in code.calls(*SPAWN)
        for place in places
    )
