"""Exchanges in which both ranks send first, so that each waits for the other to receive."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.rank_tests import RankTest

_SENDS = (DIST + "send", DIST + "send_object_list")
_RECEIVES = (DIST + "recv", DIST + "recv_object_list", DIST + "irecv")
_WHY = "send() returns when the other rank has received, but it is sending too: both wait forever."


def check(code: Code) -> Iterator[Hit]:
    """Report the first send."""
    if code.role == "test":
        return
    sends = [*code.calls(*_SENDS), *(c for c in code.calls(DIST + "isend") if _waits(code, c))]
    receives = code.calls(*_RECEIVES)
    reported: set[ast.AST] = set()
    for send in sorted(sends, key=code.order.__getitem__):
        if not _comes_first(code, send, [*sends, *receives]) or not _receives_after(code, send, receives):
            continue
        around = guards(code).around(send)
        if _is_parted(code, send, receives):
            continue
        if not around and (_is_mutual(code, code.argument(send, "dst", 1)) or _swaps(code, send, receives)):
            block = code.function(send) or code.tree
            if block not in reported:
                reported.add(block)
                yield Hit(code.span(send), f"Every rank sends here before it receives: {_WHY}")
        elif around and _is_mirrored(code, send, sends, receives):
            yield Hit(code.span(send), f"The ranks on the other branch send first as well: {_WHY}")


def _is_parted(code: Code, send: ast.Call, receives: list[ast.Call]) -> bool:
    """True if a condition that may not be on the rank separates the sending from the receiving ranks."""
    known = {g.node for g in guards(code).around(send)}
    for inner, up in pairwise([send, *code.ancestors(send)]):
        if isinstance(up, ast.If) and inner is not up.test and up not in known:
            others = up.orelse if inner in up.body else up.body
            if any(receive in receives for other in others for receive in code.inside(other, ast.Call)):
                return True
    return False


def _is_mutual(code: Code, partner: ast.expr | None) -> bool:
    """True if each rank computes its partner from its own rank."""
    return partner is not None and any(depends_on_rank(code, v) for v in (partner, *code.values(partner)))


def _swaps(code: Code, send: ast.Call, receives: list[ast.Call]) -> bool:
    """True if a function sends to and then receives from the same parameter, so that both sides would call it."""
    function, partner = code.function(send), dotted_name(code.argument(send, "dst", 1))
    if function is None or not partner or [b.how for b in code.bound(code.argument(send, "dst", 1))] != ["argument"]:  # type: ignore[arg-type]
        return False
    if any(guards(code).around(call) for call in code.callers.get(function, ())):
        return False
    return all(
        code.function(r) is function
        and code.order[r] > code.order[send]
        and dotted_name(code.argument(r, "src", 1)) == partner
        for r in receives  # another one may be the other side, which receives first
    )


def _waits(code: Code, call: ast.Call) -> bool:
    """True if the handle is waited for at once: `dist.isend(...).wait()`."""
    up = code.parent.get(call)
    return isinstance(up, ast.Attribute) and up.attr == "wait"


def _comes_first(code: Code, send: ast.Call, others: list[ast.Call]) -> bool:
    """True if nothing is sent or received earlier under the same conditions."""
    mine = {g.node for g in guards(code).around(send)}
    return not any(
        code.function(o) is code.function(send)
        and code.order[o] < code.order[send]
        and {g.node for g in guards(code).around(o)} == mine
        and _branches(code, o) == _branches(code, send)
        for o in others
    )


def _receives_after(code: Code, send: ast.Call, receives: list[ast.Call]) -> bool:
    mine = {g.node for g in guards(code).around(send)}
    return any(
        code.function(r) is code.function(send)
        and code.order[r] > code.order[send]
        and {g.node for g in guards(code).around(r)} == mine
        and _branches(code, r) == _branches(code, send)
        for r in receives
    )


def _branches(code: Code, node: ast.AST) -> list[RankTest]:
    """Return the branch of each condition on the rank that contains a call."""
    return [g.test for g in guards(code).around(node)]


def _is_mirrored(code: Code, send: ast.Call, sends: list[ast.Call], receives: list[ast.Call]) -> bool:
    """True if the ranks on the other branch of the condition send first too."""
    mine = guards(code).around(send)
    if len(mine) != 1 or mine[0].early:
        return False
    return any(
        code.function(other) is code.function(send)
        and any(g.test.completes(mine[0].test) for g in guards(code).around(other)[:1])
        and _comes_first(code, other, [*sends, *receives])
        and _receives_after(code, other, receives)
        for other in sends
    )
