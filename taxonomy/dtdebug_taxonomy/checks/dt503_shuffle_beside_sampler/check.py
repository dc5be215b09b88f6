"""Data loaders that get both a sampler and `shuffle=True`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.arguments import keyword, remove
from dtdebug_taxonomy.checks.shared.names import LOADER
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_LOADERS = (
    LOADER,
    "torch_geometric.loader.DataLoader",
    "torch_geometric.data.DataLoader",
    "torchdata.stateful_dataloader.StatefulDataLoader",
    "monai.data.DataLoader",
)
_SAMPLER = re.compile(r"sampler$", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the shuffle argument."""
    for call in code.calls(*_LOADERS):
        shuffle = code.argument(call, "shuffle", 2)
        if shuffle is None or code.constant(shuffle) is not True:
            continue
        for name, place in (("sampler", 3), ("batch_sampler", 4)):
            sampler = code.argument(call, name, place)
            kinds = _kinds(code, sampler)
            if "sampler" not in kinds:
                continue
            when = " as soon as there is one" if "none" in kinds else ""
            given = keyword(call, "shuffle")
            span = Span(code.span(given).start, code.span(given).end) if given else code.span(shuffle)
            yield Hit(
                span,
                f"The loader has a {name} and shuffle=True: DataLoader refuses both together{when}. "
                "Whether the data is shuffled is the sampler's to say.",
                _fix(code, call, sampler, "none" in kinds),
            )
            break


def _kinds(code: Code, node: ast.expr | None, depth: int = 4) -> set[str]:
    """Return the kinds that an expression can have: "sampler", "none", or "?" if unknown."""
    if isinstance(node, ast.Constant) and node.value is None:
        return {"none"}
    if isinstance(node, ast.Call):
        last = code.name(node.func).rsplit(".", 1)[-1]
        function = code.local_function(node)
        if function is None:
            return (
                {"sampler"} if _SAMPLER.search(last) and not last.startswith(("get", "make", "build", "_")) else {"?"}
            )
        returned = [r.value for r in code.inside(function, ast.Return) if code.function(r) is function]
        return {k for r in returned for k in _kinds(code, r, depth - 1)} if depth else {"?"}
    if isinstance(node, ast.IfExp) and depth:
        return _kinds(code, node.body, depth - 1) | _kinds(code, node.orelse, depth - 1)
    if node is not None and dotted_name(node) and depth:
        return {k for v in code.values(node) if v is not node for k in _kinds(code, v, depth - 1)}
    return {"?"}


def _fix(code: Code, call: ast.Call, sampler: ast.expr | None, can_be_none: bool) -> Fix | None:
    given = keyword(call, "shuffle")
    if given is None:
        return None
    if not can_be_none:
        return Fix("Leave shuffle to the sampler", (remove(code, given),))
    if not dotted_name(sampler):
        return None
    text = f"({dotted_name(sampler)} is None)"
    return Fix("Shuffle only without a sampler", (Edit(code.span(given.value), text),))
