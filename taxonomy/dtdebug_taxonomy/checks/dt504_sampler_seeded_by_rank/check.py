"""Distributed samplers whose seed depends on the rank."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.arguments import keyword, remove
from dtdebug_taxonomy.checks.shared.names import SAMPLER
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank
from dtdebug_taxonomy.checks.shared.stepping import agrees
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.ranks import rank

_SAMPLER = re.compile(r"(^|\.)\w*Distributed\w*Sampler$")
_DIFFER = ("time.time", "time.time_ns", "os.getpid", "secrets.randbelow", "os.urandom", "torch.seed")


def check(code: Code) -> Iterator[Hit]:
    """Report the seed."""
    for call in _samplers(code):
        seed = code.argument(call, "seed", 4)
        shuffle = code.constant(code.argument(call, "shuffle", 3))
        if (
            seed is None
            or shuffle is False
            or _takes_away(code, seed)
            or _is_agreed(code, seed)
            or not (depends_on_rank(code, seed) or _differs(code, seed))
        ):
            continue
        yield Hit(
            code.span(seed),
            "This seed differs between the ranks, so each rank shuffles in another order and the shards overlap: some "
            "samples are read twice in an epoch and others never.",
            _fix(code, call, seed),
        )


def _samplers(code: Code) -> Iterator[ast.Call]:
    names = {n for n in code.imports.values() if _SAMPLER.search(n)}
    names |= {c.name for c in code.nodes(ast.ClassDef) if any(_SAMPLER.search(code.name(b)) for b in c.bases)}
    yield from code.calls(*{SAMPLER, *names})


def _takes_away(code: Code, seed: ast.expr) -> bool:
    """True if a rank is subtracted, as from a seed that contains it."""
    values = [seed, *(v for v in code.values(seed) if v is not None)]
    return any(isinstance(n.op, ast.Sub) for v in values for n in code.inside(v, ast.BinOp))


def _is_agreed(code: Code, seed: ast.expr) -> bool:
    """True if the seed results from a call by which the ranks may agree on it."""
    values = [seed, *(v for v in code.values(seed) if v is not None)]
    return any(agrees(code, c) and not rank(code, c) for v in values for c in code.inside(v, ast.Call))


def _differs(code: Code, seed: ast.expr) -> bool:
    found = {code.name(c.func) for c in code.inside(seed, ast.Call)} | code.made_by(seed)
    return bool(found & set(_DIFFER))


def _fix(code: Code, call: ast.Call, seed: ast.expr) -> Fix | None:
    if isinstance(seed, ast.BinOp) and isinstance(seed.op, ast.Add):
        for keep, drop in ((seed.left, seed.right), (seed.right, seed.left)):
            if depends_on_rank(code, drop) and not depends_on_rank(code, keep) and not _differs(code, keep):
                return Fix("Use one seed on all ranks", (Edit(code.span(seed), code.source_of(keep)),))
    given = keyword(call, "seed")
    if given is None or isinstance(seed, ast.BinOp):
        return None
    return Fix("Use the same default seed on all ranks", (remove(code, given),))
