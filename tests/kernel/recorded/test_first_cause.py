"""The first cause of a log: what the odd rank says itself, what broke first, and not what had passed."""

import pytest
from places import TESTS

from dtdebug.cli.main import main

WATCHDOG = (
    "[rank{r}]:[E0703 10:42:10.310000000 ProcessGroupNCCL.cpp:616] [Rank {r}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={n}, NumelOut={n}, Timeout(ms)=600000) ran for 600042 "
    "milliseconds before timing out.\n"
)


def steps(first: int, last: int, prefix: str) -> str:
    return "".join(f"{prefix}step {n} loss {4 - n * 0.004:.4f} lr 3e-4\n" for n in range(first, last, 10))


def apart(prefix: str, odd: int, ranks: int = 4) -> str:
    """Time-outs of ranks of which one is in another call."""
    return "".join(
        prefix.format(r=r)
        + WATCHDOG.format(r=r, seq=5521, op="ALLGATHER" if r == odd else "ALLREDUCE", n=64 if r == odd else 9437184)
        for r in range(ranks)
    )


def answer(tmp_path, capsys, text: str) -> str:
    (tmp_path / "job.log").write_text(text)
    main([str(tmp_path / "job.log")])
    return " ".join(capsys.readouterr().out.split())


SAID = {
    "{r}: ": "WARNING step 233: non-finite loss, skipping backward for this batch",
    "[rank {r}] ": "dropped 1 sample at iter 233 (empty mask), local batch is 7 instead of 8",
    "[default{r}]:": "det.train | epoch 4 step 212: batch dropped (ValueError: degenerate box [311.0, 87.5])",
}


@pytest.mark.parametrize("prefix", SAID)
def test_what_the_odd_rank_left_out_leads(tmp_path, capsys, prefix):
    """Trouble of another rank that passed long before does not."""
    zero, one, three = (prefix.format(r=r) for r in (0, 1, 3))
    text = (
        steps(0, 60, zero)
        + f"{one}WARNING read of shard-41.tar failed: OSError(116, 'Stale file handle'), retry 1/3\n"
        + f"{one}read ok after 1 retry\n"
        + steps(60, 230, zero)
        + f"{three}{SAID[prefix]}\n"
        + steps(230, 400, zero)
        + apart(prefix, odd=3)
    )

    shown = answer(tmp_path, capsys, text)

    assert "Rank 3 alone says that it left something out" in shown
    assert SAID[prefix][-30:] in shown
    assert "file system" not in shown


@pytest.mark.parametrize("said", ["skipped steps: 0", "no batch skipped", "skipped the first 4000 batches"])
def test_a_count_or_a_resume_leaves_nothing_out(tmp_path, capsys, said):
    shown = answer(
        tmp_path, capsys, steps(0, 60, "0: ") + f"3: {said}\n" + steps(60, 99, "0: ") + apart("{r}: ", odd=3)
    )

    assert "left something out" not in shown


def test_what_all_ranks_leave_out_sets_none_apart(tmp_path, capsys):
    said = "".join(f"{r}: step 45: loss is inf, skipping batch 45\n" for r in range(4))

    shown = answer(tmp_path, capsys, steps(0, 60, "0: ") + said + steps(60, 99, "0: ") + apart("{r}: ", odd=3))

    assert "left something out" not in shown


REPORTS = {
    "2025-05-06T12:31:02 node9 kernel: NVRM: Xid (PCI:0000:1b:00): 79, pid=8812, GPU has fallen off the bus.": "node9",
    "[12:30:41][gpu-a4][syslog] bnxt_en 0000:3b:00.0 enp59s0f0np0: NIC Link is Down": "gpu-a4",
    "[12:30:41][w-5][dmesg] mlx5_core 0000:9a:00.0: Port module event: module 0, Cable error, Bus stuck": "w-5",
}


@pytest.mark.parametrize("report", REPORTS)
def test_the_first_report_of_broken_hardware_leads(tmp_path, capsys, report):
    shown = answer(tmp_path, capsys, steps(0, 200, "0: ") + f"{report}\n" + apart("{r}: ", odd=3))

    assert f" on {REPORTS[report]}" in shown.partition("The ranks disagree")[0]


