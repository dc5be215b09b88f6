"""Values of an account: those known at the line that raised, and their ways back."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from dtdebug_taxonomy.inference.account_call import chains_of, tree_of
from dtdebug_taxonomy.model.account import Account, Link
from dtdebug_taxonomy.text.value_texts import read_value


def values_at_failure(account: Account) -> dict[str, str]:
    """Return the expressions whose values are known at the line that raised."""
    refusal = account.refusal
    links = [link.value for link in reversed(account.links) if link.depth == 0 and link.value.text]
    found = {value.name: value.text for value in links}
    if refusal is not None and refusal.place is None:  # else these are names of the library
        found.update((v.name, v.text) for v in refusal.values if v.text)
    return found


def chain_of(account: Account, words: str) -> tuple[Link, ...]:
    """Return the way back of an expression, of several parts the deciding one; empty if it was not followed."""
    chains = chains_of(account, words)
    return next((chain for chain in chains if root_in(account, chain) is not None), next(iter(chains), ()))


def last_with_value(account: Account, words: str, text: str) -> Link | None:
    """Return the last link of an expression's way back that still has its value: there it was made."""
    chain = chain_of(account, words)
    held = [link for link in chain if link.value.text == text]
    return held[-1] if held else None


def nodes_of_line(account: Account, kind: type[ast.expr]) -> list[ast.expr]:
    """Return the expressions of one kind on the line that raised."""
    tree = tree_of(account.place) if account.place is not None else None
    return [n for n in ast.walk(tree) if isinstance(n, kind)] if tree is not None else []


def plain_value(text: str) -> object:
    """Return the number, string or constant that the text of a value shows, or None."""
    value = read_value(text)
    return value.plain if value is not None else None


def root_in(account: Account, chain: Sequence[Link]) -> Link | None:
    """Return the link that decided the value, if it lies on a way back."""
    root = account.links[account.root] if 0 <= account.root < len(account.links) else None
    return root if root in chain else None


def rank_link_in(account: Account, chain: Sequence[Link]) -> Link | None:
    """Return the link at which what the rank has of its own comes in, if it lies on a way back."""
    link = account.links[account.by_rank] if 0 <= account.by_rank < len(account.links) else None
    return link if link in chain else None
