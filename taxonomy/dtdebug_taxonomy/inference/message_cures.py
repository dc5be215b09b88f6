"""Advice that a message states itself: one library, version or setting instead of a list of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from string import Formatter

import msgspec

from dtdebug_taxonomy.knowledge.schema import Cure, Evidence
from dtdebug_taxonomy.text.pattern_matcher import problem_of


@lru_cache(maxsize=4096)
def cure_of(evidence: Evidence, cause: str, words: str) -> Cure | None:
    """Return the message's own advice on a cause, filled in; None if it has none.

    The first cure that matches the words decides: the message then names no other cause.
    """
    for cure in evidence.cure:
        found = _compile_pattern(cure.when).search(words)
        if found is not None:
            return _fill_cure(cure, found.groupdict("")) if cure.cause == cause else None
    return None


def problems(evidence: Evidence, causes: frozenset[str]) -> list[str]:
    """Return the problems in the cures of an indicator, for `tidy`."""
    found = []
    for cure in evidence.cure:
        if cure.cause not in causes:
            found.append(f"cure: no cause {cure.cause!r} in its symptoms")
        if cure.when and (problem := problem_of(cure.when)):
            found.append(f"cure: pattern {cure.when!r}: {problem}")
            continue
        if cure.title.endswith(".") or not cure.fix.strip().endswith("."):
            found.append(f"cure {cure.title!r}: a title without '.', a fix that ends in '.'")
        groups = set(re.compile(cure.when).groupindex)
        wanted = {
            name for text in (cure.title, cure.why, cure.fix) for _, name, _, _ in Formatter().parse(text) if name
        }
        if groups and (missing := wanted - groups):
            found.append(f"cure {cure.title!r}: no group {sorted(missing)} in `when`")
    return found


def _fill_cure(cure: Cure, seen: Mapping[str, str]) -> Cure:
    if not seen:
        return cure
    seen = {name: _DEBRIS.sub("", value) for name, value in seen.items()}
    title, why, fix = (text.format_map(seen) for text in (cure.title, cure.why, cure.fix))
    return msgspec.structs.replace(cure, title=title, why=why, fix=fix)


_DEBRIS = re.compile(r"\.?['\"][)\],:;]*$|[,:;]+$")
"""End of a name in a printed value: a quote with the brackets behind it."""


@lru_cache(maxsize=1024)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
