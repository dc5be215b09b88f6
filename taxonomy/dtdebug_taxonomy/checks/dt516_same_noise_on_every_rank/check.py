"""Random numbers in a training step, in programs that seed all ranks alike."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.flow import reaches_backward, without_grad
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank, seeded_alike, starts_ranks
from dtdebug_taxonomy.source.python.code import Code

_DRAWS = tuple(f"torch.{name}" for name in ("randn", "randn_like", "rand", "rand_like", "randint"))


def check(code: Code) -> Iterator[Hit]:
    """Report the first draw of each function."""
    draws = code.calls(*_DRAWS)
    if not draws or code.role == "test" or not starts_ranks(code) or not seeded_alike(code):
        return
    seen: set[ast.AST | None] = set()
    for call in draws:
        function = code.function(call)
        if function in seen or not _in_loop(code, call) or without_grad(code, call):
            continue
        if code.argument(call, "generator") is not None or not reaches_backward(code, call):
            continue
        if any(depends_on_rank(code, a) for a in call.args):
            continue
        seen.add(function)
        yield Hit(
            code.span(call),
            "All ranks were seeded alike, so each draws the same numbers for its samples: the batch "
            "of all ranks is less "
            "varied than it looks. Add the rank to the seed.",
        )


def _in_loop(code: Code, node: ast.AST) -> bool:
    return any(isinstance(a, ast.For | ast.While) for a in code.ancestors(node))
