"""Decides from the attempts of a job whether another one is worth it: restart, leave something out, or stop.

What the failure moves with decides: host, data, step, code, release; with the odds that it is chance.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import comb
from typing import Literal

import msgspec
from msgspec.structs import replace

from dtdebug.recorded.attempts.attempt import Attempt

Action = Literal["restart", "exclude", "skip", "stop", "unknown", "none"]
_RARE, _LIKELY = 0.05, 0.5
"""Odds of chance up to which a shared host is to blame: after any failure, and after those of its devices."""
_DEVICE = re.compile(
    r"(?i)\bECC\b|\bXid\b|fallen off the bus|uncorrectable|hardware (?:error|failure)|unspecified launch failure"
    r"|illegal (?:memory access|instruction)|device not ready|SIGBUS"
)
_STUBBORN = 4
"""Attempts without progress after which even a failure of the machine or network is not tried again."""
_SAME_STEP, _TWICE = 1, 2
_CHANCE = 0.01
"""Odds that a passing failure hits the same step, or the same data, once more."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The next step, and its reasons."""

    action: Action
    what: str = ""
    """Host to leave out or data to skip."""
    headline: str
    why: str = ""
    odds: float | None = None
    """Probability that what the failures share is chance."""
    attempts: tuple[Attempt, ...] = ()
    same: int = 0
    """Failed attempts with the root of the last one."""
    lost_steps: int | None = None
    """Steps since the last checkpoint."""
    lost_hours: float | None = None


def decide(attempts: Sequence[Attempt]) -> Decision:
    """Return the decision on another attempt."""
    last, count = attempts[-1], len(attempts)
    failed = [a for a in attempts if a.failed]
    like = [a for a in failed if a.root == last.root and a.kind == last.kind]
    steps, hours = _loss(attempts)
    base = Decision(
        action="none", headline="", attempts=tuple(attempts), same=len(like), lost_steps=steps, lost_hours=hours
    )
    if not last.failed:
        state = "completed the training" if last.completed else "shows no failure"
        return replace(
            base, headline=f"Attempt {count} of {count} {state}: nothing is to be restarted.", why=_before(failed)
        )
    if len(failed) == 1:
        return replace(
            base,
            action="unknown",
            headline=f"{_words(last)} in 1 attempt: one attempt shows nothing about repetition.",
            why="Whether it fails again, and with which host, data or step, only another attempt can show.",
        )
    if last.kind == "scheduler":
        headline = f"Restart: the scheduler ended attempt {count}, no failure of the program."
        return replace(base, action="restart", headline=headline, why=_before(failed[:-1]))
    host, odds = _shared_host(failed, last)
    if host:
        mine = [a for a in failed if a.host == host]
        return replace(
            base,
            action="exclude",
            headline=f"Restart without {host}: {len(mine)} of {count} attempts failed there.",
            why=f"By chance the same host comes {_chance(odds)}.",
            what=host,
            odds=odds,
        )
    if len(like) >= _TWICE:
        return _decide_repeated(base, like, count)
    kinds = len({a.root for a in failed})
    return replace(
        base,
        action="restart",
        headline=f"Restart: attempt {count} failed otherwise than the {len(failed) - 1} before.",
        why=f"{kinds} different failures in {len(failed)} attempts: no host, data or step is in all of them.",
    )


