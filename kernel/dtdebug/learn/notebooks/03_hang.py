# %% [markdown]
# # 3. Nothing happens: a hang, asked while it hangs
#
# > **What you will learn**: why ranks can wait for ever without an error, and how to ask them where they stand while
# > they wait.
# >
# > **What you need**: notebook 1, or to know what a rank and `all_reduce` are. No GPU. Five minutes.
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
# Each rank goes through its batches, and after each one they add up their numbers. Rank 1 has one batch less. So when
# rank 0 calls `all_reduce` for the third time, rank 1 does not: it is done and waits for rank 0 at the `barrier`, where all
# ranks have to come before any may go on. Both are waiting, each for the other.
#
# Real jobs wait ten or thirty minutes before they give up. Here it is `timeout`, 8 seconds, so that the lesson is short.

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
# waits for the note that rank 1 has done its batches, and asks twice: `%dtdebug state` says where each rank is, and
# `%dtdebug hang`, two seconds later, compares and says which rank is missing.

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
# No error had come when this was printed: both ranks were alive and waiting. It says who is missing where (`Rank 1
# skipped all_reduce ...`), the line of the file in which each rank stands, and how sure that is.
#
# ## Read the red text
#
# Now we wait for the job as one usually does. It **fails on purpose** when the 8 seconds are up.

# %% tags=["raises-exception"]
while not job.join():
    pass

# %% [markdown]
# `Timed out waiting 8000ms ...`: that a rank has waited, and nothing else. It may come from either rank, and it points
# at a line that is right. dtdebug's box below the red text knows more: it has kept what was seen while both ranks were
# still there. In a log of this run there is nothing but the timeout. So **ask while it hangs**:
#
# | what hangs | how to ask |
# | --- | --- |
# | a job in the background, as here | `%dtdebug hang` in a box |
# | a box of this notebook: it stays at `[*]`, and other boxes have to wait | in JupyterLab click into the notebook with the right mouse button, *New Subshell Console for Notebook*, and run `%dtdebug hang` there |
# | the same, from any other window | in a terminal: `dtdebug attach` and the number that the next box prints |
# | a job in a terminal | start it with `dtdebug run -- torchrun ...`: it asks by itself when nothing moves |
#
# Never use the stop button first: it ends what you want to see.

# %%
print("In a terminal:  dtdebug attach", os.getpid())

# %% [markdown]
# ## Fix it
#
# The ranks must make the same number of steps. Here rank 1 gets its third batch. (In a real program: let the sampler pad
# or drop the rest, `DistributedSampler(..., drop_last=True)`, or stop all ranks at the smallest number of batches.)

# %%
file = Path("uneven.py")
file.write_text(file.read_text().replace("1: [1.0, 2.0]}", "1: [1.0, 2.0, 3.0]}"))
mp.spawn(uneven.train, args=(f"{tempfile.mkdtemp()}/meeting_point",), nprocs=2)

# %% [markdown]
# ## One question
#
# **In which line is the fault that made both ranks wait?**
#
# - **a**: the line with `all_reduce`, where rank 0 waits
# - **b**: the line with `barrier`, where rank 1 waits
# - **c**: the line with `BATCHES`, of which rank 1 has one less

# %%
from dtdebug.learn import answer

answer("hang", "...")

# %% [markdown]
# **Remember**: a rank that waits is not the one that is wrong. Next: `04_memory_and_nan`.
