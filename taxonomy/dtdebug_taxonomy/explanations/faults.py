"""The fault of one expression of the line that raised."""

from __future__ import annotations

from typing import NamedTuple

from dtdebug_taxonomy.explanations.account_words import Edit
from dtdebug_taxonomy.model.account import Link, Place

TEXT_FOR_NUMBER = "text-for-a-number"
"""Evidence: a string stands where a number is needed, and what made it says so."""


class Fault(NamedTuple):
    """The fault of one expression of the line that raised."""

    said: str
    """Clause on the value: "`config` has no key 'lr'"."""
    fix: str
    link: Link | None = None
    """Link at which the value was made."""
    edit: Edit | None = None
    at: Place | None = None
    """Place to edit; that of `link` or the raising line otherwise."""
    other: Link | None = None
    """The other side, if either of two places can be wrong."""
    likely: bool = False
    """Names or values point at the place, and do not prove it."""
    evidence: str = ""
    """Proof, where it is more than the value that was refused."""
