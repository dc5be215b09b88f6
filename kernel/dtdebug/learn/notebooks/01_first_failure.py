# %% [markdown]
# # 1. Your first failure
#
# > **What you will learn**: how one program becomes several processes that work together, what their failure looks
# > like, and how to read it with dtdebug.
# >
# > **What you need**: Python functions and `import`. No GPU, no other knowledge. Ten minutes.
# >
# > **How it goes**: click into the first grey box and press Shift+Enter. `[*]` beside it means that it is running;
# > when a number appears, read what is below the box and go on with the next one. One box fails **on purpose**; the
# > text above it says so.

# %% [markdown]
# The first box loads dtdebug and the module that starts processes. dtdebug says in one line that it watches.
# If it says `No module named ...`, install that module in a terminal (`pip install torch`, for instance), then choose
# *Kernel > Restart Kernel* in the menu and start again here.

# %%
# %load_ext dtdebug
import tempfile

import torch.multiprocessing as mp

# %% [markdown]
# ## Break it
#
# *Distributed* training means that the same program runs several times at once, usually once per GPU, and that
# these **processes** exchange their results. Each has its own number, its **rank**: 0, 1, 2 ...
#
# `mp.spawn(greet, nprocs=2)` should start two processes, each of which calls `greet` with its rank. It looks right,
# and it **fails on purpose**. It takes a few seconds: two new Python processes start.

# %% tags=["raises-exception"]
def greet(rank):
    print(f"hello, I am rank {rank}", flush=True)


mp.spawn(greet, nprocs=2)

# %% [markdown]
# ## Read it
#
# You see a lot of red, and no hello. That is normal: each process prints its own error, and the notebook adds
# another. Skip most of it. Two lines matter:
#
# - The last one, `ProcessExitedException: process ... terminated with exit code 1`. It only says *that* a process
#   ended, not why. (It may name process 0 or 1: whichever was noticed first.)
# - At the top, what a process itself said: `AttributeError: Can't get attribute 'greet' on <module '__main__' ...>`.
#   It looked for `greet` and did not find it.
#
# Next to the red text (above it in JupyterLab) dtdebug sums this up in a few lines: the **cause** in one sentence, what **happened** and on which
# line of which box (`cell In[2], line 5`), **why** it thinks so, quoting what it saw, and the **fix**. Where it knows
# the change of your own lines, it shows that too: remove those with `-`, add those with `+`. `%dtdebug why` in a box
# shows all that it knows.
#
# `%dtdebug` continues from there: it asks what it could not see for itself, with buttons. You don't have to press any
# of them now. Read what it says, then go on with the next box.

# %%
# %dtdebug

# %% [markdown]
# ## Fix it
#
# A new process starts with an empty memory: it knows nothing of this notebook and can only **import** from files.
# `greet` was in a box, not in a file. The fix names two ways. A file always works, with GPUs too, so we use that.
# (The other one, `start_method="fork"`, makes processes that are copies of this one.)
#
# `%%writefile` does not run a box, it saves it as a file. Our ranks now also do what is at the heart of all
# distributed training: `all_reduce` adds up one number per rank and gives every rank the sum. To find each other they
# use `meeting_point`, a file that both know. `"gloo"` is the backend that needs no GPU.

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
# Now the function is in a file. Both ranks print, in any order (lines may even mix: two processes write at once), and
# both get the sum, 3.

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
# Replace the dots with a letter and run the box. Try as often as you like.

# %%
from dtdebug.learn import answer

answer("first-failure", "...")

# %% [markdown]
# **That's it.** You have started two ranks, seen them fail, and fixed it. The next notebook is `02_who_was_first`. If
# it is not in the list of files on the left, `%dtdebug learn who-was-first` in a box puts it there.
