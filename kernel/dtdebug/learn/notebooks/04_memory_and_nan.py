# %% [markdown]
# # 4. Out of memory, and a loss that becomes inf
#
# > **What you will learn**: how to read an out-of-memory error, and why a sum of good numbers can be `inf`.
# >
# > **What you need**: notebook 1, or what a rank and `all_reduce` are. No GPU: the part about GPUs is **recorded**,
# > the other one runs here. Five minutes.
# >
# > **How it goes**: Shift+Enter in each grey box, from top to bottom. One box fails **on purpose**.

# %%
# %load_ext dtdebug
import sys
from pathlib import Path

# %% [markdown]
# ## Memory (recorded)
#
# The next box **runs no training**: it saves a text, recorded in the form in which PyTorch prints it on machines with
# GPUs, with names and numbers of our own. A real one like it, where other processes share the GPU:
# <https://github.com/RLinf/RLinf/issues/255>.
#
# Read it before you go on. How much did it ask for, and who has the memory?

# %%
# %%writefile recorded_memory.txt
[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/user/finetune.py", line 74, in <module>
[rank1]:     main()
[rank1]:   File "/home/user/finetune.py", line 58, in main
[rank1]:     loss.backward()
[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 86.00 MiB. GPU 0 has a total capacity of 23.64 GiB of which 64.00 MiB is free. Process 4711 has 14.85 GiB memory in use. Including non-PyTorch memory, this process has 8.04 GiB memory in use. Of the allocated memory 7.63 GiB is allocated by PyTorch, and 40.11 MiB is reserved by PyTorch but unallocated.

# %% [markdown]
# `dtdebug diagnose FILE` does for a log what `%dtdebug` does for a box.

# %%
# !{sys.executable} -m dtdebug diagnose recorded_memory.txt

# %% [markdown]
# It is easy to read this as *the batch is too large*. But the error is from **rank 1** and names **GPU 0**, where
# another process already has 14.85 GiB: most likely two ranks share one GPU. The fix is one line, which gives each
# rank its own GPU. (It can't be tried here: there is no GPU.)
#
# ## A loss of inf: break it
#
# This one is real. Two ranks learn the same four numbers. To send less, they exchange their gradients as `float16`,
# numbers of two bytes. `SCALE` makes small gradients larger so that they survive that, as is usual. It **fails on
# purpose**.

# %%
# %%writefile short_numbers.py
import torch
import torch.distributed as dist

SCALE = 2.0**14

dist.init_process_group("gloo")
rank = dist.get_rank()
weight = torch.zeros(4, requires_grad=True)
for step in range(4):
    loss = (weight.sum() - 3) ** 2 / 2
    print(f"step {step}: rank {rank} has loss {loss.item():.4f}", flush=True)
    if not torch.isfinite(loss):
        raise FloatingPointError(f"step {step}: the loss is {loss.item()}")
    (SCALE * loss).backward()
    gradient = weight.grad.half()
    dist.all_reduce(gradient)
    with torch.no_grad():
        weight -= 0.1 * gradient.float() / SCALE / 2
    weight.grad = None
dist.destroy_process_group()

# %%
# !{sys.executable} -m torch.distributed.run --standalone --nproc-per-node 2 short_numbers.py

# %% [markdown]
# ## Read it
#
# One step is good, and in the next one the loss is `inf`. The line that raises only noticed it: look at what happened
# between the two prints. dtdebug's box names a cause that fits.
#
# Is it the program, or that there are two ranks? Nobody can tell from the error alone. Run it again with one thing
# changed: with one rank it works, so what the ranks do together is part of the fault. `%dtdebug isolate` makes such
# runs for you, each in a copy of this folder: one rank, no loader workers, no compiler, and so on. Here it only lists
# them; with `--yes` it runs them, which takes a minute or two, and prints a table and what is left.

# %%
# %dtdebug why
# %dtdebug isolate

# %% [markdown]
# ## Fix it
#
# The largest `float16` is 65504. Each rank's gradient is 49152 here and fits; the sum of two does not. It fits in
# `float32`, so the gradients are exchanged in that.

# %%
file = Path("short_numbers.py")
file.write_text(file.read_text().replace("weight.grad.half()", "weight.grad.clone()"))
# !{sys.executable} -m torch.distributed.run --standalone --nproc-per-node 2 short_numbers.py

# %% [markdown]
# ## One question
#
# **Each rank's gradient was finite. Where did `inf` come from?**
#
# - **a**: from the learning rate
# - **b**: from adding up the gradients of both ranks in `float16`
# - **c**: from a division by zero

# %%
from dtdebug.learn import answer

answer("memory-and-nan", "...")

# %% [markdown]
# **Remember**: an out-of-memory error names a GPU and the processes on it: read which. And a loss of `inf` or `nan`
# starts before the line that reports it. Next: `05_read_a_log`.
