"""Finds the division that lost a part: it gave the 0 that was refused, or a size that leaves a remainder."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from dtdebug_taxonomy.explanations.repair_search import Way, span_of
from dtdebug_taxonomy.inference.account_call import parse_line
from dtdebug_taxonomy.inference.worked_out import work_out_node
from dtdebug_taxonomy.model.account import Account, Link, NamedValue

_OPEN = -1
"""Remainder of numbers that are not known."""


def dividing_link(account: Account, refused: Sequence[NamedValue]) -> Link | None:
    """Return the link at which a whole division gave 0, if a 0 was refused."""
    if all(value.text != "0" for value in refused):
        return None
    return next((link for link in account.links if link.value.text == "0" and _divides(link.place.code)), None)


def rounding_link(account: Account, links: Sequence[Link], *, unknown: bool = False) -> Link | None:
    """Return the only one of some links at which a whole division left a remainder.

    `unknown`: a division of which a number is not known may have left one, where none is known to have.
    """
    way = Way(account, {})
    rows = [(link, _remainder(link, way)) for link in links]
    found = [link for link, rest in rows if rest > 0] or [link for link, rest in rows if rest == _OPEN and unknown]
    return found[0] if len({link.place for link in found}) == 1 else None


def _remainder(link: Link, way: Way) -> int:
    """Return what a whole division of a line leaves; `_OPEN` if a number is not known, or the rest itself is taken."""
    begin, end = span_of(link)
    tree = parse_line(link.place.code[begin:end])
    rest = 0
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            rest = rest or _OPEN
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            pair = [work_out_node(side, way.around(link, {})) for side in (node.left, node.right)]
            whole, by = (value.plain if value is not None else None for value in pair)
            left = whole % by if isinstance(whole, int) and isinstance(by, int) and by else _OPEN
            rest = rest or left
    return rest


def _divides(code: str) -> bool:
    """True for `share = batch // world`."""
    match parse_line(code):
        case ast.Module(body=[ast.Assign(value=ast.BinOp(op=ast.FloorDiv()))]):
            return True
    return False
