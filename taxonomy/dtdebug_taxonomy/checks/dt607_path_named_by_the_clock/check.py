"""Folders and files of a run that each rank names by its own clock or random numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.everyone import for_all
from dtdebug_taxonomy.checks.shared.ranks_seen import starts_ranks
from dtdebug_taxonomy.checks.shared.wrapping import DDPS, FSDP1
from dtdebug_taxonomy.source.python.code import Code

_MAKES = {
    "os.makedirs": ("name", 0),
    "os.mkdir": ("path", 0),
    "torch.save": ("f", 1),
    "torch.utils.tensorboard.SummaryWriter": ("log_dir", 0),
}
_CLOCK = re.compile(r"datetime\.(now|utcnow|today)\(|\bnow\(\)|strftime\(|\btime\.time\(|uuid[14]\(|\btime\(\)")
_AGREES = re.compile(r"broadcast|bcast|gather|all_?reduce|environ|scatter|store\.")
_OWN = re.compile(r"rank|hostname|pid|tmp|temp", re.IGNORECASE)
_DEEPEST = 3


def check(code: Code) -> Iterator[Hit]:
    """Report the call that creates it."""
    made = code.calls(*_MAKES)
    if not made or code.role != "program" or not (starts_ranks(code) or code.calls(*DDPS, *FSDP1)):
        return
    if not _CLOCK.search(code.text):
        return
    if _AGREES.search(code.text) and "broadcast_object_list" in code.text:
        return
    seen: set[ast.AST] = set()
    for call in made:
        path = code.argument(call, *_MAKES[code.name(call.func)])
        clock = _clock(code, path, _DEEPEST) if path is not None else None
        if clock is None or clock in seen or not for_all(code, call) or not for_all(code, clock):
            continue
        seen.add(clock)
        line = code.text.place(code.span(clock).start).line
        yield Hit(
            code.span(call),
            f"Each rank takes this name from its own clock at line {line}: ranks that are a little apart write into "
            "different places, and one run ends up in two folders.",
        )


def _clock(code: Code, node: ast.expr, left: int) -> ast.expr | None:
    """Return the part of a path that is read from the clock; None if the ranks may have agreed on it."""
    written = code.source_of(node)
    if _AGREES.search(written) or _OWN.search(written):
        return None
    if _CLOCK.search(written):
        return node
    for name in code.inside(node, ast.Name, ast.Attribute) if left else ():
        values = code.values(name)
        if len(values) == 1 and values[0] is not None and values[0] is not name:
            found = _clock(code, values[0], left - 1)
            if found is not None:
                return found
    return None
