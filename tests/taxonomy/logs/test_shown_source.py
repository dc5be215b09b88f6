"""Source that a text shows beside its failure is read by the checks."""

from __future__ import annotations

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.explanations.model import Explanation
from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.inference.collect import collect
from dtdebug_taxonomy.inference.from_measurements import of_shown
from dtdebug_taxonomy.inference.shown_source import hits_in_shown
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


NUMBERED = """My training hangs at the end of each epoch on 4 GPUs. Around there:

 41 | for epoch in range(epochs):
 42 |     for batch in loader:
 43 |         loss = step(batch)
 44 |     if dist.get_rank() == 0:
 45 |         dist.all_reduce(loss)
"""
QUOTED = """I have the same problem, it hangs after validation.

> ```python
> if accelerator.is_main_process:
>     metrics = evaluate(model)
>     metrics = accelerator.gather(metrics)
> ```
"""
DIFF = """Since this change of mine the job gets stuck on 8 ranks:

```diff
@@ -10,5 +10,6 @@ def train(args):
         train_epoch(model, loader)
         if dist.get_rank() == 0:
             torch.save(model.module.state_dict(), "ckpt.pt")
+            dist.barrier()
         scheduler.step()
```
"""
UNFENCED = """Our job hangs when saving a checkpoint with 2 nodes. Code:

def save(epoch):
    if rank == 0:
        torch.save(model.state_dict(), path)

        ...
        dist.barrier()

for epoch in range(10):
    save(epoch)

Any ideas?
"""
ELIDED = """The job hangs after validation on 8 GPUs.

```def main()
  ......
    accelerator = Accelerator(
        mixed_precision=args.mixed_precision,
    )
  ... ...
    for epoch in range(args.epochs):
        for batch in loader:
            ... ...
        if accelerator.is_main_process:
            if (
                epoch % 2 == 0
            ):
                accelerator.wait_for_everyone()

                # The models
```
"""
INDENTED = """After one epoch the run hangs on 2 nodes. Snippet:

```py
if is_main_process():
            dist.barrier()
            validate(model)
    scheduler.step()
```
"""
PROMPT = """It hangs in the interactive session on two hosts:

>>> dist.init_process_group("gloo")
>>> if dist.get_rank() == 0:
...     t = torch.ones(1)
...     dist.broadcast(t, src=0)
...
>>> print("done")
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (NUMBERED, "45 |         dist.all_reduce(loss)"),
        (QUOTED, ">     metrics = accelerator.gather(metrics)"),
        (DIFF, "+            dist.barrier()"),
        (UNFENCED, "dist.barrier()"),
        (ELIDED, "accelerator.wait_for_everyone()"),
        (INDENTED, "dist.barrier()"),
        (PROMPT, "...     dist.broadcast(t, src=0)"),
    ],
    ids=["numbered", "quoted", "diff", "unfenced", "elided", "indented", "prompt"],
)
def test_code_is_read_as_people_post_it_and_its_fault_leads(text: str, line: str) -> None:
    advice = first(text)
    assert advice.cause == "collective-under-rank-guard"
    assert text.split("\n")[advice.because[0].line - 1].strip() == line


def test_a_diff_that_removes_the_fault_and_code_without_one_name_none() -> None:
    fixed = DIFF.replace("             torch.save", "-            dist.barrier()\n             torch.save")
    fixed = fixed.replace("+            dist.barrier()", "+        dist.barrier()")
    assert not [f for f in of_shown(load(), Snapshot(output=fixed)) if f.check == "DT101"]
    outside = UNFENCED.replace("        dist.barrier()", "    dist.barrier()")
    assert not [f for f in of_shown(load(), Snapshot(output=outside)) if f.check == "DT101"]


def test_what_is_left_out_of_the_shown_code_is_not_missing() -> None:
    text = """It trains badly on 4 GPUs.

```python
dist.init_process_group("nccl")
model = DDP(model, ...)
...
loader = DataLoader(data, ...)
for epoch in range(3):
    for x in loader:
        model(x).sum().backward()
```
"""
    assert not list(of_shown(load(), Snapshot(output=text)))


def test_a_log_with_a_line_that_looks_like_code_is_no_source() -> None:
    log = """```
step 1 loss = 3.2
if you see this: set NCCL_DEBUG=INFO
for more information see https://x
while waiting for rank 3:
  File "/home/u/train.py", line 40, in main
    dist.barrier()
RuntimeError: boom
```
"""
    assert not list(source_blocks(log, code=True))


def test_a_fault_in_shown_code_is_said_where_nothing_names_a_failure() -> None:
    situation, output = split_prose("""I used torch 2.3 on 8 GPUs. My losses are not the ones of one micro-batch.

