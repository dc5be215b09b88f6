"""The account of a call that is about to be made: what the program gives it, and where that was made."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType, TracebackType

from dtdebug.account import scopes
from dtdebug.account.capture import explain, facts
from dtdebug.account.sources import Sources, live_lines
from dtdebug.account.way_back import Deadline
from dtdebug.process import user_objects
from dtdebug_taxonomy.model.account import Account

_SECONDS = 0.05


def account_of_call(frames: Sequence[FrameType], rank: int | None = None, seconds: float = _SECONDS) -> Account:
    """Return the account of the innermost call; `frames` begin with the outermost one of the program."""
    try:
        rows = [TracebackType(None, frame, frame.f_lasti, frame.f_lineno or 1) for frame in frames]
        sources = Sources(live_lines)
        stack = scopes.of_traceback(None, sources, rows)
        return explain(Account(rank=rank, facts=facts()), stack, sources, Deadline(seconds))
    except user_objects.RAISES as error:
        return Account(rank=rank, stopped=f"the program can't be read ({type(error).__name__})")
