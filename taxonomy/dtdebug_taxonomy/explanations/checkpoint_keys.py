"""A sharded checkpoint that lacks a key of the state that is to be loaded, beside the key that it has instead."""

from __future__ import annotations

import ast

from dtdebug_taxonomy.explanations.account_words import Edit, find_spans, replace_expression
from dtdebug_taxonomy.explanations.faults import Fault
from dtdebug_taxonomy.inference.account_call import parse_line, tree_of
from dtdebug_taxonomy.model.account import Account, Link
from dtdebug_taxonomy.text.value_texts import read_value

_HELD = "checkpoint"


def of_checkpoint_keys(account: Account) -> Fault | None:
    """Return the key that the checkpoint lacks, the one it has instead, and the line that names it."""
    rows = [each for each in account.beside if each.how == "file"]
    if len(rows) < 2 or rows[1].value.name != _HELD:
        return None
    name, near = rows[0].value.name, read_value(rows[0].value.text)
    tops = f"at its top it has {rows[1].value.text.strip('[]')}"
    if near is None or not isinstance(near.plain, str):
        link, _ = _key(account, name.partition(".")[0], "")
        return Fault(f"The checkpoint has no {name!r}: {tops}", "load what was saved, or save this too.", link)
    asked, held = _apart(name, near.plain)
    said = f"The checkpoint has {near.plain!r} and no {name!r}"
    if asked and held:
        link, edit = _key(account, asked, held)
        return Fault(said, f"name it {held!r} here too.", link, edit)
    if held:
        edit = _wrap_state(account, held)
        return Fault(said, f"put the state under {held!r}, as it was saved.", None, edit, account.place)
    return Fault(said, f"leave {asked!r} out, as where it was saved.")


def _apart(one: str, other: str) -> tuple[str, str]:
    """Return what stands in two names before the parts in which they end alike."""
    a, b = one.split("."), other.split(".")
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    return ".".join(a), ".".join(b)


def _key(account: Account, asked: str, held: str) -> tuple[Link | None, Edit | None]:
    """Return the line of the way back whose dictionary has a key, and the line with the other key."""
    for link in account.links:
        keys = [k for n in ast.walk(parse_line(link.place.code) or ast.Module([], []))
                for k in (n.keys if isinstance(n, ast.Dict) else ())]  # fmt: skip
        spans = find_spans(link.place.code, (repr(asked),))
        if len(spans) == 1 and any(isinstance(k, ast.Constant) and k.value == asked for k in keys):
            return link, replace_expression(link.place, spans[0], f'"{held}"')
    return None, None


def _wrap_state(account: Account, held: str) -> Edit | None:
    """Return the call with its state in a dictionary."""
    place = account.place
    tree = tree_of(place) if place is not None and place.code.isascii() else None
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.args] if tree is not None else []
    if place is None or len(calls) != 1 or "." in held:
        return None
    state = calls[0].args[0]
    span = (state.col_offset, state.end_col_offset or 0)
    return replace_expression(place, span, f'{{"{held}": {ast.unparse(state)}}}')
