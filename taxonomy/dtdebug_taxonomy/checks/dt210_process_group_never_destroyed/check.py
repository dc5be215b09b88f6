"""Programs that leave their process group behind."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.names import INIT
from dtdebug_taxonomy.source.python import Code

_ENDS = re.compile(r"destroy|clean_?up|tear_?down|shut_?down|finali[sz]e|end_training")


def check(code: Code) -> Iterator[Hit]:
    """Reports the first call that sets up the process group."""
    calls = code.calls(INIT)
    if not calls or code.notebook or _ends(code):
        return
    if "__main__" not in code.text and code.function(calls[0]) is not None:
        return
    backend = code.constant(code.argument(calls[0], "backend", 0))
    if isinstance(backend, str) and "nccl" not in backend:
        return
    yield Hit(
        code.span(calls[0].func),
        "The process group is never destroyed: NCCL warns at the end of each run, and a rank that ends earlier than "
        "others can make these hang or fail in their last communication.",
    )


def _ends(code: Code) -> bool:
    names = {n.attr for n in code.nodes(ast.Attribute)} | {n.id for n in code.nodes(ast.Name)}
    return any(_ENDS.search(n.lower()) for n in names)
