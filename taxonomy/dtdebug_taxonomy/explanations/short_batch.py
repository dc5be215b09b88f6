"""The last batch of a loader, which is smaller than the others, where a line needs a whole one."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from typing import NamedTuple

from dtdebug_taxonomy.explanations.account_words import Edit, where
from dtdebug_taxonomy.explanations.contract_repairs import add_argument
from dtdebug_taxonomy.explanations.faults import Fault
from dtdebug_taxonomy.inference.account_call import chains_of, parse_line
from dtdebug_taxonomy.model.account import Account, Link
from dtdebug_taxonomy.text.value_texts import read_value

_LOADER = re.compile(r"\w*DataLoader\(.{0,200}\bbatch_size=(?P<size>\d{1,9})\)")
_NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?![\w.])")
FIX = "drop the last batch, or make the line take batches of any size."


class ShortBatch(NamedTuple):
    """A batch of fewer samples than its loader gives otherwise."""

    samples: int
    size: int
    loop: Link
    made: Link
    """Line that made the loader."""

    @property
    def said(self) -> str:
        """Clause on the batch."""
        return f"the last batch has {self.samples} of {self.size} samples ({where(self.loop.place)})"

    @property
    def edit(self) -> Edit | None:
        """The line that makes the loader, with `drop_last=True`; it lets the job go on without these samples."""
        tree = parse_line(self.made.place.code)
        for call in ast.walk(tree) if tree is not None else ():
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("DataLoader"):
                edit = add_argument("drop_last", "True", call, self.made.place)
                return edit._replace(meant=False) if edit is not None else None
        return None


def find_short_batch(account: Account, compared: Collection[int]) -> ShortBatch | None:
    """Return the batch whose size is to a whole one as two of the numbers that did not fit are to each other."""
    for at, link in enumerate(account.links):
        value = read_value(link.value.text) if link.how == "loop" else None
        loader = next(iter(account.links[at + 1 : at + 2]), None)
        known = _LOADER.match(loader.value.text) if loader is not None and loader.depth == link.depth + 1 else None
        if value is None or not value.shape or known is None or loader is None:
            continue
        samples, size = value.shape[0], int(known["size"])
        if 0 < samples < size and any(a * size == b * samples for a in compared for b in compared if a < b):
            return ShortBatch(samples, size, link, _maker(account, at + 1))
    return None


def of_short_batch(account: Account) -> Fault | None:
    """Return the last batch of a loader, if the sizes that a message compares are those of it and of a whole one."""
    found = find_short_batch(account, {int(n) for n in _NUMBER.findall(account.exception)})
    if found is None:
        return None
    refused = (
        [v for v in account.refusal.values if _has_size(v.text, found.size)] if account.refusal is not None else []
    )
    fixed = f", and `{refused[0].name}` is made for {found.size}" if len(refused) == 1 else ""
    other = _made_for(account, refused[0].name) if len(refused) == 1 else None
    return Fault(f"T{found.said[1:]}{fixed}", FIX, found.made, found.edit, likely=True, other=other)


def _has_size(text: str, size: int) -> bool:
    value = read_value(text)
    return value is not None and value.shape is not None and size in value.shape[:1]


def _made_for(account: Account, words: str) -> Link | None:
    chains = chains_of(account, words)
    return chains[0][0] if chains else None


def _maker(account: Account, at: int) -> Link:
    """Return the line that calls the loader's class: the one that a name leads to, or that a function returns."""
    first = account.links[at]
    for link in account.links[at:]:
        if link.depth < first.depth or (link is not first and link.how not in {"returned", "called", "passed"}):
            break
        if "DataLoader(" in link.place.code:
            return link
    return first
