# %% [markdown]
# # 2. A rank raises: who was first?
#
# > **What you will learn**: why one mistake makes several ranks complain, how to tell the first error from its echoes,
# > and what `dtdebug run` adds to a job.
# >
# > **What you need**: notebook 1, or to know what a rank and `all_reduce` are. No GPU. Five minutes.
# >
# > **How it goes**: Shift+Enter in each grey box, from top to bottom. One box fails **on purpose**.

# %%
# %load_ext dtdebug
import sys

# %% [markdown]
# ## Break it
#
# A shop has two tills. Each rank adds up the prices of one till, and after each sale `all_reduce` tells both the total.
# One record was written wrongly: it has a `cost` and no `price`.

# %%
# %%writefile prices.py
import torch
import torch.distributed as dist

SALES = {
    0: [{"price": 10.0}, {"price": 20.0}],
    1: [{"price": 30.0}, {"cost": 40.0}],
}

dist.init_process_group("gloo")
rank = dist.get_rank()
for number, sale in enumerate(SALES[rank]):
    total = torch.tensor(sale["price"])
    dist.all_reduce(total)
    print(f"sale {number}: rank {rank} knows the total {total.item():g}", flush=True)
dist.destroy_process_group()

# %% [markdown]
# This time the ranks are started as in a terminal: `torchrun --nproc-per-node 2 prices.py` starts the file twice.
# (`{sys.executable} -m torch.distributed.run` is torchrun, with the Python of this notebook.) `dtdebug run --` in front
# changes nothing about the job; it only keeps a record of each rank. It **fails on purpose**, after some seconds. (A box of
# stars at the top, if there is one, is only a hint of torchrun.)

# %%
# !{sys.executable} -m dtdebug run -- {sys.executable} -m torch.distributed.run --standalone --nproc-per-node 2 prices.py

# %% [markdown]
# ## Read it
#
# Sale 0 went well on both ranks. Then there are two errors, and torchrun puts the rank in front of each line:
#
# - `[rank1]: KeyError: 'price'`
# - `[rank0]: RuntimeError: ... Connection closed by peer ...`
#
# Both are true. Which one is the mistake? Rank 0 was in `all_reduce`, for which it needs rank 1, when rank 1 was gone. Its
# error is an **echo**. In jobs of many ranks there may be hundreds of echoes, and they are often printed first.
#
# Near the end are the lines of `dtdebug run`, which has asked the ranks themselves: `rank 1 raised KeyError ...; rank 0
# failed as a consequence`, with the line of each. That is the answer, and `%dtdebug` goes on from it: `why` shows what it
# goes by.

# %%
# %dtdebug why

# %% [markdown]
# ## Fix it
#
# Only the record of rank 1 has to be fixed; nothing is wrong with rank 0. This box changes that one word in the file
# and starts the job again.

# %%
from pathlib import Path

file = Path("prices.py")
file.write_text(file.read_text().replace('"cost"', '"price"'))
# !{sys.executable} -m dtdebug run -- {sys.executable} -m torch.distributed.run --standalone --nproc-per-node 2 prices.py

# %% [markdown]
# ## One question
#
# **Both ranks printed an error. Which rank has to be fixed?** `"rank 0"`, `"rank 1"` or `"both"`? Write it in place of
# the dots.

# %%
from dtdebug.learn import answer

answer("who-was-first", "...")

# %% [markdown]
# **Remember**: with several ranks the first question is *who was first*. torchrun's `Root Cause` block tells the rank that
# it noticed first; `dtdebug run` tells the rank, the line and who only followed. Next: `03_hang`.
