"""Tests where another run begins in one output."""

from dtdebug_taxonomy.logs.runs import lines_of, runs_of
from dtdebug_taxonomy.model.snapshot import Snapshot

BANNER = """\
W0903 {time}.104000 {pid} torch/distributed/run.py:779] Setting OMP_NUM_THREADS environment variable for each process
world size 2
"""
FAILED = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/u/train.py", line {line}, in <module>
[rank1]:     main()
[rank1]: {error}
"""
REPORT = """\
E0903 {time}.661000 {pid} torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 1
Traceback (most recent call last):
  File "/opt/conda/lib/python3.10/site-packages/torch/distributed/launcher/api.py", line 264, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
  time      : 2024-09-03_{time}
"""


def launched(time: str, end: str, pid: int, error: str, line: int = 12) -> str:
    """Return the output of one launch that fails."""
    return (
        BANNER.format(time=time, pid=pid)
        + "step 1 loss 3.1\nstep 2 loss 3.0\n"
        + FAILED.format(line=line, error=error)
        + REPORT.format(time=end, pid=pid)
    )


def spans(text: str) -> list[tuple[int, int]]:
    """Return the first and last line of each run in a text."""
    return [lines_of(run) for run in runs_of(Snapshot(output=text))]


def test_launches_in_one_file_are_runs():
    """The lines that a run begins with, below the launcher's report of the end of the one above, begin another."""
    first = launched("09:12:44", "09:14:02", 140, "KeyError: 3")
    second = launched("09:31:10", "09:31:24", 150, "ValueError: no text", 40)
    count = first.count("\n")
    assert spans(first + second) == [(1, count), (count + 1, count + second.count("\n"))]
    assert "KeyError" not in runs_of(Snapshot(output=first + second))[-1].output


def test_logs_of_nodes_are_no_runs():
    """Logs of two nodes one below the other ran at the same time."""
    one = launched("09:12:44", "09:14:02", 140, "KeyError: 3")
    assert spans(one + launched("09:12:45", "09:14:03", 77, "KeyError: 3")) == [(1, 2 * one.count("\n"))]


def test_restarts_are_no_runs():
    """An elastic launcher that starts its ranks again continues the same run, though their first lines come again."""
    again = "I0903 09:12:59.1 140 torch/distributed/elastic/agent/server/api.py:891] [default] Worker group FAILED. "
    failed = "world size 2\nhost ready\nstep 1 loss 3.1\n" + FAILED.format(line=12, error="KeyError: 3")
    text = f"{failed}{again}1/1 attempts left; will restart worker group\n{failed}"
    assert len(spans(text)) == 1


def test_ranks_that_print_alike_are_one_run():
    """Ranks of one job may print one after another; a clock that went on shows that they were two jobs."""
    failed = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    f()\nKeyError: 3\n'
    text = "{0}:01 loading the model\n{0}:02 reading the data\n{0}:03 step 1 loss 3.1\n" + failed
    assert len(spans(2 * text.format("09:12"))) == 1
    assert spans(text.format("09:12") + text.format("09:15")) == [(1, 7), (8, 14)]


def test_first_epoch_again_is_no_run():
    """Epochs begin alike."""
    epoch = "".join(f"step {n} loss 2.0\n" for n in range(1, 30))
    assert len(spans("".join(f"Epoch {n}\nlearning rate 0.1\n{epoch}" for n in range(1, 5)))) == 1


def test_posts_keep_all_that_was_pasted():
    """A person who shows two runs compares them."""
    first = launched("09:12:44", "09:14:02", 140, "KeyError: 3")
    second = launched("09:31:10", "09:31:24", 150, "ValueError: no text", 40)
    post = f"Hi, I get this:\n```\n{first}```\nand when I add a barrier:\n```\n{second}```\nAny idea?\n"
    assert len(spans(post)) == 1


def test_command_lines_begin_runs():
    """A launch that the shell shows begins a run once the one above has failed."""
    failed = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    f()\nKeyError: 3\n'
    text = f"$ python a.py\n{failed}(env) me@box:~/p$ torchrun --nproc_per_node 2 a.py\nstep 1 loss 2.0\n"
    assert spans(text) == [(1, 5), (6, 7)]


def test_a_prompt_with_a_launch_below_another_begins_a_run():
    """The shell asks again when the command before has ended, whatever launched that; traced commands may overlap."""
    first = "$ mpirun -np 2 python train.py\n[1,1]<stderr>:KeyError: 3\nmpirun detected that one process exited\n"
    second = "$ torchrun --nproc_per_node 2 train.py\n[rank0] epoch 1 loss 2.0\n[rank0] epoch 2 loss 1.5\n"
    assert spans(first + second) == [(1, 3), (4, 6)]
    assert spans((first + second).replace("$ ", "+ ")) != [(1, 3), (4, 6)]
    assert len(spans("ready\n" + second)) == 1
