"""Dumps of jobs in all layouts: the culprit is found, and nothing that is said contradicts a dump.

`DTDEBUG_SEEDS=5000:8000` tries other jobs than those of each run.
"""

from __future__ import annotations

import os

import flight_claims
import flight_data as fr
import flight_layouts
import msgspec
import pytest

from dtdebug.recorded.flight_recorder import analyse, sandbox

FIRST, LAST = map(int, os.environ.get("DTDEBUG_SEEDS", "0:200").split(":"))
EACH = 25


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """These dumps are harmless: no child is needed for each job."""
    monkeypatch.setattr(sandbox, "every", lambda found: [sandbox.one(f) for f in found])


@pytest.mark.parametrize("begin", range(FIRST, LAST, EACH))
def test_no_statement_contradicts_a_dump(tmp_path, begin):
    """Nine of ten culprits are right at least, and what is wrong is said of records that allow it."""
    wrong, right, tried = [], 0, 0
    for seed in range(begin, min(begin + EACH, LAST)):
        job = flight_layouts.drawn(seed)
        verdict = analyse(fr.write(tmp_path / str(seed), job.dumps, job.form)).verdict
        wrong += [
            f"{job.name}: {text}" for text in flight_claims.contradictions(verdict, flight_claims.Dumps(job.dumps))
        ]
        tried += 1
        right += verdict.kind in job.truth["kinds"] and tuple(job.truth["culprits"]) == verdict.culprits
    assert [] == wrong
    assert right >= 0.9 * tried


def test_of_two_that_disagree_neither_is_accused_without_a_reason(tmp_path):
    """A verdict on a group of two names the right rank, or nobody; what it says of the call stands in the dumps.

    Where a rank skipped a call and only open entries are kept, ranks that changed an order look alike.
    """
    accused = []
    for seed in range(FIRST, FIRST + 24):
        job = flight_layouts.drawn(seed, pair=True)
        verdict = analyse(fr.write(tmp_path / str(seed), job.dumps, job.form)).verdict
        assert [] == flight_claims.contradictions(verdict, flight_claims.Dumps(job.dumps)), job.name
        if job.truth["fault"] != "skipped" and verdict.culprits not in ((), tuple(job.truth["culprits"])):
            accused.append(job.name)
    assert [] == accused


def test_the_check_finds_what_is_made_up(tmp_path):
    """Another rank, number, place or argument in any claim is a contradiction."""
    job = next(job for job in map(flight_layouts.drawn, range(100)) if "wrong_dtype 2" in job.name)
    verdict = analyse(fr.write(tmp_path, job.dumps, job.form)).verdict
    dumps = flight_claims.Dumps(job.dumps)
    assert [] == flight_claims.contradictions(verdict, dumps)
    for change in ({"seq": 10**6}, {"line": 7}, {"words": "type Half"}, {"ranks": (10**6,)}, {"op": "reduce"}):
        claims = [msgspec.structs.replace(claim, **change) for claim in verdict.claims if claim.what == "called"]
        changed = msgspec.structs.replace(verdict, claims=tuple(claims), evidence=())
        assert len(flight_claims.contradictions(changed, dumps)) >= len(claims) > 0
