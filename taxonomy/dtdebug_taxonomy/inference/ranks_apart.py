"""Finds the line at which a value parts from rank to rank, where a failure is that the ranks do not fit together.

The accounts of the ranks are laid side by side: the deepest value that differs is where they part. With one account,
it is the line at which what each rank has of its own comes in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from dtdebug_taxonomy.model.account import Account, Link
from dtdebug_taxonomy.model.ranks import Verdict

SIZES = frozenset({"wrong_size", "wrong_dtype"})
"""Kinds of verdicts on calls that do not fit together."""
_COMPARES = re.compile(
    r"\b(?:in|of|on|from|than|with) (?:process|rank)(?: \d{1,6}\b|\W*\Z)"
    r"|\b(?:across|among|between|on) (?:all )?(?:ranks|processes)\b"
)
"""A message that speaks of other ranks; its end may have been cut off."""
OPAQUE = re.compile(r"<\w{1,80}>")
"""Text of an object of which only the class is known."""
_ONE_TO_ONE = frozenset({"send", "recv", "isend", "irecv", "batch_isend_irecv", "send_object_list", "recv_object_list"})
"""Calls whose two sides run different lines: a value that differs by rank is no fault there."""


def compares_ranks(account: Account, verdict: Verdict | None) -> bool:
    """True if an exception, or the verdict for a rank without one, says that ranks do not fit together."""
    if account.refusal is not None and account.refusal.api.rpartition(".")[2] in _ONE_TO_ONE:
        return False
    if not account.exception:
        return verdict is not None and verdict.kind in SIZES
    return _COMPARES.search(account.exception) is not None


def with_partings(accounts: Sequence[Account], verdict: Verdict | None) -> tuple[Account, ...]:
    """Return the accounts; of those that compare ranks, the root is the link at which the value parts."""
    found = []
    for account in accounts:
        at = _parting_of(account, accounts) if compares_ranks(account, verdict) else -1
        # where no exception says what was refused, a line that parts no ranks explains nothing
        found.append(replace(account, root=at) if at >= 0 or not account.exception else account)
    return tuple(found)


def _parting_of(account: Account, accounts: Sequence[Account]) -> int:
    """Return the index of the link at which a value parts, or -1."""
    others = [a for a in accounts if a is not account and a.place == account.place and a.rank != account.rank]
    apart = [n for n, link in enumerate(account.links) if _differs(link, others)]
    if account.by_rank >= 0 and (
        not apart or account.by_rank in apart or not account.links[account.by_rank].value.text
    ):
        return _chooser(account, account.by_rank)
    return max(apart, key=lambda n: (account.links[n].depth, -n), default=-1)


def _chooser(account: Account, at: int) -> int:
    """Return the link that chooses by a test of the rank: the test only tells which rank this is."""
    links = account.links
    while links[at].value.text in ("True", "False"):
        up = next((n for n in range(at - 1, -1, -1) if links[n].depth < links[at].depth), -1)
        if up < 0:
            break
        at = up
    return at


def _differs(link: Link, others: Sequence[Account]) -> bool:
    """True if another rank has another value there, and the value is not its number."""
    texts = {
        other.value.text
        for account in others
        for other in account.links
        if (other.place, other.value.name) == (link.place, link.value.name) and other.value.text
    }
    return bool(link.value.text) and bool(texts - {link.value.text}) and "rank" not in link.value.name.lower()


def values_at(account: Account, accounts: Sequence[Account], at: int) -> dict[int, str]:
    """Return rank -> the value that it has at a link of the way back, of the ranks whose accounts have it."""
    link = account.links[at]
    return {
        each.rank: other.value.text
        for each in (account, *accounts)
        if each.rank is not None
        for other in each.links
        if (other.place, other.value.name) == (link.place, link.value.name) and other.value.text
    }
