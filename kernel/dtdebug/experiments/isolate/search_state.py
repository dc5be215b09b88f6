"""Types of a search's state and results."""

from __future__ import annotations

import msgspec

from dtdebug.experiments.isolate.failure_identity import FailureIdentity
from dtdebug.experiments.isolate.run_types import Run

WORDS = {
    "slow": ("slow", "faster", "is as slow", "is faster"),
    "differs": ("differs", "agrees", "differs in the same way", "gives what was recorded"),
}
FAILS = ("fails", "ok", "fails in the same way", "does not fail")
"""Words for a run that goes as before and for one that does not: in a table, and in a sentence."""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """Row of the answer: a change, how the job then ran, and the conclusion."""

    title: str
    tried: tuple[tuple[str, str], ...]
    """(value, result) of each run, in order."""
    says: str = ""


class ResponsibleFactor(msgspec.Struct, frozen=True, kw_only=True):
    """One responsible factor."""

    factor: str
    value: str
    """Value with which the job does not fail; for `program`, its place."""
    text: str
    fix: str = ""
    """Suggested fix, in the imperative; empty if the runs do not show one."""
    diff: str = ""
    """The measured change, as a patch of the user's file."""


class SearchState(msgspec.Struct, kw_only=True):
    """State of a search."""

    @property
    def words(self) -> tuple[str, str, str, str]:
        """Words that describe the runs."""
        return WORDS.get(self.failure.how, FAILS) if self.failure is not None else FAILS

    failure: FailureIdentity | None = None
    first: Run | None = None
    runs: list[Run] = []
    rows: list[RunRow] = []
    responsible: list[ResponsibleFactor] = []
    distributed: bool | None = None
    ruled_out: list[str] = []
    unclear: list[str] = []
    """Parts without which the job fails in another way."""
    unproven: list[str] = []
    """Factors that could not be changed."""
    rate: tuple[int, int] | None = None
    """(failures, runs) of the failing settings, if the job fails only sometimes."""
    not_varied: list[str] = []
    """Settings that may matter and were not changed, with the reason."""
    unfinished: str = ""
    """Reason why the search ended early."""
    works_with_one: bool | None = None
    confirmed: bool = False
    """The responsible factors were confirmed by a second run."""
    undecided: str = ""
    """For a slow job: reason why no part can be named."""
    measured: str = ""
    """For a slow job: the seconds on which the answer rests."""
