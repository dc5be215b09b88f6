"""Seeds without the rank, in distributed programs whose data sets draw random numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import written_name
from dtdebug_taxonomy.checks.shared.names import DDP, FSDP, INIT
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.text import Span

_SEEDS = {"numpy.random.seed": "numpy.random.", "random.seed": "random.", "torch.manual_seed": "torch."}
_TORCH = re.compile(r"torch\.(rand|randn|randint|randperm|bernoulli)$|torchvision\.transforms\.(v2\.)?Random\w+$")


def check(code: Code) -> Iterator[Hit]:
    """Report the seed."""
    seeds = code.calls(*_SEEDS)
    if not seeds or not code.calls(DDP, FSDP) or not code.calls(INIT) or "worker_init_fn" in code.text:
        return
    if any(depends_on_rank(code, a) for c in seeds for a in c.args):
        return
    start = code.calls(INIT)[0]
    for call in seeds:
        if not call.args or guards(code).around(call) or not _augments(code, _SEEDS[code.name(call.func)]):
            continue
        yield Hit(
            code.span(call),
            f"Every rank gets this seed, so all draw the same augmentations in {_in_what(code)}: the batch is less "
            "varied than it looks.",
            _fix(code, call, start),
        )


def _augments(code: Code, prefix: str) -> bool:
    """True if samples are made with these random numbers."""
    for method in code.functions.get("__getitem__", ()):
        for call in code.inside(method, ast.Call):
            name = code.name(call.func)
            if name.startswith(prefix) and (prefix != "torch." or _TORCH.match(name)):
                return True
    if prefix != "torch.":
        return False
    return any(_TORCH.match(code.name(c.func)) and "torchvision" in code.name(c.func) for c in code.nodes(ast.Call))


def _in_what(code: Code) -> str:
    found = code.functions.get("__getitem__", ())
    home = code.class_of(found[0]) if found else None
    return f"{home.name}" if home else "the transforms"


def _fix(code: Code, call: ast.Call, start: ast.Call) -> Fix | None:
    if code.function(call) is not code.function(start) or code.order[call] < code.order[start]:
        return None
    rank, edits = written_name(code, "torch.distributed.get_rank")
    end = code.span(call.args[0]).end
    return Fix("Add the rank to the seed", (*edits, Edit(Span(end, end), f" + {rank}()")))
