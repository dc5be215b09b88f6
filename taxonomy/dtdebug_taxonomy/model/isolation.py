"""Result of `dtdebug isolate`: the change with which a job no longer fails, and what is ruled out."""

from __future__ import annotations

import msgspec

from dtdebug_taxonomy.model.effort import Effort


class ResponsiblePart(msgspec.Struct, frozen=True, kw_only=True):
    """Cause found by the search, alone or with others."""

    factor: str
    """Its name among `factors`; `ranks`, `program`, `environment.NAME`, `version.NAME`."""
    title: str
    """Description in few words: `the smaller last batch`."""
    fix: str = ""
    """Fix, in the imperative; empty if the runs do not show one."""
    effort: Effort = "edit"
    pattern: str = "fix behavior logic"
    """Published name of the kind of fix."""
    diff: str = ""
    """Change that was measured, in the user's own file."""


class IsolationResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a search."""

    parts: tuple[ResponsiblePart, ...] = ()
    means: str = ""
    """Outcome of the runs with and without the responsible parts, as sentences."""
    sure: bool = False
    """True if the responsible parts were confirmed by more than one run."""
    ruled_out: tuple[str, ...] = ()
    """Parts that the runs have ruled out, as sentences."""
