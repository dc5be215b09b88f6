"""What a search has found so far."""

from __future__ import annotations

import msgspec

from dtdebug.isolate.identity import Failure
from dtdebug.isolate.runner import Run


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the answer: what was changed, how the job then went, what that says."""

    title: str
    tried: tuple[tuple[str, str], ...]
    """(what to, how it went), in the order of the runs."""
    says: str = ""


class Responsible(msgspec.Struct, frozen=True, kw_only=True):
    """One part of what is responsible."""

    factor: str
    value: str
    """With which change of it the job does not fail; for `program`, its place."""
    text: str


class Found(msgspec.Struct, kw_only=True):
    """What is known so far."""

    failure: Failure | None = None
    first: Run | None = None
    runs: list[Run] = []
    rows: list[Row] = []
    responsible: list[Responsible] = []
    distributed: bool | None = None
    ruled_out: list[str] = []
    unclear: list[str] = []
    """Parts without which the job fails in another way."""
    unproven: list[str] = []
    """What could not be changed."""
    rate: tuple[int, int] | None = None
    """(failures, runs) of the settings with which it fails, where it does not always."""
    unfinished: str = ""
    """Why the search ended early."""
    works_with_one: bool | None = None
    confirmed: bool = False
    """What is responsible was seen twice."""
