"""What two NCCL ranks printed and dumped on a real GPU (PyTorch 2.11, NCCL 2.28.9): who failed, who is a victim.

tests/nccl holds the output and the flight recorder's dumps of each run; tests/gpu has the programs.
"""

import shutil

import pytest
from places import TESTS

from dtdebug.live.job.judge import Basis, judge
from dtdebug.recorded.flight_recorder import analyse
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.logs.exception_roles import role_of
from dtdebug_taxonomy.logs.exits import exits_in
from dtdebug_taxonomy.model.ranks import Frame, Operation, RankState
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.verdicts.from_log import verdict_of_log

RECORDED = TESTS / "nccl"
AT = (Frame(file="/job/train.py", line=8, function="<module>", code="dist.all_reduce(t)"),)


def printed(name):
    return (RECORDED / f"{name}.log").read_text()


def dumps(name, folder):
    folder.mkdir(parents=True)
    for rank in (0, 1):
        shutil.copy(RECORDED / f"{name}.rank_{rank}.json", folder / f"rank_{rank}")
    return folder


def ended(**signals):
    """Two ranks of which records know no exception, ended by signals."""
    return [
        RankState(rank=r, pid=100 + r, world_size=2, alive=False, signal=signal, stack=AT)
        for r, signal in enumerate(signals.values())
    ]


def judged(name, states, tmp_path, *, dumped=False):
    folder = RunFolder(tmp_path / "run")
    if dumped:
        dumps(name, folder.flight)
    return judge(folder if dumped else None, states, Basis(output=printed(name))).verdict


def test_a_rank_that_its_watchdog_aborted_is_a_victim(tmp_path):
    found = judged("timeout", ended(zero="SIGABRT", one="SIGTERM"), tmp_path, dumped=True)
    assert (found.kind, found.culprits, found.waiting) == ("not_arrived", (1,), (0,))
    assert found.summary.startswith("Rank 1 never arrived at all_reduce #7")


def test_calls_of_unlike_size_come_before_the_crash_that_they_lead_to(tmp_path):
    found = judged("size", ended(zero="SIGTERM", one="SIGSEGV"), tmp_path, dumped=True)
    assert (found.kind, found.culprits) == ("wrong_size", ())
    assert "[1048576]" in found.summary
    assert "[1024]" in found.summary
    assert "SIGSEGV" not in found.summary


def test_the_log_alone_shows_unlike_sizes_too():
    found = verdict_of_log(Snapshot(output=printed("size")))
    assert (found.kind, found.culprits) == ("wrong_size", ())
    assert "1,024 elements" in found.summary
    assert "1,048,576 elements" in found.summary


def test_a_fault_of_a_kernel_is_the_rank_s_own(tmp_path):
    found = judged("kernel", ended(zero="SIGABRT", one="SIGTERM"), tmp_path)
    assert (found.kind, found.culprits) == ("dead", (0,))
    assert "an illegal memory access was encountered" in found.summary


def test_ranks_that_nccl_refused_do_not_wait(tmp_path):
    said = "Duplicate GPU detected : rank {} and rank {} both on CUDA device 60"
    states = [
        RankState(
            rank=r, pid=100 + r, world_size=2, alive=False, exit_code=1, stack=AT, pending=Operation(op="all_reduce"),
            exception="torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:93, invalid usage (run with "
            f"NCCL_DEBUG=WARN for details), NCCL version 2.28.9; last error: {said.format(r, 1 - r)}",
        )
        for r in (0, 1)
    ]  # fmt: skip
    found = judged("same_gpu", states, tmp_path)
    assert (found.kind, found.culprits, found.waiting) == ("dead", (0, 1), ())
    assert said.format(0, 1) in found.summary
    assert "has not ended" not in found.summary


@pytest.mark.parametrize(
    ("code", "last", "role"),
    [
        ("invalid usage", "Bootstrap : no socket interface found", "own"),
        ("invalid usage", "", "own"),
        ("invalid usage", "NET/Socket : peer 10.0.0.1<5> message truncated : receiving 9 bytes instead of 8", "peer"),
        ("unhandled cuda error", "Cuda failure 'out of memory'", "own"),
        ("unhandled system error", "socketStartConnect: Connect to 10.0.0.1<5> failed : Connection refused", "peer"),
        ("unhandled system error", "", "peer"),
        ("internal error", "Error while creating shared memory segment /dev/shm/nccl-x (size 9637888)", "own"),
        ("remote process exited or there was a network error", "socketProgress: Connection closed", "peer"),
    ],
)
def test_nccl_s_last_words_tell_a_refusal_from_a_lost_peer(code, last, role):
    words = f"{code} (run with NCCL_DEBUG=WARN for details), NCCL version 2.28.9" + (last and f"; last error: {last}")
    for form in (
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:93, ",
        "RuntimeError: NCCL error in: ../NCCLUtils.hpp:9, ",
    ):
        assert role_of(form + words) == role


def test_a_watchdog_s_words_are_kept_with_nccl_s_last_ones():
    assert exits_in(printed("timeout")).watchdogs[0].startswith("Watchdog caught collective operation timeout: WorkNC")
    assert exits_in(printed("kernel")).watchdogs[0] == "CUDA error: an illegal memory access was encountered"
    assert "; last error: NET/Socket : peer" in exits_in(printed("size")).watchdogs[1]


def test_a_rank_whose_device_has_not_begun_what_the_others_run_is_named(tmp_path):
    """With TORCH_NCCL_ENABLE_TIMING=1: rank 1's GPU is in a kernel that never ends, before an all_reduce."""
    found = analyse(dumps("device", tmp_path / "flight")).verdict
    assert (found.kind, found.culprits, found.waiting) == ("not_arrived", (1,), (0,))
    assert "its device has not begun it" in found.summary


def test_a_send_and_its_receive_are_no_departure(tmp_path):
    """Rank 1 receives twice what rank 0 sends once, before a barrier."""
    found = analyse(dumps("pair", tmp_path / "flight")).verdict
    assert found.culprits == ()
    assert "wait for each other" in found.summary
    assert not [c for c in found.claims if "send" in c.op]
