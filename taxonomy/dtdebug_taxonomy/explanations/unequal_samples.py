"""Samples of unequal sizes that a loader without a `collate_fn` stacks."""

from __future__ import annotations

import ast
import re

from dtdebug_taxonomy.explanations.account_words import where
from dtdebug_taxonomy.explanations.contract_repairs import add_argument
from dtdebug_taxonomy.explanations.faults import Fault
from dtdebug_taxonomy.inference.account_call import parse_line
from dtdebug_taxonomy.model.account import Account, Link

_STACKED = re.compile(
    r"stack expects each tensor to be equal size, but got (?P<one>\[[\d, ]{0,80}\]) at entry \d{1,9} and "
    r"(?P<other>\[[\d, ]{0,80}\])"
)


def of_samples(account: Account, printed: str) -> Fault | None:
    """Return the loader that stacks samples of two sizes, with the `collate_fn` of another loader of the file."""
    found = _STACKED.search(printed)
    loaders = [link for link in account.links if link.how == "called" and link.value.name == "DataLoader"]
    call = _loading_call(loaders[0]) if found is not None and loaders else None
    if found is None or call is None or any(k.arg in {"collate_fn", None} for k in call.keywords):
        return None
    said = f"The samples have the sizes {found['one']} and {found['other']}, and the loader has no `collate_fn`"
    other = next((link for link in account.links if link.value.name == "collate_fn"), None)
    if other is None:
        return Fault(said, "give it a `collate_fn` that pads the samples of a batch.", loaders[0])
    name = other.place.code[slice(*other.place.mark)]
    edit = add_argument("collate_fn", name, call, loaders[0].place)
    return Fault(said, f"give it `collate_fn={name}`, as {where(other.place)} has it.", loaders[0], edit, likely=True)


def _loading_call(link: Link) -> ast.Call | None:
    """Return the call that made a loader, on the whole line."""
    tree = parse_line(link.place.code) if link.place.code.isascii() else None
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)] if tree is not None else []
    calls = [n for n in calls if ast.unparse(n.func).rpartition(".")[2].endswith("DataLoader")]
    return calls[0] if len(calls) == 1 else None
