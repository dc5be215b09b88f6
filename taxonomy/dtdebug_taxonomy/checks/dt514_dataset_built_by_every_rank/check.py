"""Data sets that every rank downloads or preprocesses at once, into the same files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.everyone import for_all
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.checks.shared.ranks_seen import STARTS, depends_on_rank, starts_ranks
from dtdebug_taxonomy.checks.shared.spawning import SPAWN
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards

_BUILDS = ("datasets.Dataset.from_generator",)
_KERAS = re.compile(r"(tensorflow\.)?keras\.datasets\.\w+\.load_data")
_SETS = ("torchvision.datasets.", "torchaudio.datasets.")
_ORDERED = re.compile(r"process_first|rank_?(zero|0)_?(first|priority)|local_main_first|zero_first|main_first|filelock")


def check(code: Code) -> Iterator[Hit]:
    """Report the call that builds."""
    if (
        code.role != "program"
        or not (starts_ranks(code) or code.calls("deepspeed.initialize"))
        or _ORDERED.search(code.text.lower())
    ):
        return
    mapped = [c for c in code.methods("map") if code.argument(c, "num_proc") is not None]
    for call in _downloads(code):
        if for_all(code, call) and not _may_be_ordered(code, call):
            yield Hit(
                code.span(call),
                "Every rank downloads this at the same time, into the same files: one may read what another has only "
                "half written. Let rank 0 go first and the others wait at a barrier.",
            )
    for call in (*code.calls(*_BUILDS), *mapped):
        if not for_all(code, call) or _may_be_ordered(code, call):
            continue
        yield Hit(
            code.span(call),
            "Every rank builds this at the same time: the work is repeated on each, and all write to one cache. Let "
            "the main process of a node go first; the others then read what it has built.",
        )


def _downloads(code: Code) -> list[ast.Call]:
    """Return the torchvision, torchaudio and Keras sets that download themselves on all ranks at once."""
    starts = code.calls(*STARTS, *SPAWN)
    turns = {code.function(c) for c in code.calls(DIST + "barrier") if guards(code).around(c)}
    return [
        c
        for c in code.nodes(ast.Call)
        if (code.name(c.func).startswith(_SETS) and code.constant(code.argument(c, "download")) is True)
        or (_KERAS.fullmatch(code.name(c.func)) and not depends_on_rank(code, code.argument(c, "path", 0)))
        if code.function(c) not in turns
        if not any(code.function(s) is code.function(c) and code.order[c] < code.order[s] for s in starts)
    ]


def _may_be_ordered(code: Code, call: ast.Call) -> bool:
    """True if a context around the call may order the ranks."""
    return any(isinstance(up, ast.With) and not _is_plain(code, up) for up in code.ancestors(call))


def _is_plain(code: Code, node: ast.With) -> bool:
    return all(code.name(getattr(i.context_expr, "func", i.context_expr)).startswith("torch.") for i in node.items)
