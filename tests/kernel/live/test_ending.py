"""Ranks are ended on the user's word: those that were named, if they are ranks below this process, and nothing else."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from dtdebug.live.probe.processes import ranks_below
from dtdebug.notebook import control_channel, leftover_ranks

STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
WAIT = "print('begun', flush=True); import time; time.sleep(60)"


@pytest.fixture
def start():
    """Starts Python programs, ranks unless told otherwise; all are ended."""
    started = []

    def begin(code=WAIT, rank="0"):
        named = {"RANK": rank, "WORLD_SIZE": "2"} if rank else {}
        variables = {**{k: v for k, v in os.environ.items() if k != "RANK"}, **named}
        process = subprocess.Popen(
            [sys.executable, "-c", code], env=variables, stdout=subprocess.PIPE, start_new_session=True
        )
        started.append(process)
        process.stdout.readline()
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_named_ranks_are_ended_and_no_others(start):
    """Not the rank that was not named, not a child that is no rank, not this process, not a stranger."""
    first, second, child = start(), start(rank="1"), start(rank="")
    below = ranks_below(os.getpid())
    ended, text = leftover_ranks.end_ranks([first.pid, first.pid, child.pid, os.getpid(), os.getppid()], below)

    assert [first.pid] == ended
    assert -15 == first.wait(10)
    assert [None, None] == [second.poll(), child.poll()]
    assert text.startswith(f"ended process {first.pid};")
    assert f"left processes {min(child.pid, os.getpid(), os.getppid())}" in text


def test_a_rank_that_ignores_the_request_is_killed(start, monkeypatch):
    """After some seconds; whoever started it still learns how it ended."""
    monkeypatch.setattr(leftover_ranks, "_PATIENCE", 0.2)
    rank = start(STUBBORN + WAIT)

    assert [rank.pid] == leftover_ranks.end_ranks([rank.pid], [rank.pid])[0]
    assert -9 == rank.wait(10)


def test_nobody_is_ended_where_nobody_was_named():
    """The reply says so."""
    assert ([], "no process was named") == leftover_ranks.end_ranks([], [1])


@pytest.mark.parametrize("pids", [None, "1", ["1"], [0], [-1], [2**40], {"pid": 1}, [1.5], list(range(1, 9999))])
def test_what_is_no_list_of_processes_is_an_error(pids):
    """0 and negative numbers would be groups of processes."""
    reply = control_channel.answer(SimpleNamespace(), {"kind": "end_ranks", "pids": pids})

    assert "error" == reply["status"]


@pytest.mark.parametrize("content", [{"kind": "boo"}, {"kind": ["hang"]}, {"kind": None}])
def test_an_unknown_kind_names_the_kinds(content):
    """A front end that is newer than this sees what it can ask."""
    reply = control_channel.answer(SimpleNamespace(), content)
    known = ("state", "hang", "diagnose", "end_ranks")

    assert "error" == reply["status"]
    assert all(kind in reply["evalue"] for kind in known)
