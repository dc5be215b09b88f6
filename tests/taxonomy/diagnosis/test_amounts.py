"""What was used of which limit belongs to the headline, with the node."""

from __future__ import annotations

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.logs.message_detail import used_of_limit
from dtdebug_taxonomy.model.snapshot import Snapshot

RAY = """(TrainWorker pid=41, ip=10.0.0.3) step 20 loss 1.2
(raylet, ip=10.0.0.7) node_manager.cc:3064: 2 Workers (tasks / actors) killed due to memory pressure (OOM)
(raylet, ip=10.0.0.7) Memory on the node (IP: 10.0.0.7, ID: 5a0c) where the task was running was 61.20GB / 64.00GB \
(0.956), which exceeds the memory usage threshold of 0.95.
ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
\tclass_name: TrainWorker
\tpid: 902
"""


def test_amounts_and_node_of_the_cause_are_in_the_headline() -> None:
    happened = diagnose(load(), Snapshot(output=RAY)).happened
    assert "61.20GB of 64.00GB used on 10.0.0.7" in happened


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("Memory on the node (IP: 10.0.0.7, ID: 5) was 61.2GB / 64.0GB (0.95)", "61.2GB of 64.0GB used on 10.0.0.7"),
        ("5.5 GB of 5.5 GB physical memory used. Consider boosting the overhead.", "5.5 GB of 5.5 GB used"),
        ("Unmanaged memory: 5.21 GiB -- Worker memory limit: 5.6 GiB", "5.21 GiB of 5.6 GiB used"),
        ("slurmstepd: error: Job 77 exceeded memory limit (2097 > 2048), being killed", "2097 of 2048 used"),
        ("epoch 3 of 10, step 410/2600, 177 img/s", ""),
        ("Process 12 (python) total-vm:881kB", ""),
    ],
)
def test_amounts_are_read_with_units_or_as_a_limit_that_was_passed(row: str, told: str) -> None:
    assert used_of_limit(row) == told
