"""What a writer has found out is told apart from what they suspect, quote, deny or take back."""

from __future__ import annotations

import pytest

from dtdebug_taxonomy.text.discoveries import find_discovery

CAUSES = {
    "Nothing in the log. Turned out that the second node mounted an older copy of the data set.": "older copy",
    "The culprit was a stray torch.cuda.synchronize() in the callback of rank 0.": "stray torch.cuda.synchronize()",
    "After two days I tracked it down to a cable between leaf 3 and node 12.": "cable between leaf 3 and node 12",
    "We bisected it to commit 4f1c2aa9, which moves the broadcast of the buffers.": "commit 4f1c2aa9",
    "git bisect points to the change of the default bucket size.": "default bucket size",
    "I thought it was the switch, turned out to be the firmware of one NIC.": "firmware of one NIC",
    "A faulty riser card was to blame. Swapped it, all fine.": "riser card",
    "Found the bug: my sampler gives rank 3 an empty shard.": "my sampler gives rank 3 an empty shard",
    "EDIT: solved.\nNode 2 had another release of the tokenizer installed and cut differently.": "Node 2 had",
    "The hang was caused by a print of a sharded tensor under `if rank == 0`.": "print of a sharded tensor",
    "We found that the hang is triggered when a rank gets an empty batch.": "a rank gets an empty batch",
    "The problem was that I called barrier() in a thread. Fixed now.": "called barrier() in a thread",
    "We found that the freeze comes from sampling on the first stage only.": "sampling on the first stage only",
    "Saving hangs, because rank 0 alone calls gather_weights().": "rank 0 alone calls gather_weights()",
    "With four tasks it uses only one GPU, because jobs.start counts them by a variable of LSF.": "counts them",
}
REMEDIES = {
    "If I set NCCL_IB_DISABLE=1 it works.": "NCCL_IB_DISABLE=1",
    "After downgrading to 2.3.1, it works again.": "downgrading to 2.3.1",
    "Workaround: export OMP_NUM_THREADS=1 before the launch.": "OMP_NUM_THREADS=1",
    "I fixed it by moving the evaluation to all ranks.": "moving the evaluation to all ranks",
    "Removing the second DataLoader solved the issue for us.": "removing the second DataLoader",
    "As a workaround, we pin the process to its socket.": "pin the process",
    "Once we mounted /dev/shm with 16G, training runs.": "/dev/shm",
    "persistent_workers=True makes the leak go away.": "persistent_workers=True",
    "Everything works again after reinstalling the driver.": "reinstalling the driver",
    "If in src/setup.py we replace `init(a, b)` by `init(a, b, c=1)` the error is gone.": "`init(a, b, c=1)`",
    "One can avoid this by passing device_id to init_process_group, so I propose a change.": "passing device_id",
}
NONE = (
    "We use NCCL because it is the fastest backend here.",
    "It hangs because of the message above.",
    "The import fails, because a symbol is undefined.",
    "It runs out of memory because GPU 0 fills up more than the others.",
    "It fails maybe because the port is taken by somebody.",
    "I suspect that the culprit was the switch.",
    "Could it be that it was caused by the new driver?",
    "Maybe the root cause is NCCL, I do not know.",
    "NCCL_P2P_DISABLE=1 did not fix it.",
    "Nothing solved the problem so far.",
    "The reason is unknown.",
    "It turned out not to be the firewall.",
    "A colleague said that downgrading fixed it for him.",
    "> The culprit was the cable.",
    "Someone in the other issue reported that it was caused by the sampler.",
    "I fixed the import error by reinstalling apex. Now training hangs in the first all_reduce.",
    "If I set NCCL_IB_DISABLE=1 it works. However, it hangs again after an hour.",
    "Should be fixed by the next release, I hope.",
    "Is there a workaround for this problem?",
    "It looks like the problem was caused by a deadlock.",
    "The issue is that it hangs after the first epoch.",
    "What is the cause of this error?",
    "When I use four cards it comes to rest at 25% progress.",
    "The learning rate is at its end when I use several GPUs.",
    "On eight cards a few steps go through and then everything comes to rest, each time at another step.",
    "With option A training is stuck on two machines. When I set B the training is stuck, with C it trains.",
)


@pytest.mark.parametrize(("text", "named"), CAUSES.items(), ids=range(len(CAUSES)))
def test_a_cause_that_the_writer_found(text: str, named: str) -> None:
    """It is quoted as the cause."""
    found = find_discovery(text)
    assert found is not None
    assert named in found.cause


@pytest.mark.parametrize(("text", "done"), REMEDIES.items(), ids=range(len(REMEDIES)))
def test_what_made_it_work(text: str, done: str) -> None:
    """It is quoted as the remedy, not as a cause."""
    found = find_discovery(text)
    assert found is not None
    assert not found.cause
    assert done in found.remedy


@pytest.mark.parametrize("text", NONE, ids=range(len(NONE)))
def test_no_discovery(text: str) -> None:
    """A suspicion, a report of others, a denial, a question, and what is taken back, are none."""
    assert find_discovery(text) is None


def test_the_last_finding_counts() -> None:
    """A later finding corrects an earlier one; the line is that of the sentence."""
    found = find_discovery(
        "The culprit was the sampler.\n\nUpdate: turned out that the loader was forked after CUDA.\nSpawn fixed it."
    )
    assert found is not None
    assert (found.cause, found.line) == ("the loader was forked after CUDA", 3)
    assert found.remedy == "Spawn fixed it"


def test_code_is_no_sentence() -> None:
    """A comment in a block of code states nothing of the failure."""
    assert find_discovery("It hangs.\n```python\n# workaround: the culprit was the cache\nx = 1\n```\n") is None


def test_what_is_kept_fixed_is_not_repaired() -> None:
    """A constant is no remedy."""
    said = "With fewer nodes the loss has a kink. We keep the global batch fixed with gradient accumulation."
    found = find_discovery(said)
    assert found is None or not found.remedy
