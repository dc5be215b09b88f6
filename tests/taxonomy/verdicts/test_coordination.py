"""Who did not come to a barrier of JAX's coordination service, in the words of its old and its new releases."""

import msgspec

from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.verdicts import from_log

RAISED = (
    "Traceback (most recent call last):\n"
    '  File "/work/fit.py", line 31, in <module>\n'
    "    mngr.wait_until_finished()\n"
    '  File "/venv/lib/python3.12/site-packages/orbax/checkpoint/multihost.py", line 179, in _fn\n'
    "    client.wait_at_barrier(key, timeout_ms)\n"
)
NEW = (
    "jax.errors.JaxRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: write_complete.0.1. This usually happens "
    "because a task triggered the barrier too early or too slowly. Please look at the task logs (both timed out and "
    "first task) to debug further.\n# of tasks that reached the barrier: {}/{}.\n"
    "The first task at the barrier: /job:jax_worker/replica:0/task:5. Some timed out task names:\n"
)
OLD = (
    "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect. "
    "Timed out task names:\n"
)
REST = "\nAdditional GRPC error information from remote target unknown_target_for_coordination_leader:\n"


def of(head, *tasks, job="jax_worker"):
    """The snapshot of an output that names these tasks."""
    names = "".join(f"/job:{job}/replica:0/task:{task}\n" for task in tasks)
    return Snapshot(output=clean(RAISED + head + names + REST))


def verdict_of(*rest, **more):
    """The verdict on it."""
    return from_log.verdict_of_log(of(*rest, **more))


def test_the_processes_that_are_named_did_not_come():
    """With the count of those that did, where it's printed."""
    new, old = verdict_of(NEW.format(6, 8), 6, 2), verdict_of(OLD, 1)

    assert ("not_arrived", (2, 6)) == (new.kind, new.culprits)
    assert (
        "Ranks 2,6 did not come to the barrier write_complete.0.1 before its time was up; 6 of 8 processes came."
        == (new.summary)
    )
    assert ("not_arrived", (1,)) == (old.kind, old.culprits)
    assert "Rank 1 did not come to the barrier PjRT_Client_Connect before its time was up." == old.summary
    assert {2, 6} == {rank for claim in new.claims for rank in claim.ranks}


def test_a_list_that_was_cut_is_no_whole_one():
    """The service names twenty at most."""
    found = verdict_of(NEW.format(10, 40), *range(20))

    assert "Ranks 0-19 and 10 more did not come to the barrier" in found.summary


def test_without_names_no_rank_is_blamed():
    """Nor with tasks of two kinds, whose numbers are of two rows."""
    two = RAISED + OLD + "/job:worker/replica:0/task:1\n/job:chief/replica:0/task:0\n"

    assert verdict_of(NEW.format(7, 8)) is None
    assert from_log.verdict_of_log(Snapshot(output=two)) is None


def test_the_first_line_names_them():
    """In a diagnosis, for a barrier of the set-up."""
    snapshot = of(OLD, 1, 2)
    found = diagnose(load(), msgspec.structs.replace(snapshot, verdict=from_log.verdict_of_log(snapshot)))

    assert found.happened.startswith("Ranks 1-2 did not come to the barrier PjRT_Client_Connect")
    assert "not-all-processes-started" == found.advice[0].cause