```
    for micro_step in range(steps):
        with torch.autocast(device_type="cuda"):
            logits, loss = model(x, y)
        loss = loss / steps
        if ddp:
            model.require_backward_grad_sync = (micro_step == steps - 1)
        loss.backward()
```
""")
    d = diagnose(load(), Snapshot(situation=situation, output=output))
    assert d.recognised
    assert d.advice[0].title == "no_sync() is entered after the forward pass"


METHOD = """With one GPU all is fine, with two the bar stops at the end of the first validation until the NCCL timeout.

```python
def on_validation_epoch_end(self):
    metrics = {}
    if self.trainer.is_global_zero:
        metrics["f1"] = self.score(self.predictions)
    ...
    # rest of code
    self.log_dict(metrics, sync_dist=True)
```
"""


def test_a_method_without_its_class_and_imports_is_read_with_the_conditions_of_its_trainer() -> None:
    found = first(METHOD)
    assert found.grade == "source"
    assert "`metrics` is filled only on rank 0 (line 5)" in found.because[0].means
    assert METHOD.split("\n")[found.because[0].line - 1].strip() == "self.log_dict(metrics, sync_dist=True)"


def test_a_variable_that_the_text_sets_is_held_against_the_names_that_nccl_reads() -> None:
    text = "Two cards hang at the first step. I have tried {} and it seems to have no effect. What else can I do?"
    found = first(text.format('NCCL_P2P5ISABLE="1"'))
    assert (found.grade, found.fix) == ("source", "Write NCCL_P2P_DISABLE")
    right = [*source_blocks(text.format('NCCL_P2P_DISABLE="1"'), code=True)]
    assert [str(block.source.text).strip() for block in right] == ["export NCCL_P2P_DISABLE=1"]


@pytest.mark.parametrize(
    "words",
    [
        "Two ranks hang. I've set NCCL_DEBUG=WARN, and there was nothing.",
        "Two ranks hang (with NCCL_DEBUG=INFO; NCCL_IB_DISABLE=1).",
        "Two ranks hang, NCCL_DEBUG=INFO/WARN make no difference: neither prints anything.",
        "Two ranks hang. With NCCL_DEBUG=INFO: nothing, with NCCL_P2P_DISABLE=1... the same.",
        "Two ranks hang with MASTER_PORT=29501, torchrun --nproc-per-node 2 train.py",
    ],
)
def test_punctuation_of_a_sentence_belongs_to_no_value(words: str) -> None:
    """A comma behind a value makes no faulty variable."""
    assert not [a for a in diagnose(load(), Snapshot(situation=words)).advice if a.because[0].source == "checked"]


def test_the_fix_of_a_faulty_setting_is_of_that_setting() -> None:
    """Not the way out of the wider cause that the check is filed under."""
    found = diagnose(load(), Snapshot(situation="2 GPUs are slower than one. I set NCCL_DEBUG=LOUD before the start."))
    fault = next(a for a in found.advice if a.because[0].source == "checked")
    assert "LOUD" in fault.fix
    assert "orovod" not in fault.fix


LOOP = """```python
for images, targets in loader:
    loss = criterion(model(images), targets)
    if not torch.isfinite(loss):
        continue
    loss.backward()
    optimizer.step()
```
"""


@pytest.mark.parametrize(("words", "skips"), [("Training with DDP hangs.", True), ("Training hangs.", False)])
def test_words_say_that_a_loop_without_its_wrapper_averages_gradients(words, skips):
    hits = hits_in_shown(Snapshot(situation=f"{words}\n{LOOP}"))

    assert skips is any(h.hit.check.id == "DT107" for h in hits)


LISTING = [
    "import torch.distributed as dist",
    'assert tokens % world_size == 0, "Batch size must be divisible by world size"',
    "# My loader may take 30min the first time",
    *(f"value_{i} = {i}" for i in range(1_100)),
]
STEPS = [f"step:{i}/200 train_loss:{4 - i / 100:.3f}" for i in range(1, 201)]


def names(*lines):
    return {found.evidence for found in collect(load(), Incident(Snapshot(output="\n".join(lines))))}


def test_a_log_that_begins_with_its_program_is_judged_by_what_the_program_printed():
    text = "\n".join([*LISTING, "=" * 100, *STEPS, ""])
    assert split_prose(text) == ("", text)
    assert names(text).isdisjoint({"batch-not-divisible", "manifestation"})


def test_a_message_that_a_listing_holds_counts_where_it_is_printed():
    said = "AssertionError: Batch size must be divisible by world size"
    assert "batch-not-divisible" in names(*LISTING, "=" * 100, said)


def test_an_error_while_starting_explains_nothing_once_there_are_steps():
    line = "[n1:400139] PMIX ERROR: ERROR in file gds.c at line 169"
    assert "mpi-runtime-error-log" in names(line)
    assert "mpi-runtime-error-log" not in names(line, *STEPS)


def test_what_nccl_finds_of_its_own_counts_although_training_goes_on():
    line = "gpu-12:70305 NCCL DIAG [INFO] p2p: read mismatch srcRank=3 srcCudaDev=3 dstRank=5 dstCudaDev=5; inspect"
    assert "nccl-diagnosis-of-peers" in names(line, *STEPS)
    assert "nccl-diagnosis-of-peers" not in names(line.replace("[INFO]", "[OK]  "), *STEPS)


@pytest.mark.parametrize(("words", "name"), [("Aborted", "sig-abort"), ("Segmentation fault", "sig-segv-plain")])
def test_what_bash_says_of_a_job_is_read_in_its_columns(words, name):
    said = f"run.sh: line 184: 2324239 {words:<24}(core dumped) litgpt pretrain $name"
    assert name in names(*STEPS[:100], said)


def test_a_hint_in_the_source_is_no_sign_of_what_failed() -> None:
    """A device numbered by the global rank would raise on a second machine; it makes no numbers wrong."""
    post = """With FSDP2 the parameters are not updated correctly, with DDP they are.