def test_a_device_that_its_host_reports_below_the_error_of_its_rank_leads(tmp_path, capsys):
    """The kernel's lines come later than a rank's own; an error that no device raises is another failure."""
    raised = '2: [rank2]: Traceback (most recent call last):\n2: [rank2]:   File "/w/t.py", line 4, in step\n'
    xid = "gpu043 kernel: [3120114.8] NVRM: Xid (PCI:0000:4f:00): 79, pid=1, GPU has fallen off the bus.\n"
    for error, leads in (
        ("torch.AcceleratorError: CUDA error: unspecified launch failure", True),
        ("KeyError: 3", False),
    ):
        shown = answer(tmp_path, capsys, steps(0, 200, "0: ") + f"{raised}2: [rank2]: {error}\n{xid}")
        assert leads == shown.startswith("dtdebug: GPU has fallen off the bus on gpu043")


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_after_which_training_went_on_does_not(tmp_path, capsys, report):
    text = steps(0, 200, "0: ") + f"{report}\n" + steps(200, 400, "0: ") + apart("{r}: ", odd=3)

    assert f" on {REPORTS[report]}" not in answer(tmp_path, capsys, text).partition("The ranks disagree")[0]


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 15.14 GiB. GPU 3 has a total capacity of 79.11 GiB"
LOST = (
    "[rank{r}]:[E902 06:56:40.200118231 ProcessGroupNCCL.cpp:555] [Rank {r}] Collective WorkNCCL(SeqNum=811, "
    "OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=600000) raised the following async exception: NCCL error: "
    "remote process exited or there was a network error, NCCL version 2.21.5\nncclRemoteError: A call failed possibly "
    "due to a network error or a remote process exiting prematurely.\nLast error:\nsocketProgress: Connection closed "
    "by remote peer n2<52784>\n"
)


def test_a_rank_whose_own_exception_is_known_is_not_said_to_follow_another(tmp_path, capsys):
    """Nor did the rank fail because of it that could not join an earlier try."""
    for rank in range(4):
        raised = (
            'Traceback (most recent call last):\n  File "/w/run.py", line 118, in step\n    loss = f(x)\n' + OOM + "\n"
            if rank == 2
            else LOST.format(r=rank)
        )
        early = (
            'Traceback (most recent call last):\n  File "/w/run.py", line 58, in main\n    dist.init_process_group()\n'
            '  File "/sw/site-packages/torch/distributed/distributed_c10d.py", line 1710, in init_process_group\n'
            "    store, rank, world_size = next(rendezvous_iterator)\ntorch.distributed.DistNetworkError: The client "
            "socket has timed out after 60000ms while trying to connect to (n1, 29517).\n"
        )
        (tmp_path / f"rank_{rank}.log").write_text((early if rank == 3 else "") + "attempt 1: joined\n" + raised)

    main([str(tmp_path)])
    shown = " ".join(capsys.readouterr().out.split())

    assert "OutOfMemoryError: CUDA out of memory" in shown
    assert "before the others" not in shown
    assert "because of it" not in shown


NCCL = """[rank5]: Traceback (most recent call last):
[rank5]:   File "/app/run.py", line 30, in main
[rank5]:     dist.barrier()
[rank5]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error
[rank5]: ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.
[rank5]: Last error:
[rank5]: {last}
"""


@pytest.mark.parametrize(
    "last",
    [
        "Call to posix_fallocate failed: No space left on device",
        "Error while creating shared memory segment /dev/shm/nccl-Yq2TzD (size 9637888)",
    ],
)
def test_an_own_last_error_of_nccl_is_no_lost_connection(tmp_path, capsys, last):
    shown = answer(tmp_path, capsys, NCCL.format(last=last))

    assert f"NCCL unhandled system error: {last}" in shown
    assert "lost the connection" not in shown


def test_one_of_a_closed_connection_is(tmp_path, capsys):
    shown = answer(tmp_path, capsys, NCCL.format(last="socketProgress: Connection closed by remote peer n1<40000>"))

    assert "lost the connection" in shown


@pytest.mark.parametrize("option", ["-I", "--ip-address"])
def test_an_address_taken_for_the_program_is_traced_to_the_script_beside_the_log(tmp_path, capsys, option):
    (tmp_path / "job.sbatch").write_text(
        f"#!/bin/bash\n#SBATCH --nodes=2\nhead_ip=$(hostname {option})\n"
        "srun torchrun --nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=$head_ip:29511 train.py\n"
    )
    launched = (TESTS / "samples" / "path-error" / "torchrun-address-for-program.txt").read_text()

    shown = answer(tmp_path, capsys, launched)

    assert "The address given to the launcher is two words" in shown
    assert "job.sbatch:4" in shown
