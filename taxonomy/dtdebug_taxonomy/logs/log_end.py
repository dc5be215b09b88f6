"""Reads the end of a training log, and any sign that the job ended: a hung job prints neither more nor an error.

Whether such a job hangs, still runs, or had its log cut off cannot be told from the log alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dtdebug_taxonomy.logs.completion import is_completion
from dtdebug_taxonomy.logs.log import Log
from dtdebug_taxonomy.logs.progress import OTHER_BAR, PROGRESS, STEP
from dtdebug_taxonomy.logs.standstill import states_standstill
from dtdebug_taxonomy.logs.tasks import job_size
from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.ranks import Verdict
from dtdebug_taxonomy.text.pattern_matcher import plain

ROWS = 48
"""Trailing lines of one printer that are examined."""
_ALL = 400
"""The same of a whole log."""
_STEPS = 5
"""Steps that show that a training runs: fewer may be a plan, or those of another program."""
_ENDS = re.compile(
    r"(?i)\b(?:finish|complete|done\b|sav(?:e|ed|ing)\b|final|end(?:ed|ing)?\b|stop|exit|clos(?:ed?|ing)\b|shut|destroy|total"
    r"|best|eval|valid|test|bye|terminat|cancel|kill|abort|interrupt|preempt|error|exception|fail|success|summary)"
)
"""Words with which a program, its launcher or a scheduler ends, or a part of a training."""
_ALARM = re.compile(
    r"(?i)(?<!0 )(?<!no )(?<!not )\b(?:killed|died|dead|evicted|aborted|held|crashed|exceeded|gone over|unreachable"
    r"|exhausted|unresponsive|mismatch|out of memory)\b"
)
"""Words for what goes wrong outside of a program, as schedulers and monitors report it."""
_WARNS = re.compile(r"\.py:\d{1,7}: \w{0,60}Warning: |^ {1,8}warnings\.warn\(")
"""A warning of Python: that of leaked semaphores `at shutdown` comes after a process was killed, too."""
_VALUE = re.compile(r" {0,12}[\w/.() -]{1,60}[=:] {0,4}[-+]?\d[\d,.]{0,30}(?:e[-+]?\d{1,3})?%?\s{0,4}$")
"""A value that is printed with each step, whatever its name: `throughput/total_tokens=16,802`."""
_OF = re.compile(r" {0,3}(?:/|of) {0,8}(\d{1,9})\b")
_BARE_STEP = re.compile(r"(?:^|[ \[(|])(\d{1,9}) ?/ ?(\d{1,9})(?=[\]) |,:]|$)")
"""Step of a plan without a name, in a line that reports progress."""
_CLOCK = re.compile(r"(?<![<\d])(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?!<)")
_DIGITS = re.compile(r"[0-9a-fA-F]*\d[0-9a-fA-F]*")
_LONGEST, _KEY = 400, 60
_SAID = 100
UNSIGNED = " without a sign of an end"
"""Part of the sentence on a log that just ends."""


class LastStep(NamedTuple):
    """The end of the output of one printer, or of a whole log."""

    step: int | None = None
    place: int = -1
    """Index of the row that names it."""
    seen: int = 0
    """Different steps in these rows."""
    ends: bool = False
    """A sign of an end: the last step of a plan, or other words below it."""
    says: str = ""
    """Last line, if it says that there is no progress."""

    @property
    def stops(self) -> bool:
        """Training stops here, without a sign of an end."""
        return self.step is not None and self.seen >= _STEPS and not self.ends


def read_end(bodies: Sequence[str]) -> LastStep:
    """Return the last step in some lines without prefixes, and whether a sign of an end follows.

    Lines at the end that say that there is no progress are no such sign.
    """
    count = len(bodies)
    while count and (not bodies[count - 1].strip() or states_standstill(bodies[count - 1])):
        count -= 1
    says = next((body.strip() for body in reversed(bodies[count:]) if body.strip()), "")
    return _read_end(bodies[:count] if says else bodies, says)


def _read_end(bodies: Sequence[str], says: str) -> LastStep:
    found = [(place, int(m[1]), m) for place, body in enumerate(bodies) if (m := _step(body)) is not None]
    if not found:
        return LastStep(ends=any(_says_end(body) for body in bodies[-_STEPS:]))
    place, step, match = found[-1]
    total = _OF.match(match.string, match.end(1))
    plan = int(total[1]) if total is not None else 0
    ends = step + 1 >= plan if plan else _is_round(step) and not says
    known = {_key(body) for body in bodies[:place]}
    below = [body for body in bodies[place + 1 :] if body.strip() and not _WARNS.search(body[:_LONGEST])]
    ends = ends or _ENDS.search(_without_total(match)) is not None
    ends = ends or any(_key(body) not in known or (_says_end(body) and not _VALUE.match(body)) for body in below)
    ends = ends or any(is_completion(body) for body in bodies)
    seen = len({number for _, number, _ in found})
    return LastStep(step, place, max(seen, step) if plan and "%|" in match.string else seen, ends, says)


def has_reached_plan(log: Log) -> bool:
    """True if the last step of a log is the last of its plan, `400/400`; the steps of an epoch are no such plan."""
    for line in reversed(log.lines[-_ALL:]):
        found = _step(line.body)
        total = _OF.match(found.string, found.end(1)) if found is not None else None
        if found is None and PROGRESS.search(line.body[:_LONGEST]):
            found = total = _BARE_STEP.search(line.body[:_KEY])
        if found is not None:
            planned = int(total[total.re.groups]) if total is not None else 0
            return _STEPS <= planned <= int(found[1]) and "epoch" not in line.body.lower()
    return False


def unexplained_alarm(log: Log) -> tuple[int, str]:
    """Return number and text of the last line that reports an end or a fault, in a log without any step of a training.

    Nothing shows that the job continued after it.
    """
    if any(PROGRESS.search(line.body[:_LONGEST]) for line in log.lines):
        return 0, ""
    found = (line for line in reversed(log.lines[-_ALL:]) if _ALARM.search(line.body[:_LONGEST]))
    return next(((line.number, line.body.strip()) for line in found), (0, ""))


def _says_end(body: str) -> bool:
    """True if a line has words of an end; those of NCCL are of its own set-up."""
    return "NCCL INFO" not in body and _ENDS.search(body[:_LONGEST]) is not None


def _step(body: str) -> re.Match[str] | None:
    head = body[:_LONGEST]
    found = STEP.search(head)
    return None if found is None or ("%|" in head and OTHER_BAR.match(head)) else found


def _without_total(match: re.Match[str]) -> str:
    """The line of a step without the words for how far it is."""
    return re.sub(r"(?i)\btotal\w*|\bbest\w*", "", match.string)


def _is_round(step: int) -> bool:
    """True if a plan may end with this step, or with the next: 1000, 999, 50."""
    return any(str(number).rstrip("0") in set("123456789") for number in (step, step + 1)) and step >= _STEPS


def _key(body: str) -> str:
    return _DIGITS.sub("0", body[:_KEY])


def stopped_log(log: Log) -> Verdict | None:
    """Return the verdict on a log that stops while it trains; None if something failed or a sign of an end follows."""
    if log.events.raised or log.said.exits or not log.lines:
        return None
    rows = log.lines[-_ALL:]
    end = read_end([line.body for line in rows])
    if not end.stops or end.step is None:
        return None
    line = rows[end.place]
    ranks = {each.rank for each in log.lines if each.rank is not None}
    size = max(len(ranks), job_size(log.lines, log.around))
    return stop_verdict(end.step, clock_in(line.time, line.body), size, line.number, says=end.says)


def clock_in(*texts: str) -> str:
    """Return the first time of day, with its date if that is there, in a prefix or a line; empty without one."""
    found = (_CLOCK.search(text[:_LONGEST]) for text in texts)
    return next((match[0].replace("T", " ") for match in found if match is not None), "")


def stop_verdict(step: int, clock: str, ranks: int, line: int, path: str = "", *, says: str = "") -> Verdict:
    """State where a log ends; `ranks` is the size of the job, 0 if unknown; `says`: a line on missing progress."""
    when = f" ({clock})" if clock else ""
    of = f" of a job of {ranks:,} ranks" if ranks > 1 else ""
    claim = Claim(
        what="stops",
        ranks=(),
        count=step,
        words=f"step {step}{when}",
        record=Record(source="output", line=line, path=path),
    )
    summary = (
        f"The log{of} ends at step {step}{when}{UNSIGNED}: the job is still running, hangs, or its log was cut off."
    )
    if says:
        summary = f'The job stands: its log{of} has no step after {step}{when}, and ends with "{plain(says, _SAID)}".'
    return Verdict(
        kind="not_understood",
        confidence=0.5,
        summary=summary,
        claims=(claim,),
        evidence=texts((claim,)),
    )


def is_stop(verdict: Verdict | None) -> bool:
    """True if nothing is known but the place where a log stops."""
    return verdict is not None and any(claim.what == "stops" for claim in verdict.claims)
