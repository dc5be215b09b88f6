"""The last line of a rank that does not report what all others report: the phase that it was in when they waited."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dtdebug_taxonomy.logs.log import Log
from dtdebug_taxonomy.logs.log_end import clock_in
from dtdebug_taxonomy.logs.tasks import LastLine
from dtdebug_taxonomy.model.claims import Claim, Record
from dtdebug_taxonomy.model.ranks import spell
from dtdebug_taxonomy.text.pattern_matcher import plain

_SHOWN, _LONGEST = 60, 200
_CLOCK = len("12:02:03")
_MOST = 4
"""Maximum number of silent ranks whose last lines are looked for."""


def last_line_claim(last: LastLine) -> Claim:
    """Return the last line of a rank as a claim."""
    record = Record(source="output", line=last.line, path=last.path, rank=last.rank, words=last.text)
    return Claim(what="printed", ranks=(last.rank,), words=f"last line: {last.text}", record=record)


def last_lines(log: Log, ranks: Iterable[int], before: int = 0) -> tuple[LastLine, ...]:
    """Return the last lines of ranks, the earliest first; `before`: the line of the others' first report.

    Of an excerpt only what the whole logs were read for is known, and not its own lines: later ones are left out.
    """
    wanted = (*ranks,)[:_MOST]
    found = {rank: log.around.endings[rank] for rank in wanted if rank in log.around.endings}
    if log.whole and not log.around.printing:
        for line in log.lines:
            if line.rank not in wanted or not line.body.strip() or 0 < before <= line.number:
                continue
            words = plain(" ".join(line.body.split()), _LONGEST)
            found[line.rank] = LastLine(line.rank, words, line.number, clock_in(line.time, line.body))
    return tuple(sorted(found.values(), key=lambda last: (last.clock, last.line)))


def are_exception(silent: Collection[int], waiting: Collection[int]) -> bool:
    """True if so few ranks are silent that the log shows all of them, and the others wait for these."""
    return len(silent) * 3 <= len(waiting) or (len(silent) == 1 and len(waiting) == 2)


def telling_end(ranks: Collection[int], rows: Iterable[LastLine]) -> str:
    """Return `: its last line, 12:02:03, is "saving checkpoint"`; empty if no line of these ranks is known."""
    last = next(iter(rows), None)
    if last is None:
        return ""
    text = last.text.removeprefix(last.clock).strip(" |:-") if last.clock else last.text
    when = f" ({last.clock[-_CLOCK:]})" if last.clock else ""
    who = "its last line" if len(ranks) == 1 else f"the last line of {spell((last.rank,), 1)}"
    return f': {who}{when} is "{_short(text)}"'


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3].rstrip()}..."