```python
import os
import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
device = torch.device("cuda", rank)
dist.init_process_group(backend="nccl", device_id=device)
```
"""
    situation, output = split_prose(post)
    snapshot = Snapshot(situation=situation, output=output)
    found = diagnose(load(), snapshot)

    assert [h.hit.severity for h in hits_in_shown(snapshot)] == ["hint"]
    assert not list(of_shown(load(), snapshot))
    assert found.symptoms[0].code in {"D.2.4", "D.2.5"}
    assert "global-rank-used-as-device" not in {a.cause for a in found.advice}


def test_a_setting_that_is_listed_is_no_event() -> None:
    """DeepSpeed prints its whole configuration; that nothing is gathered at a save matters when something is saved."""
    head = "[2025-08-15 08:40:56,138] [INFO] [config.py:958:print]   zero_config .................. "
    setting = "stage=3 gather_16bit_weights_on_model_save=False stage3_gather_16bit_weights_on_model_save=False"
    said = "[rank0]: ValueError: stage3_gather_16bit_weights_on_model_save is false"
    for output, there in ((f"{head}{setting}\n", False), (f"{head}{setting}\n{said}\n", True)):
        found = collect(load(), Incident(Snapshot(output=output)))
        assert ("zero3-weights-not-gathered" in {f.evidence for f in found}) == there


def test_what_failed_to_build_before_a_step_explains_no_later_exception() -> None:
    """One step is enough where a rank's own exception follows; without a step the build may be what failed."""
    built = "ninja: build stopped: subcommand failed.\n"
    step = "Step    0 | Loss: 11.0838 | Time: 1.626s\n"
    ended = (
        "[rank0]: Traceback (most recent call last):\n"
        '[rank0]:   File "/w/train.py", line 135, in <module>\n'
        "[rank0]:     engine.step()\n"
        "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.44 GiB.\n"
    )
    for output, there in ((built + step + ended, False), (built + ended, True)):
        found = collect(load(), Incident(Snapshot(output=output)))
        assert ("build-tool-command-failed" in {f.evidence for f in found}) == there


_OPEN = """```bash
srun --nodes=2 --ntasks-per-node=1 bash -c 'torchrun \\
   --nnodes 2 \\
   --nproc-per-node 8 \\
"""


def test_an_excerpt_that_is_cut_within_a_quote_proves_nothing():
    assert () == hits_in_shown(Snapshot(situation=_OPEN))
    closed = _OPEN.replace("bash -c 'torchrun \\", "torchrun")
    assert "DT924" in {found.hit.check.id for found in hits_in_shown(Snapshot(situation=closed))}


def test_a_script_finds_the_only_program_that_the_post_shows():
    script = (
        "```bash\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-task=1\nsrun python go.py\n```\n"
    )
    program = "```python\nimport jax\n\njax.distributed.initialize()\n```\n"

    assert ["DT921"] == [f.hit.check.id for f in hits_in_shown(Snapshot(situation=script + program))]
    assert () == hits_in_shown(Snapshot(situation=script + program + program.replace("jax.d", "print(1)\njax.d")))


def test_a_script_without_a_fence_is_read_from_its_first_assignment():
    script = "NNODES=2\nNPROC_PER_NODE=4\nswift sft \\\n  --model m \\\n  --lora\n"
    said = f"This is how I start it:\n----\n{script}----\nIt fails."
    found = hits_in_shown(Snapshot(situation=said))

    assert [("DT927", 3)] == [(f.hit.check.id, f.line) for f in found]
    assert "NNODES and NPROC_PER_NODE are variables" in found[0].hit.message


def test_what_keeps_a_job_from_running_explains_none_that_is_slow():
    broken = "```bash\ntorchrun --standalone\n  --nproc-per-node 8 train.py\n```\n"
    slow = diagnose(load(), Snapshot(situation=f"Eight GPUs are not faster than one, training is slow.\n{broken}"))
    ended = diagnose(load(), Snapshot(situation=f"It ends with an error at start on eight GPUs.\n{broken}"))

    assert not any("DT924" in r.means for a in slow.advice for r in a.because)
    assert any("DT924" in r.means for a in ended.advice for r in a.because)
