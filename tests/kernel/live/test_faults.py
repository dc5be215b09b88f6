"""Real gloo jobs with one fault each: who, what and where are found, from dumps alone and live."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

if find_spec("torch") is None:  # importing it here would cost each worker a second
    pytest.skip("torch is not installed", allow_module_level=True)

import injector
from injector import draw_jobs, examine
from truth import FAULTS, inject, markers

pytestmark = pytest.mark.ranks
SEED = 2
DUMPS = ("skip", "extra", "replace", "swap", "wrong_size", "wrong_dtype", "sleep", "none")
LIVE = ("raise", "kill", "busy", "gil")
"""What ends or stands in the same way each time. Calls that do not match end as gloo's timing has it."""
ENOUGH = 4
"""Of the jobs in `DUMPS`, those whose culprit must be found; the injector's report measures how many are."""
TRIES = 3


def tried(injection, folder, mode):
    """The result of a job in which the fault struck: a loaded machine may end it before."""
    for attempt in range(TRIES):
        result = examine(injection, folder / str(attempt), mode)
        if not result.void:
            break
    return result


def test_dumps_of_jobs_with_a_fault_name_the_culprit(tmp_path):
    """Nothing but the flight recorders' dumps is read."""
    found = [tried(one, tmp_path / one.name, "dumps") for one in draw_jobs(len(DUMPS), SEED, DUMPS, most=4)]
    assert ENOUGH <= sum(result.culprit for result in found), [result.said for result in found]


@pytest.mark.parametrize("injection", list(draw_jobs(len(LIVE), SEED, LIVE, most=4)), ids=lambda one: one.name)
def test_a_job_with_a_fault_under_dtdebug_run_gets_the_right_verdict(injection, tmp_path):
    """The job is started by torchrun, below `dtdebug run`."""
    result = tried(injection, tmp_path, "run")
    assert "" == result.void
    assert result.right, result.said


def test_every_fault_that_can_strike_has_a_line_in_the_job():
    """A fault whose marker is gone would be scored against nothing."""
    drawn = [
        inject(fault, layout, world, seed)
        for seed in range(40)
        for fault in FAULTS
        for layout, world in injector.SHAPES
    ]
    assert set() == {one.where_key() for one in drawn if one} - {"", *markers()}


def test_the_same_seed_draws_the_same_jobs():
    """A miss can be run again."""
    assert [one.name for one in draw_jobs(30, 5)] == [one.name for one in draw_jobs(30, 5)]
    assert {one.name for one in draw_jobs(30, 5)}.isdisjoint(one.name for one in draw_jobs(30, 6))


def test_a_wrong_verdict_is_a_miss():
    """The comparison can fail: a verdict of nothing is right about a healthy job only."""
    from score import score

    from dtdebug_taxonomy.model.ranks import Verdict

    nothing = Verdict(kind="none")
    assert not score(inject("skip", "world", 4, 1), nothing, {}).right
    assert score(inject("none", "world", 4, 1), nothing, {}).right
