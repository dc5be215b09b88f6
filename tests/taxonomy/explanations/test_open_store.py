"""A store that an earlier run left open explains a failed set-up, and nothing else."""

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.ranks import Frame, RankState
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, OpenStore, Snapshot
from dtdebug_taxonomy.presentation.answer import build_answer

REFUSED = "Gloo connectFullMesh failed with [pair.cc:152] timed out connecting: SO_ERROR: Connection refused"
SET_UP = (
    Frame("cell In[2]", 3, "train"),
    Frame("/v/site-packages/torch/distributed/distributed_c10d.py", 9, "init_process_group"),
)
OWN = (Frame("cell In[2]", 7, "train"),)


def answer(store, frames, message=REFUSED, **more):
    raised = ExceptionInfo(type="RuntimeError", message=message, rank=0, frames=frames)
    snapshot = Snapshot(exception=raised, open_store=store, **more)
    return build_answer(diagnose(load(), snapshot), snapshot)


def test_ranks_that_find_nobody_at_an_address_met_the_keys_of_the_run_before():
    """The shared store is measured, and a process that has ended is at the address that it gave."""
    found = answer(OpenStore(port=29500, cell=4), SET_UP)

    assert found.headline.startswith("The ranks met the keys of an earlier run")
    assert "cell [4] at port 29500" in found.headline
    assert "%dtdebug end" in found.fix.text
    assert "certain" == found.sure


def test_another_failure_of_the_set_up_is_possibly_due_to_them():
    """Only the shared store is measured: the event stays the headline."""
    found = answer(OpenStore(port=29500, cell=4), SET_UP, "wait timeout after 60000ms")

    assert "wait timeout" in found.headline
    assert "The ranks met the keys of an earlier run" in found.why
    assert "possible" == found.sure


def test_ranks_that_wait_in_the_set_up_count_as_well():
    """A hang has no exception of its own."""
    waits = RankState(rank=0, pid=1, stack=SET_UP)
    found = answer(OpenStore(port=29500), OWN, "interrupted", ranks=(waits,))

    assert "an earlier cell at port 29500" in found.why


@pytest.mark.parametrize(
    ("store", "frames", "message"),
    [(None, SET_UP, REFUSED), (OpenStore(port=29500, cell=4), OWN, "bad label")],
    ids=["no store", "another place"],
)
def test_what_has_another_reason_is_left_alone(store, frames, message):
    """An error of the program after the set-up, or a run that got a store of its own."""
    found = answer(store, frames, message)

    assert "earlier run" not in found.headline + found.why
