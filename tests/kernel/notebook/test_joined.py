"""Ranks that a cell starts with multiprocessing and joins: the cell passes however they end."""

import multiprocessing
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from dtdebug.notebook.ended_children import find_failed
from dtdebug.notebook.output_tail import Tail
from dtdebug.notebook.postmortem import _with_children
from dtdebug_taxonomy.explanations.version_conflict import find_conflict
from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.model.account import Account, Place
from dtdebug_taxonomy.model.answer import Spot
from dtdebug_taxonomy.model.ranks import RankState
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.account_spots import spots_of

FORK = multiprocessing.get_context("fork")
KERNEL = """
import sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="python3", cwd=sys.argv[1])
def cell(source):
    shown = []
    def take(message):
        shown.append(message["content"].get("data", {}).get("text/plain", ""))
    client.execute_interactive(source, timeout=120, allow_stdin=False, output_hook=take)
    return "".join(shown)
try:
    cell("%load_ext dtdebug")
    cell(open("cells.py").read())
    print(cell("for p in [Process(target=init, args=(rank, 2)) for rank in range(2)]: p.start(); ranks.append(p)\\n"
               "for p in ranks: p.join()"))
    print("TWO", cell("ranks.clear()\\n"
               "for p in [Process(target=unlike, args=(rank,)) for rank in range(2)]: p.start(); ranks.append(p)\\n"
               "for p in ranks: p.join()"))
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
"""
CELLS = """import time
import torch
import torch.distributed as dist
from multiprocessing import Process

ranks = []

def work(tensor, rank, size):
    parts = torch.chunk(tensor, size)
    for i in range(size):
        dist.all_reduce(parts[i + rank])

def init(rank, size):
    dist.init_process_group("gloo", init_method="file://{store}", rank=rank, world_size=size)
    work(torch.ones(4), rank, size)

def unlike(rank):
    dist.init_process_group("gloo", init_method="file://{store}2", rank=rank, world_size=2)
    if rank == 0:
        time.sleep(0.7)
        dist.send(torch.ones(4), dst=1)
    else:
        dist.recv(torch.zeros(1), src=0)
"""


@pytest.mark.kernel
@pytest.mark.ranks
def test_the_end_of_a_rank_is_the_answer_below_a_cell_that_passed(tmp_path):
    """Forked children print through ipykernel's streams, past what listens in the kernel."""
    pytest.importorskip("torch")
    pytest.importorskip("jupyter_client")
    (tmp_path / "cells.py").write_text(CELLS.format(store=tmp_path / "store"))
    inherited = {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}  # ipykernel is another one below it
    environment = {**inherited, "DTDEBUG_STATE": str(tmp_path / "state"), "IPYTHONDIR": str(tmp_path / "ipython")}
    ran = subprocess.run(
        [sys.executable, "-c", KERNEL, str(tmp_path)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=180, check=True,
    )  # fmt: skip
    told, _, aborted = " ".join(ran.stdout.split()).partition("TWO")

    assert "Rank 1: `parts` has 2 elements, and `i + rank` is 2" in told  # the values are of the rank itself
    assert "rank 1 cell In[2], line 11" in told
    assert "dist.all_reduce(parts[i + rank])" in told
    assert "Rank 1 was aborted by gloo: it expected 4 bytes and was sent 16" in aborted  # after less than a second
    assert "cell In[2], line 23 dist.recv(torch.zeros(1), src=0)" in aborted


def test_failed_children_are_found_wherever_variables_hold_them():
    """Alone, in lists and in dictionaries; not one that ended well, and not one that nobody has joined."""
    bad, well = FORK.Process(target=os._exit, args=(3,)), FORK.Process(target=os._exit, args=(0,))
    killed = FORK.Process(target=os.kill, args=(0, 0))
    for each in (bad, well):
        each.start()
        each.join()
    killed._popen, killed._parent_pid = SimpleNamespace(pid=7, returncode=-6), os.getpid()
    found = find_failed({"processes": [bad, well], "p": bad, "named": {"a": killed}})

    assert [(7, "SIGABRT"), (bad.pid, "")] == [(child.pid, child.signal) for child in found]
    assert 3 == found[1].status
    assert [] == find_failed({"x": 1, "late": [FORK.Process(target=print)]})


def test_the_one_rank_without_a_record_is_the_one_child_without_one():
    """It died before its agent wrote anything; of two such children nobody knows which is which."""
    child = SimpleNamespace(pid=9, name="Process-2", status=-signal.SIGABRT, signal="SIGABRT")
    known = RankState(rank=0, pid=8, world_size=2, alive=False, exit_code=0)
    states = _with_children([known], [child])

    assert [(0, ""), (1, "SIGABRT")] == [(s.rank, s.signal) for s in states]
    assert 1 == len(_with_children([known], [child, SimpleNamespace(pid=10, name="", status=1, signal="")]))
    ended = _with_children([RankState(rank=0, pid=9, world_size=1, alive=False)], [child])
    assert ["SIGABRT"] == [s.signal for s in ended]


def test_the_tail_holds_what_forked_children_print_until_the_next_cell():
    """They write to the file of the kernel; a sign of failure there alarms as one of the kernel's own."""
    tail = Tail()
    tail.attach()

    def note(text):
        tail._note({"header": {"msg_type": "stream"}, "content": {"text": text}})

    def fail(other):
        note("Traceback (most recent call last):\n")
        if other:
            child = FORK.Process(target=fail, args=(False,))
            child.start()
            child.join()
        note("IndexError: 0\n")

    child = FORK.Process(target=fail, args=(True,))
    child.start()
    child.join()

    assert tail.alarmed
    assert 2 * "Traceback (most recent call last):\nIndexError: 0\n" == tail.text()
    tail.clear()
    assert (False, "") == (tail.alarmed, tail.text())
    tail.detach()
    assert "" == tail.text()


def test_a_launchers_own_exception_is_no_state_of_a_rank():
    """`ChildFailedError: ====` at the line that starts the ranks says nothing."""
    place = Place(file="cell In[5]", line=1, code="notebook_launcher(train)")
    account = Account(exception="torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ==", place=place)

    assert (Spot(file="cell In[5]", line=1, code="notebook_launcher(train)"),) == spots_of(account)


@pytest.mark.parametrize(
    "file",
    [
        "torch/multiprocessing/spawn.py",
        "accelerate/utils/launch.py",
        "torch/distributed/elastic/multiprocessing/api.py",
    ],
)
def test_an_argument_that_the_launcher_was_not_given_is_no_matter_of_releases(file):
    """The function is the program's own: its arguments stand where the processes are started."""
    output = (
        f'Traceback (most recent call last):\n  File "/site-packages/{file}", line 90, in _wrap\n    fn(i, *args)\n'
        "TypeError: launch() missing 1 required positional argument: 'epochs'\n"
    )
    found = find_conflict(Incident(Snapshot(output=output)).errors[0])

    assert found is not None
    assert "launch() needs epochs, and the processes are started without it" == found.title
