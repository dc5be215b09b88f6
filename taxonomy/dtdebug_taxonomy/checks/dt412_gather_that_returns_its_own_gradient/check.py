"""Autograd functions that gather in the forward pass and do not communicate in the backward pass."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank
from dtdebug_taxonomy.source.python.code import Code

_GATHERS = (DIST + "all_gather", DIST + "all_gather_into_tensor", DIST + "_all_gather_base")
_MAKES_UP = re.compile(r"reduce|scatter|gather|broadcast|all_to_all|world_?size|num_replicas")


def check(code: Code) -> Iterator[Hit]:
    """Report the slice of the gradients."""
    gathers = code.calls(*_GATHERS)
    for method in code.functions.get("backward", ()) if gathers else ():
        home = code.class_of(method)
        if home is None or not any(code.name(b).endswith("autograd.Function") for b in home.bases):
            continue
        if not any(code.class_of(c) is home for c in gathers) or _MAKES_UP.search(code.source_of(method)):
            continue
        own = next((s for s in code.inside(method, ast.Subscript) if depends_on_rank(code, s.slice)), None)
        if own is not None:
            yield Hit(
                code.span(own),
                "Each rank's loss has a gradient for these features, and this takes that of the rank "
                "itself: what the others' "
                "losses say is lost. Sum the gradients over the ranks first.",
            )