def _decide_repeated(base: Decision, like: Sequence[Attempt], count: int) -> Decision:
    """Return the decision on a failure that came more than once."""
    last, times = like[-1], len(like)
    odds, stuck = _CHANCE ** (times - 1), _is_stuck(like)
    if last.position and len({a.position for a in like}) == 1:
        return replace(
            base,
            action="skip",
            what=last.position,
            odds=odds,
            headline=f"Skip {last.position}: {times} of {count} attempts failed at it.",
            why=f"{_words(last)} each time; by chance the same data comes {_chance(odds)}.",
        )
    if stuck and (last.kind == "program" or times >= _STUBBORN):
        hosts = len({a.host for a in like if a.host})
        on = f" on {hosts} hosts" if hosts > 1 else ""
        changed = _change(like)
        since = f" {changed} changed in between and did not help." if changed else ""
        where = f"at step {last.step:,}" if last.step is not None else "before the first step"
        return replace(
            base,
            action="stop",
            odds=odds,
            headline=f"Stop: the same {_name(last)} in {times} of {count} attempts {where}.",
            why=f"No attempt got further{on}: another one ends there too.{since}",
        )
    gained = ""
    if like[0].step is not None and last.step is not None and last.step > like[0].step:
        gained = f" The attempts got from step {like[0].step:,} to {last.step:,}."
    how = "it may pass: it is of a machine or the network" if stuck else "not at one step, host or part of the data"
    return replace(
        base,
        action="restart",
        headline=f"Restart: {_name(last)} in {times} of {count} attempts, {how}.",
        why=f"Nothing that could be left out is in all of them.{gained}",
    )


def _is_stuck(like: Sequence[Attempt]) -> bool:
    """True if every one of these attempts failed at the same step."""
    steps = [a.step if a.step is not None else -1 for a in like]
    return max(steps) - min(steps) <= _SAME_STEP


def _shared_host(failed: Sequence[Attempt], last: Attempt) -> tuple[str, float]:
    """Return the host on which failures came again and again, and the odds of chance; empty if there is none."""
    known = [a for a in failed if a.host and a.kind in ("machine", "program", "unknown")]
    mine = [a for a in known if a.host == last.host]
    hosts = max(max((len(a.hosts) for a in failed), default=0), len({a.host for a in known}))
    if not last.host or len(mine) < _TWICE or hosts < _TWICE or len(mine) * 2 <= len(known):
        return "", 1.0
    if not any(a.kind == "machine" for a in mine):  # a rank of its own, such as the one that saves, has its host
        one_place = len({a.position for a in mine}) == 1 and bool(last.position)
        if len({a.rank for a in mine}) == 1 or one_place or _is_stuck(mine):
            return "", 1.0
    odds = _odds(len(mine), len(known), hosts)
    devices = sum(_DEVICE.search(a.words) is not None for a in mine)
    return (last.host, odds) if odds <= (_LIKELY if devices >= _TWICE else _RARE) else ("", 1.0)


def _odds(times: int, of: int, hosts: int) -> float:
    """Return the probability that chance hits any one host this often."""
    share = 1 / hosts
    tail = sum(comb(of, n) * share**n * (1 - share) ** (of - n) for n in range(times, of + 1))
    return min(hosts * tail, 1.0)


def _change(like: Sequence[Attempt]) -> str:
    """Return what changed between these attempts: the code, or a release."""
    if len({a.code for a in like if a.code}) > 1:
        return "The code"
    return "A release" if len({a.releases for a in like if a.releases}) > 1 else ""


def _loss(attempts: Sequence[Attempt]) -> tuple[int | None, float | None]:
    """Return the steps and hours since the last checkpoint of any attempt, as far as the logs show it."""
    last = attempts[-1]
    saved = max((a.saved for a in attempts if a.saved is not None), default=None)
    if not last.failed or last.step is None:
        return None, None
    steps = max(last.step - (saved or 0), 0)
    hours = None
    if last.saved is not None and None not in (last.saved_time, last.ended):
        hours = round(max(last.ended - last.saved_time, 0.0) / 3600, 2)  # type: ignore[operator]
    return steps, hours


def _before(failed: Sequence[Attempt]) -> str:
    return f"Before that: {_words(failed[-1])}{_at(failed[-1])}." if failed else ""


def _at(a: Attempt) -> str:
    return f" at step {a.step:,}" if a.step is not None else ""


def _name(a: Attempt) -> str:
    return a.root.split("|", 1)[0].rpartition(".")[2] if "|" in a.root else a.root


def _words(a: Attempt) -> str:
    who = f"Rank {a.rank}" if a.rank is not None else "It"
    return f"{who} failed with {a.words[:120]}"


def _chance(odds: float) -> str:
    return f"1 time in {max(round(1 / odds), 1):,}"
