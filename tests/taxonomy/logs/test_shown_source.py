"""Source that a text shows beside its failure is read by the checks."""

from __future__ import annotations

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.explanations.model import Explanation
from dtdebug_taxonomy.inference.from_measurements import of_shown
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.logs.split_post import split_prose
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.source.fenced_blocks import source_blocks

GUARDED = """My run on 2 GPUs hangs after the first epoch.

```{language}
import torch.distributed as dist

def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    for epoch in range(10):
        train(epoch)
        if rank == 0:
            save(model)
            dist.barrier()
main()
```
No error, it just stops.
"""
SCRIPT = """I train for two epochs and then all agents end with this, each time after 10 minutes:
torch.distributed.elastic.rendezvous.api.RendezvousClosedError

#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node={tasks}
srun torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint $head:29500 train.py
"""


def first(text: str) -> Explanation:
    situation, output = split_prose(text)
    return diagnose(load(), Snapshot(situation=situation, output=output)).advice[0]


@pytest.mark.parametrize("language", ["python", ""])
def test_a_collective_on_one_rank_in_the_shown_program_comes_first_with_the_diff_of_that_program(language: str) -> None:
    text = GUARDED.format(language=language)
    advice = first(text)
    assert advice.because[0].evidence == "source-collective-on-some-ranks"
    assert text.split("\n")[advice.because[0].line - 1].strip() == "dist.barrier()"
    assert advice.diff_of == "yours"
    assert "-            dist.barrier()\n+        dist.barrier()" in advice.diff


def test_output_between_fences_and_other_languages_are_no_source() -> None:
    assert not list(source_blocks(GUARDED.format(language="yaml")))
    assert not list(source_blocks('```\nTraceback (most recent call last):\n  File "a.py", line 1, in f\n```\n'))


def test_a_launcher_in_every_task_explains_a_rendezvous_that_is_closed() -> None:
    advice = first(SCRIPT.format(tasks=2))
    assert advice.cause == "launcher-in-every-task"
    assert "+#SBATCH --ntasks-per-node=1" in advice.diff
    assert first(SCRIPT.format(tasks=1)).cause != "launcher-in-every-task"


def test_a_change_since_which_it_fails_is_the_cause_that_the_user_names() -> None:
    advice = first("I see that training hangs since PR #958 is merged. It did not happen in older commits.")
    assert advice.title.startswith("What PR #958 changed")


def test_memory_that_runs_out_in_saving_is_not_told_as_a_batch_too_large() -> None:
    log = """[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/u/train.py", line 90, in <module>
[rank1]:     save_checkpoint(model)
[rank1]:   File "/home/u/train.py", line 40, in save_checkpoint
[rank1]:     state = model.state_dict()
[rank1]:   File "/opt/torch/distributed/fsdp/_state_dict_utils.py", line 303, in _full_pre_state_dict_hook
[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 26.00 GiB.
"""
    d = diagnose(load(), Snapshot(output=log))
    assert d.advice[0].cause == "full-state-collected-on-the-gpu"
    assert all(a.cause != "batch-too-large-per-rank" for a in d.advice)


def test_whole_weights_for_a_sharded_model_are_no_other_vocabulary() -> None:
    row = "size mismatch for embed_tokens.weight: copying a param with shape torch.Size([250112, 512]) from checkpoint"
    d = diagnose(
        load(),
        Snapshot(output=f"RuntimeError: loading state_dict:\n{row}, the shape in current model is torch.Size([0])"),
    )
    assert d.advice[0].cause == "loaded-on-wrong-side-of-wrapper"
    assert "sharded already" in d.advice[0].title


def test_what_is_said_not_to_be_the_reason_is_denied() -> None:
    d = diagnose(load(), Snapshot(situation="My DDP training freezes and it is not because it is out of memory."))
    assert not any(r.evidence == "memory-said-oom" for s in d.symptoms for r in s.why)


def test_a_fragment_without_imports_is_read_and_its_diff_shows_none() -> None:
    advice = first("""I have two nodes with 2 GPUs each and it hangs at the start.

```python
    torch.cuda.set_device(args.local_rank)
    dist.init_process_group("nccl", init_method="tcp://10.0.0.1:23456", world_size=4, rank=args.local_rank)
    model = DDP(model.cuda(), device_ids=[args.local_rank])
```
""")
    assert advice.cause == "not-all-processes-started"
    assert "The local rank is passed as the rank" in advice.title
    assert "import torch" not in advice.diff
    assert '+dist.init_process_group("nccl", ' in advice.diff


def test_of_many_hits_of_one_kind_the_first_is_told_and_hostile_blocks_are_bounded() -> None:
    guarded = "if dist.get_rank() == 0:\n    dist.barrier()\n" * 300
    rows = [f for f in of_shown(load(), Snapshot(output=f"```python\n{guarded}```\n")) if f.diff]
    assert [f.line for f in rows] == [3]
    assert len(list(source_blocks("```python\n" + "import " * 8_000 + "dist.x\n```\n"))) == 1
    assert not list(source_blocks("```python\n" + "x = 1\n" * 20_000 + "```\n"))
