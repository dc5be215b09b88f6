"""What is trusted less may raise what is trusted more, and never rules it out; what is shown is checked first."""

from __future__ import annotations

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis, diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.logs.split_post import split_prose
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text.shown_code import commands, pieces

SLURM = """Two nodes, eight GPUs each. In the job script:
```sh
#SBATCH --ntasks-per-node=8
srun torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=$head:29501 train.py
```"""
GUARDED = """Since the evaluation is distributed, DDP training stops the first time a checkpoint is due. One GPU works.
{fence}
import torch.distributed as dist
def evaluate(model):
    run(model)
    dist.barrier()
for epoch in range(10):
    train(model)
    if global_rank == 0:
        save(model)
        evaluate(model)
{fence}"""
NODE_RANK = "torchrun --nnodes=1:2 --node_rank=0 --rdzv-backend=c10d --rdzv-endpoint=host0:29400 train.py"


def answer(situation: str, output: str = "") -> Diagnosis:
    return diagnose(load(), Snapshot(situation=situation, output=output))


def test_a_launcher_in_every_task_comes_before_what_follows_from_it() -> None:
    d = answer(SLURM, "NCCL WARN Duplicate GPU detected : rank 2 and rank 10 both on CUDA device 50000")
    assert d.advice[0].cause == "launcher-in-every-task"
    assert d.advice[0].grade == "source"
    assert "--ntasks-per-node=1" in d.advice[0].diff


@pytest.mark.parametrize("fence", ["```", ""])
def test_words_do_not_rule_out_what_the_source_shows_with_fences_or_without(fence: str) -> None:
    """That one GPU works is said; that rank 0 alone evaluates is shown."""
    text = GUARDED.format(fence=fence)
    d = answer(text)
    reason = d.advice[0].because[0]
    assert d.advice[0].cause == "ranks-take-different-paths" or reason.source == "checked"
    assert text.split("\n")[reason.line - 1].strip() == "evaluate(model)"
    assert not any("only some ranks reach a collective" in row for row in d.ruled_out)


@pytest.mark.parametrize("shown", [f"```sh\n{NODE_RANK}\n```", NODE_RANK, f"It is started as `{NODE_RANK}` on both."])
def test_a_command_is_checked_wherever_it_stands(shown: str) -> None:
    d = answer(f"Sometimes the process on the first host gets RANK=1 and the second RANK=0.\n{shown}")
    assert d.advice[0].because[0].source == "checked"
    assert "--node-rank" in d.advice[0].because[0].means
    assert "-torchrun --nnodes=1:2 --node_rank=0" in d.advice[0].diff


def test_a_message_that_only_repeats_itself_is_no_cause() -> None:
    said = "ValueError: ranks 0 and 1 of 8 see other devices; please use the same VISIBLE_DEVICES on all ranks"
    assert not any("says what to do" in a.title for a in answer("", said).advice)
    raised = """[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 3, in <module>
[rank0]:     main()
[rank0]: ValueError: the model is empty on 8 ranks
[rank0]: Please set `weights=full` in train.yaml before training.
"""
    assert any("weights=full" in a.title for a in answer("", raised).advice)


@pytest.mark.parametrize(
    ("words", "known"),
    [
        (
            "With DeepSpeed 0.17.5 the gradients are right, with 0.19.3 they are wrong. ZeRO-2, bf16, several GPUs.",
            True,
        ),
        ("145 files on 3 ranks, and they stand in the barrier for ever, no error.", True),
        ("My soup is too salty, what went wrong?", False),
        ("", False),
    ],
)
def test_who_speaks_of_the_field_gets_an_answer(words: str, known: bool) -> None:
    assert answer(words).recognised is known


def test_an_account_of_sentences_is_a_persons_and_messages_are_a_programs() -> None:
    told = "All eight processes of a node run on GPU 0, the other GPUs are empty, and it ends with CUDA out of memory."
    assert split_prose(told)[0] == told
    printed = "CUDA out of memory. Tried to allocate more than there is, free memory is not enough for that."
    assert split_prose(printed) == ("", printed)


def test_code_between_sentences_is_no_prose_and_keeps_its_lines() -> None:
    text = (
        "I train on 4 GPUs and it hangs.\nfor epoch in range(3):\n    train()\n    dist.barrier()\nThe others wait.\n"
    )
    words, left = split_prose(text)
    assert words.split() == ["I", "train", "on", "4", "GPUs", "and", "it", "hangs.", "The", "others", "wait."]
    assert left.split("\n")[1:4] == text.split("\n")[1:4]


def test_commands_end_where_prose_goes_on() -> None:
    text = "I start it with CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 2 train.py on each node, and it hangs."
    assert [*commands(text)] == [(0, "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 2 train.py")]
    assert not [*commands("We use torchrun and deepspeed 0.17.5 with FSDP, srun does not help.")]
    lines = "$ srun --ntasks 2 \\\n  python train.py\nnext"
    assert [*commands(lines)] == [(0, "srun --ntasks 2 \\\n  python train.py")]


def test_prose_and_output_are_no_code() -> None:
    rows = [
        "hello (world)",
        "step 1: loss = 0.2",
        "if it hangs, then wait:",
        "RuntimeError: x",
        "a = b",
        "I do not know",
    ]
    assert not [*pieces(rows)]
