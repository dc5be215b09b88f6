"""Holds the calls of a rank against their contracts before they run: a fake group takes what a real one refuses."""

from __future__ import annotations

import sys
from types import FrameType

from dtdebug.account.live_call import account_of_call
from dtdebug.experiments.collectives.inside import call_sites
from dtdebug_taxonomy.explanations.deciding_lines import decided_clause, deciding_line
from dtdebug_taxonomy.inference.contracts import broken_contract
from dtdebug_taxonomy.text.contract_call import UnknownSlotError, fill

_FRAMES = 60


def broken_here(rank: int) -> tuple[str, str] | None:
    """Return the demand that the call of the program's innermost line breaks, with its values, and the advice."""
    account = account_of_call(_frames(), rank)
    found = broken_contract(account)
    if found is None:
        return None
    try:
        said = f"{fill(found.contract.says, found.call)}{decided_clause(account, deciding_line(account))}"
        return said, fill(found.contract.fix, found.call, strict=False)
    except UnknownSlotError:
        return None


def _frames() -> list[FrameType]:
    """Return the frames from the program's outermost line to the function of the library that it called."""
    found: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - documented
    while frame is not None and len(found) < _FRAMES:
        found.append(frame)
        frame = frame.f_back
    users = [n for n, each in enumerate(found) if call_sites.is_of_user(each.f_code.co_filename)]
    if not users:
        return []
    begin = users[0]
    while begin and "/dtdebug/" not in found[begin - 1].f_code.co_filename:
        begin -= 1
    return found[begin : users[-1] + 1][::-1]
