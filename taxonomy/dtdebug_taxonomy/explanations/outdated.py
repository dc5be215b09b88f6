"""A notebook's object of a class that a later cell has defined again: it keeps what the older one gave it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.explanations.account import by_culprit, reason_from
from dtdebug_taxonomy.explanations.account_words import where
from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, explanation_for
from dtdebug_taxonomy.model.account import Account, Outdated
from dtdebug_taxonomy.text.pattern_matcher import plain

EVIDENCE, AT_LINE = "object-of-an-older-class", "older-class-at-the-line"
"""The second where the object is at the line, and nothing shows that the newer class would not fail."""
_LACKS = re.compile(r"AttributeError: '(?P<kind>\w{1,80})' object has no attribute '(?P<name>\w{1,80})'")
_CERTAIN, _LIKELY = 0.9, 0.7
"""Probabilities where the newer class has the attribute that is missing, and where the object is at the line only."""


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the object at the line that raised whose class was changed since it was made."""
    for account in by_culprit(context):
        for found in account.outdated:
            yield _explanation(context, account, found)
            return


def _explanation(context: Context, account: Account, found: Outdated) -> Explanation:
    lacks = _LACKS.search(account.exception)
    has = lacks is not None and lacks["kind"] == found.kind and lacks["name"] in found.has
    which = f", which has `{lacks['name']}`" if has and lacks is not None else ""
    made = f" (made by {where(found.made)})" if found.made is not None else ""
    said = f"`{found.value.name}`{made} is of an older `{found.kind}` than that of {where(found.defined)}{which}"
    again = f"Run {cell_of(found.made.file)} again, then this cell" if found.made is not None else "Make it again"
    why = "An object keeps the methods and parts of the class that it was made of."
    return explanation_for(
        context.symptom,
        plain(said, 500),
        why,
        f"{again}.",
        _CERTAIN if has else _LIKELY,
        reason_from(account, EVIDENCE if has else AT_LINE),
        effort="glance",
    )


def cell_of(file: str) -> str:
    """Return `cell [4]`, as the notebook numbers it."""
    return file.replace("In[", "[")
