"""Finds the division that gave the 0 that was refused: the numbers that it was given are fine by themselves."""

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


def _divides(code: str) -> bool:
    """True for `share = batch // world`."""
    match parse_line(code):
        case ast.Module(body=[ast.Assign(value=ast.BinOp(op=ast.FloorDiv()))]):
            return True
    return False
