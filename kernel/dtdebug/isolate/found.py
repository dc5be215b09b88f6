"""What a search has found so far."""

from __future__ import annotations

import msgspec

from dtdebug.isolate.identity import FailureIdentity
from dtdebug.isolate.run import Run

WORDS = {
    "slow": ("slow", "faster", "is as slow", "is faster"),
    "differs": ("differs", "agrees", "differs in the same way", "gives what was recorded"),
}
FAILS = ("fails", "ok", "fails in the same way", "does not fail")
"""What is said of a run that goes as before and of one that does not: in a table, and in a sentence."""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
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
    fix: str = ""
    """What to do, as an order; empty where the runs do not tell."""
    diff: str = ""
    """The change that was measured, as a patch of the user's file."""


class SearchState(msgspec.Struct, kw_only=True):
    """What is known so far."""

    @property
    def words(self) -> tuple[str, str, str, str]:
        """How runs are told."""
        return WORDS.get(self.failure.how, FAILS) if self.failure is not None else FAILS

    failure: FailureIdentity | None = None
    first: Run | None = None
    runs: list[Run] = []
    rows: list[RunRow] = []
    responsible: list[Responsible] = []
    distributed: bool | None = None
    ruled_out: list[str] = []
    unclear: list[str] = []
    """Parts without which the job fails in another way."""
    unproven: list[str] = []
    """What could not be changed."""
    rate: tuple[int, int] | None = None
    """(failures, runs) of the settings with which it fails, where it does not always."""
    not_varied: list[str] = []
    """What might matter and was not changed, and why."""
    unfinished: str = ""
    """Why the search ended early."""
    works_with_one: bool | None = None
    confirmed: bool = False
    """What is responsible was seen twice."""
    undecided: str = ""
    """Of a slow job: why no part can be named."""
    measured: str = ""
    """Of a slow job: the seconds that the answer rests on."""
