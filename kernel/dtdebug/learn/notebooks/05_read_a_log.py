# %% [markdown]
# # 5. Read a log of many ranks
#
# > **What you will learn**: how to find the one line that matters in the output of eight ranks.
# >
# > **What you need**: notebook 2, or what an echo is. Nothing is trained here: the logs are **recorded**. Five
# > minutes.
# >
# > **How it goes**: Shift+Enter in each grey box, from top to bottom.

# %%
# %load_ext dtdebug
import sys

# %% [markdown]
# ## What is broken (recorded)
#
# A training on eight GPUs ran through the night; in the morning it had ended, and this is the end of its log. It was **not**
# run here: it is put together in the form in which PyTorch prints it, from two real cases (a
# [worker that was killed](https://github.com/hpcaitech/Open-Sora/issues/431) and
# [ranks that waited](https://github.com/XPixelGroup/BasicSR/issues/737)), with names, times and numbers of our own. Real
# ones are much longer.

# %%
# %%writefile recorded_log.txt
[rank0]: 09:02:03 world size 8, batch per rank 16, 4 workers per loader
[rank0]: 09:05:12 epoch 0 step 100 loss 6.9121 412 samples/s
[rank0]: 09:08:44 epoch 0 step 200 loss 6.7034 415 samples/s
[rank0]: 09:12:17 epoch 0 step 300 loss 6.4410 414 samples/s
[rank5]: Traceback (most recent call last):
[rank5]:   File "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 1133, in _try_get_data
[rank5]:     data = self._data_queue.get(timeout=timeout)
[rank5]:   File "/usr/lib/python3.11/queue.py", line 180, in get
[rank5]:     self.not_empty.wait(remaining)
[rank5]:   File "/usr/lib/python3.11/threading.py", line 331, in wait
[rank5]:     gotit = waiter.acquire(True, timeout)
[rank5]:   File "/opt/venv/lib/python3.11/site-packages/torch/utils/data/_utils/signal_handling.py", line 66, in handler
[rank5]:     _error_if_any_worker_fails()
[rank5]: RuntimeError: DataLoader worker (pid 2742) is killed by signal: Killed.
[rank5]: The above exception was the direct cause of the following exception:
[rank5]: Traceback (most recent call last):
[rank5]:   File "/home/user/train.py", line 118, in <module>
[rank5]:     main()
[rank5]:   File "/home/user/train.py", line 84, in main
[rank5]:     for step, batch in enumerate(loader):
[rank5]:   File "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 1146, in _try_get_data
[rank5]:     raise RuntimeError(f'DataLoader worker (pid(s) {pids_str}) exited unexpectedly') from e
[rank5]: RuntimeError: DataLoader worker (pid(s) 2742) exited unexpectedly
[rank0]:[E612 09:22:30.103881910 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1286, OpType=ALLREDUCE, NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for 600030 milliseconds before timing out.
[rank0]:[E612 09:22:30.106457620 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 0] Exception (either an error or timeout) detected by watchdog at work: 1286, last enqueued NCCL work: 1289, last completed NCCL work: 1285.
[rank3]:[E612 09:22:33.103881913 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1286, OpType=ALLREDUCE, NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for 600033 milliseconds before timing out.
[rank3]:[E612 09:22:33.106457623 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 3] Exception (either an error or timeout) detected by watchdog at work: 1286, last enqueued NCCL work: 1289, last completed NCCL work: 1285.
[rank1]:[E612 09:22:31.103881911 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1286, OpType=ALLREDUCE, NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for 600031 milliseconds before timing out.
[rank1]:[E612 09:22:31.106457621 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 1] Exception (either an error or timeout) detected by watchdog at work: 1286, last enqueued NCCL work: 1289, last completed NCCL work: 1285.
[rank6]:[E612 09:22:36.103881916 ProcessGroupNCCL.cpp:616] [Rank 6] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1286, OpType=ALLREDUCE, NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for 600036 milliseconds before timing out.
[rank6]:[E612 09:22:36.106457626 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 6] Exception (either an error or timeout) detected by watchdog at work: 1286, last enqueued NCCL work: 1289, last completed NCCL work: 1285.
[rank2]:[E612 09:22:32.103881912 ProcessGroupNCCL.cpp:616] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1286, OpType=ALLREDUCE, NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for 600032 milliseconds before timing out.
[rank2]:[E612 09:22:32.106457622 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 2] Exception (either an error or timeout) detected by watchdog at work: 1286, last enqueued NCCL work: 1289, last completed NCCL work: 1285.
[rank4]:[E612 09:22:34.103881914 ProcessGroupNCCL.cpp:616] [Rank 4] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1286, OpType=ALLREDUCE, NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for 600034 milliseconds before timing out.
[rank4]:[E612 09:22:34.106457624 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 4] Exception (either an error or timeout) detected by watchdog at work: 1286, last enqueued NCCL work: 1289, last completed NCCL work: 1285.
[rank7]:[E612 09:22:37.103881917 ProcessGroupNCCL.cpp:616] [Rank 7] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1286, OpType=ALLREDUCE, NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for 600037 milliseconds before timing out.
[rank7]:[E612 09:22:37.106457627 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 7] Exception (either an error or timeout) detected by watchdog at work: 1286, last enqueued NCCL work: 1289, last completed NCCL work: 1285.
W0612 09:22:38.687000 2211 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 2301 closing signal SIGTERM
W0612 09:22:38.689000 2211 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 2302 closing signal SIGTERM
E0612 09:22:39.725000 2211 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -6) local_rank: 0 (pid: 2300) of binary: /opt/venv/bin/python
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2025-06-12_09:22:38
  host      : node-0
  rank      : 0 (local_rank: 0)
  exitcode  : -6 (pid: 2300)
  traceback : Signal 6 (SIGABRT) received by PID 2300
============================================================

# %% [markdown]
# ## Read it
#
# Most people look at the end first. There torchrun says `Root Cause (first observed failure)`: rank 0. *Observed* is the
# word that matters: rank 0 was the first that torchrun saw end. Before you let dtdebug read it, look yourself: which ranks
# complain, and about what?

# %%
from collections import Counter
from pathlib import Path

log = Path("recorded_log.txt").read_text().splitlines()
Counter(line.partition("]")[0] + "]" for line in log if "error" in line.lower() or "timeout" in line)

# %% [markdown]
# ## Ask
#
# `dtdebug diagnose` reads a log of any size. It knows which messages are only echoes, and in which order they came.

# %%
# !{sys.executable} -m dtdebug diagnose recorded_log.txt

# %% [markdown]
# It puts neither a rank that waited nor the lines at the end first. It names the symptom, the rank on which it was **first
# seen**, and the line. `%dtdebug explain` shows all that is known about a symptom (skim it):

# %%
# %dtdebug explain D.1.2

# %% [markdown]
# ## Fix it (recorded)
#
# Each of the eight ranks had four workers that load data, and they did not fit into the machine's memory: the system
# killed one. With one worker per rank the same training succeeded. This is the end of **its** log, recorded
# too; dtdebug finds nothing in it.

# %%
# %%writefile recorded_after.txt
[rank0]: 10:02:03 world size 8, batch per rank 16, 1 worker per loader
[rank0]: 10:05:12 epoch 0 step 100 loss 6.9121 398 samples/s
[rank0]: 10:08:49 epoch 0 step 200 loss 6.7034 401 samples/s
[rank0]: 10:12:26 epoch 0 step 300 loss 6.4410 400 samples/s
[rank0]: 10:16:02 epoch 0 step 400 loss 6.2127 400 samples/s
[rank0]: 10:16:40 epoch 0 done, checkpoint saved

# %%
# !{sys.executable} -m dtdebug diagnose recorded_after.txt

# %% [markdown]
# ## One question
#
# **Which rank of the first log do you look at first?** `"rank 0"`, `"rank 5"` or `"rank 7"`?

# %%
from dtdebug.learn import answer

answer("read-a-log", "...")

# %% [markdown]
# **Remember**: the last line of a log is about the launcher, the last error is about who waited longest, and the first
# failure may be minutes earlier. Next: `dtdebug lab list` in a terminal has many more failures for you to fix.
