"""What printed numbers show to be impossible or uneven."""

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.explanations.reckoners.shares import divide
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot

PRODUCT = (
    "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu *"
    " gradient_acc_step * world_size "
)
PENDING = "Pending Demands:\n{asked}: 1+ pending placement groups\n"


def first(output, situation="Training on several GPUs."):
    return diagnose(load(), Snapshot(situation=situation, output=output)).advice[0]


@pytest.mark.parametrize(
    ("usage", "asked", "says"),
    [
        ("0.0/34.0 CPU\n0.0/1.0 GPU\n", "{'GPU': 1.0} * 2 (PACK)", "2 GPUs are asked of Ray, and it knows 1"),
        ("0.0/20.0 CPU\n", "{'CPU': 1.0, 'GPU': 1.0}", "1 GPU is asked of Ray, and it knows 0"),
        ("2.0/2.0 CPU\n", "{'CPU': 2.0}", "2 CPUs are asked of Ray, and 0 of 2 free"),
    ],
)
def test_what_is_asked_is_held_against_what_is_free(usage, asked, says):
    found = first(f"Total Usage:\n{usage}{PENDING.format(asked=asked)}")

    assert says == found.title
    assert "printed" == found.grade


def test_one_request_that_is_printed_twice_is_counted_once():
    waits = "Waiting for creating a placement group of specs for 150 s. specs=[{'GPU': 1.0}, {'GPU': 1.0}]. Check\n"
    found = first(f"{waits}Total Usage:\n0.0/1.0 GPU\n{PENDING.format(asked=str({'GPU': 1.0}) + ' * 2 (PACK)')}")

    assert "2 GPUs are asked of Ray, and it knows 1" == found.title


def test_a_request_that_fits_is_none():
    output = f"Total Usage:\n0.0/8.0 GPU\n{PENDING.format(asked={'GPU': 1.0})}"
    advice = diagnose(load(), Snapshot(situation="Ray waits on 8 GPUs.", output=output)).advice

    assert "resources-do-not-suffice" not in {a.cause for a in advice}


def test_a_batch_that_fits_the_started_processes_says_that_they_are_not_counted():
    """And without their number, or if it does not fit either, only the product is told."""
    command = "torchrun --nproc_per_node=8 train.py"

    assert "with 8 the batch fits (4 x 8 x 8 = 256)" in first(f"{PRODUCT}256 != 4 * 8 * 1", command).title
    assert "batch-fits-the-started-processes" != first(f"{PRODUCT}250 != 4 * 8 * 1", command).cause
    assert "batch-fits-the-started-processes" != first(f"{PRODUCT}256 != 4 * 8 * 1").cause


def test_both_sides_of_an_assertion_are_told():
    """By the values printed above it; a comparison that holds with them was another one."""
    frames = (
        'max(gpu_ids): {0}, torch.cuda.device_count(): 1\nTraceback (most recent call last):\n  File "/home/me/f.py",'
        " line 52, in get\n    assert max(gpu_ids) < torch.cuda.device_count()\nAssertionError\n"
    )

    assert first(frames.format(3)).title.startswith("max(gpu_ids) is 3, and has to be below torch.cuda.device_count()")
    assert "sides-of-an-assertion" not in {
        a.cause for a in diagnose(load(), Snapshot(situation="4 GPUs", output=frames.format(0))).advice
    }


def test_fewer_devices_than_processes_are_seen_by_printed_figures():
    found = first(
        "torch.cuda.device_count(): 2\nRuntimeError: it failed", "torchrun --nproc_per_node=4 train.py stops."
    )

    assert "4 processes are started on a host on which 2 devices are visible" == found.title


def test_uneven_steps_are_worked_out():
    """Dealt out in turn or cut in blocks, as those who wait tell."""
    assert divide(145, 3, 16) == ([49, 48, 48], [4, 3, 3])
    assert divide(145, 3, 16, frozenset({0, 1})) == ([49, 49, 47], [4, 4, 3])
    assert divide(144, 3, 16) is None
    assert divide(145, 3, 100) is None
    assert divide(2, 3, 1) is None

    said = (
        "145 files on 3 ranks with a batch size of 16: after the last step ranks 0 and 1 stand in the barrier for ever."
    )
    found = diagnose(load(), Snapshot(situation=said))

    assert "0-1 make 4 steps and the others 3" in found.advice[0].title
