# %% [markdown]
# # 1. Your first failure
#
# > **What you will learn**: how one program becomes several that work together, how it looks when they fail, and how
# > to read it with dtdebug.
# >
# > **What you need**: to know what a Python function and an `import` are. No GPU, no other knowledge. Ten minutes.
# >
# > **How it goes**: click into the first grey box and press Shift+Enter. The `[*]` beside it means that it runs; when a
# > number has come, read what stands below the box, and go on with the next one. One box fails **on purpose**, and the
# > text above it says so.

# %% [markdown]
# The first box switches dtdebug on for this notebook and loads what starts processes. It prints nothing if all is well.
# If it says `No module named ...`, install that module in a terminal (`pip install torch`, for instance), then choose
# *Kernel > Restart Kernel* in the menu and begin here again.

# %%
# %load_ext dtdebug
import tempfile

import torch.multiprocessing as mp

# %% [markdown]
# ## Break it
#
# *Distributed* training means that the same program runs several times at once, mostly once for each GPU, and that
# these **processes** exchange their numbers. Each has a number of its own, its **rank**: 0, 1, 2 ...
#
# `mp.spawn(greet, nprocs=2)` shall start two processes, and each shall call `greet` with its rank. It looks right, and
# it **fails on purpose**. It takes some seconds: two new Pythons start.

# %% tags=["raises-exception"]
def greet(rank):
    print(f"hello, I am rank {rank}", flush=True)


mp.spawn(greet, nprocs=2)

# %% [markdown]
# ## Read it
#
# You see a lot of red, and no hello. That is usual: each process prints its own error, and the notebook prints one more.
# Most of it can be skipped. Two lines matter:
#
# - The last one, `ProcessExitedException: process ... terminated with exit code 1`. It only says *that* a process has
#   ended, not why. (It may name process 0 or 1: whichever was noticed first.)
# - At the top, what a process itself said: `AttributeError: Can't get attribute 'greet' on <module '__main__' ...>`. It
#   looked for `greet` and did not find it.
#
# Below the red text dtdebug has put the same together: **what** it is, **why** it thinks so with the very words that it
# has seen, the most likely **cause**, and a **fix**. Letters such as B.1 are only the name of the symptom. The coloured
# lines show the fix in an example, not in your box: those with `-` go, those with `+` come.
#
# `%dtdebug` goes on from there: it asks what it could not see for itself, with buttons. You need not press any of them
# now. Look at what it says, then go on with the next box.

# %%
# %dtdebug

# %% [markdown]
# ## Fix it
#
# A new process starts with an empty memory: it knows nothing of this notebook and can only **import** from files.
# `greet` stood in a box and in no file. The fix names two ways. A file is the one that works always, with GPUs too, so we
# take that. (The other one, `start_method="fork"`, makes processes that are copies of this one.)
#
# `%%writefile` does not run a box, it saves it as a file. As we are at it, our ranks now do what all distributed training
# does at its heart: `all_reduce` adds up a number of all ranks and gives each of them the sum. To find each other they
# meet at `meeting_point`, a file that both know. `"gloo"` is the way to talk that needs no GPU.

# %%
# %%writefile first_ranks.py
import torch
import torch.distributed as dist


def greet(rank, meeting_point):
    dist.init_process_group("gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=2)
    number = torch.tensor(rank + 1)
    print(f"hello, I am rank {rank} and bring {number.item()}", flush=True)
    dist.all_reduce(number)
    print(f"rank {rank} knows the sum: {number.item()}", flush=True)
    dist.destroy_process_group()

# %% [markdown]
# Now the function comes from the file. Both ranks print, in any order (lines may even run into each other: two
# processes write at once), and both know the sum, 3.

# %%
import first_ranks

mp.spawn(first_ranks.greet, args=(f"{tempfile.mkdtemp()}/meeting_point",), nprocs=2)

# %% [markdown]
# ## One question
#
# **Why did the two new processes not find the function `greet`?**
#
# - **a**: the function has a mistake in it
# - **b**: it was in no file that they could import
# - **c**: there is no GPU here
#
# Write a letter in place of the dots and run the box. You may try as often as you like.

# %%
from dtdebug.learn import answer

answer("first-failure", "...")

# %% [markdown]
# **That was it.** You have started two ranks, seen them fail, and fixed it. The next notebook is `02_who_was_first`. If it
# is not in the list of files on the left, `%dtdebug learn who-was-first` in a box puts it there.
