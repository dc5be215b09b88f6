"""Finds the division that lost a part: it gave the 0 that was refused, or a size that leaves a remainder."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from dtdebug_taxonomy.inference.account_call import parse_line
from dtdebug_taxonomy.model.account import Account, Link, NamedValue


def dividing_link(account: Account, refused: Sequence[NamedValue]) -> Link | None:
    """Return the link at which a whole division gave 0, if a 0 was refused."""
    if all(value.text != "0" for value in refused):
        return None
    return next((link for link in account.links if link.value.text == "0" and _divides(link.place.code)), None)


def rounding_link(account: Account) -> Link | None:
    """Return the only link at which a whole division of known numbers left a remainder."""
    known = {link.value.name: link.value.text for link in account.links if link.value.text.isdigit()}
    found = []
    for link in account.links:
        match parse_line(link.place.code):
            case ast.Module(body=[ast.Assign(value=ast.BinOp(left=whole, op=ast.FloorDiv(), right=by))]):
                pair = [known.get(ast.unparse(each), ast.unparse(each)) for each in (whole, by)]
                if all(map(str.isdigit, pair)) and int(pair[1]) and int(pair[0]) % int(pair[1]):
                    found.append(link)
    return found[0] if len(found) == 1 else None


def _divides(code: str) -> bool:
    """True for `share = batch // world`."""
    match parse_line(code):
        case ast.Module(body=[ast.Assign(value=ast.BinOp(op=ast.FloorDiv()))]):
            return True
    return False
