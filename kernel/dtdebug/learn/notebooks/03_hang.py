# %% [markdown]
# # 3. Nothing happens: a hang, asked while it hangs
#
# > **What you will learn**: why ranks can wait forever without an error, and how to see where each rank is while
# > they wait.
# >
# > **What you need**: notebook 1, or what a rank and `all_reduce` are. No GPU. Five minutes.
# >
# > **How it goes**: Shift+Enter in each grey box, from top to bottom. One box fails **on purpose**, after waiting.

# %%
# %load_ext dtdebug
import os
import tempfile
import time
from pathlib import Path

import torch.multiprocessing as mp

# %% [markdown]
# ## Break it
#
# Each rank goes through its batches, and after each batch the ranks add up their numbers. Rank 1 has one batch fewer.
# So when rank 0 calls `all_reduce` for the third time, rank 1 does not: it is done and waits at the `barrier`, which
# no rank passes before all have reached it. Each waits for the other.
#
# Real jobs wait ten or thirty minutes before they give up. Here `timeout` is 8 seconds, to keep the lesson short.

# %%
# %%writefile uneven.py
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

BATCHES = {0: [1.0, 2.0, 3.0], 1: [1.0, 2.0]}


def train(rank, meeting_point):
    place = f"file://{meeting_point}"
    dist.init_process_group("gloo", init_method=place, rank=rank, world_size=2, timeout=timedelta(seconds=8))
    for number, batch in enumerate(BATCHES[rank]):
        total = torch.tensor(batch)
        dist.all_reduce(total)
        print(f"rank {rank}: batch {number} is done", flush=True)
    Path(f"{meeting_point}.rank{rank}").touch()  # a note that this rank has done its batches
    dist.barrier()
    dist.destroy_process_group()

# %% [markdown]
# ## Ask while it hangs
#
# `join=False` starts the ranks in the background, so that this notebook stays free to ask. The next box starts them,
# waits for the note that rank 1 has done its batches, and asks twice: `%dtdebug state` shows where each rank is, and
# `%dtdebug hang`, two seconds later, compares them and names the missing rank.

# %%
import uneven

place = f"{tempfile.mkdtemp()}/meeting_point"
job = mp.spawn(uneven.train, args=(place,), nprocs=2, join=False)
while not Path(f"{place}.rank1").exists() and not job.join(timeout=0.2):
    pass
time.sleep(1)
# %dtdebug state
time.sleep(2)
# %dtdebug hang

# %% [markdown]
# There was no error yet when this was printed: both ranks were alive and waiting. It says why they wait (the loop over
# `BATCHES[rank]` has 2 passes on rank 1 and 3 on rank 0), the line at which each rank is, and the line to edit.
#
# ## Read the red text
#
# Now wait for the job as usual. It **fails on purpose** when the 8 seconds are up.

# %% tags=["raises-exception"]
while not job.join():
    pass

# %% [markdown]
# `Timed out waiting 8000ms ...` says that a rank waited, and nothing else. It may come from either rank, and it
# points at a line that is right. dtdebug's box next to the red text knows more: it kept what was seen while both ranks
# were alive. A log of this run has nothing but the timeout. So **ask while it hangs**:
#
# | what hangs | how to ask |
# | --- | --- |
# | a job in the background, as here | `%dtdebug hang` in a box |
# | a box of this notebook: it stays at `[*]`, and other boxes have to wait | in JupyterLab right-click the notebook, choose *New Subshell Console for Notebook*, and run `%dtdebug hang` there |
# | the same, from any other window | in a terminal: `dtdebug attach` and the number that the next box prints |
# | a job in a terminal | start it with `dtdebug run -- torchrun ...`: it asks by itself when there is no progress |
#
# Don't press the stop button first: it ends what you want to see.

# %%
print("In a terminal:  dtdebug attach", os.getpid())

# %% [markdown]
# ## Fix it
#
# All ranks must make the same number of steps. Here rank 1 gets a third batch. (In a real program: let the sampler
# pad, or drop the rest with `DistributedSampler(..., drop_last=True)`, or stop all ranks at the smallest number of
# batches.)

# %%
file = Path("uneven.py")
file.write_text(file.read_text().replace("1: [1.0, 2.0]}", "1: [1.0, 2.0, 3.0]}"))
mp.spawn(uneven.train, args=(f"{tempfile.mkdtemp()}/meeting_point",), nprocs=2)

# %% [markdown]
# ## One question
#
# **Which line made both ranks wait?**
#
# - **a**: the line with `all_reduce`, where rank 0 waits
# - **b**: the line with `barrier`, where rank 1 waits
# - **c**: the line with `BATCHES`: rank 1 has one fewer

# %%
from dtdebug.learn import answer

answer("hang", "...")

# %% [markdown]
# **Remember**: the rank that waits is rarely the one at fault. Next: `04_memory_and_nan`.
