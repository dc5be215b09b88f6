# %% [markdown]
# # 2. A rank raises: who was first?
#
# > **What you will learn**: why one mistake makes several ranks fail, how to tell the first error from its echoes,
# > and what `dtdebug run` adds to a job.
# >
# > **What you need**: notebook 1, or what a rank and `all_reduce` are. No GPU. Five minutes.
# >
# > **How it goes**: Shift+Enter in each grey box, from top to bottom. One box fails **on purpose**.

# %%
# %load_ext dtdebug
import sys

# %% [markdown]
# ## Break it
#
# A shop has two tills. Each rank adds up the prices of one till, and after each sale `all_reduce` gives both the
# total. One record is wrong: it has a `cost` instead of a `price`.

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
# (`{sys.executable} -m torch.distributed.run` is torchrun, with the Python of this notebook.) `dtdebug run --` in
# front changes nothing about the job; it only keeps a record of each rank. It **fails on purpose**, after a few
# seconds. (torchrun may print a hint between lines of stars first; ignore it.)

# %%
# !{sys.executable} -m dtdebug run -- {sys.executable} -m torch.distributed.run --standalone --nproc-per-node 2 prices.py

# %% [markdown]
# ## Read it
#
# Sale 0 worked on both ranks. Then there are two errors; each line starts with its rank:
#
# - `[rank1]: KeyError: 'price'`
# - `[rank0]: RuntimeError: ... Connection closed by peer ...`
#
# Both are true. Which one is the mistake? Rank 0 was in `all_reduce`, which needs rank 1, when rank 1 died. Its error
# is an **echo**. Jobs with many ranks may print hundreds of echoes, and often print them first.
#
# Near the end `dtdebug run` prints what it saw in the ranks themselves: `rank 1 raised KeyError ...; rank 0
# failed because of it`, with the line of each. That is the answer. `%dtdebug why` shows what it is
# based on.

# %%
# %dtdebug why

# %% [markdown]
# ## Fix it
#
# Only rank 1's record has to be fixed; nothing is wrong with rank 0. This box changes that one word in the file and
# starts the job again.

# %%
from pathlib import Path

file = Path("prices.py")
file.write_text(file.read_text().replace('"cost"', '"price"'))
# !{sys.executable} -m dtdebug run -- {sys.executable} -m torch.distributed.run --standalone --nproc-per-node 2 prices.py

# %% [markdown]
# ## One question
#
# **Both ranks printed an error. Which rank has to be fixed?** `"rank 0"`, `"rank 1"` or `"both"`? Replace the dots
# with it.

# %%
from dtdebug.learn import answer

answer("who-was-first", "...")

# %% [markdown]
# **Remember**: with several ranks the first question is *who was first*. torchrun's `Root Cause` block names the rank
# that it noticed first; `dtdebug run` names the rank, the line, and who only followed. Next: `03_hang`.
