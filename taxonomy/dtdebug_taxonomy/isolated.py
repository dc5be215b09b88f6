"""What `dtdebug isolate` has measured: with which change a job no longer fails, and what is ruled out."""

from __future__ import annotations

import msgspec

from dtdebug_taxonomy.model import Effort


class ResponsiblePart(msgspec.Struct, frozen=True, kw_only=True):
    """What is responsible, alone or with others."""

    factor: str
    """Its name among `factors`; `ranks`, `program`, `environment.NAME`, `version.NAME`."""
    title: str
    """What it is: `the smaller last batch`."""
    fix: str = ""
    """What to do, as an order; empty where the runs do not tell."""
    effort: Effort = "edit"
    pattern: str = "fix behavior logic"
    """Published name of the kind of fix."""
    diff: str = ""
    """The change that was measured, in the user's own file."""


class Isolated(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a search."""

    parts: tuple[ResponsiblePart, ...] = ()
    means: str = ""
    """How the runs went with and without what is responsible, as sentences."""
    sure: bool = False
    """What is responsible was seen more than once."""
    ruled_out: tuple[str, ...] = ()
    """What the runs have shown not to be it, as sentences."""
