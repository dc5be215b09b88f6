"""What the first answer to a log must not do: repeat itself, ask what it was told, show what is somebody else's."""

import pytest

from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.ranks import CallSite, Frame, Verdict
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Snapshot
from dtdebug_taxonomy.presentation.answer import build_answer
from dtdebug_taxonomy.presentation.text import to_text
from dtdebug_taxonomy.verdicts import from_log

KNOWLEDGE = load()
DOCKER0 = "node1:12:45 [0] NCCL INFO NET/Socket : Using [0]docker0:172.17.0.1<0>\n"
REFUSED = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1333, unhandled system error\n"
UNPRINTED = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
train.py FAILED
Root Cause (first observed failure):
[0]:
  time      : 2026-11-21_10:42:10
  host      : gpu-node-3
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 1233)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
"""
TIMED_OUT = (
    "[rank0]:[E ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, "
    "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.\n"
)


def of(output, situation=""):
    """The diagnosis of a log."""
    output = clean(output)
    return diagnose(
        KNOWLEDGE,
        Snapshot(output=output, situation=situation, verdict=from_log.verdict_of_log(Snapshot(output=output))),
    )


@pytest.mark.parametrize(("launched", "shown"), [("", False), ("mpirun -np 16 -H a:8,b:8 python train.py\n", True)])
def test_an_example_for_a_launcher_needs_a_sign_of_it(launched, shown):
    found = of(launched + DOCKER0 + REFUSED)

    assert "wrong-network-interface" == found.advice[0].cause
    assert shown == ("mpirun" in found.advice[0].diff)


def test_words_that_only_hold_another_one_are_no_sign():
    """`supported` is no `orte`."""
    assert (
        "mpirun"
        not in of(DOCKER0 + REFUSED + "peer access is not supported between these two devices\n").advice[0].diff
    )


def test_how_it_shows_is_not_asked_of_an_error_that_was_pasted():
    found = of(
        "torch.distributed.DistNetworkError: The client socket has timed out after 60s while trying to connect to (a)"
    )

    assert found.question is None or found.question.key != "manifestation"


def test_what_a_message_says_is_told_once():
    said = "The tensor parallel degree must be a multiple of the number of frobs on each rank"
    text = to_text(of(f"[rank0]: ValueError: {said}"))

    assert "The message says what is wrong" in text
    (cause,) = (line for line in text.splitlines() if "cause, " in line)
    assert said in cause
    assert said not in text.partition(cause)[2]


def test_processes_of_a_job_that_has_ended_are_not_to_be_looked_at():
    found = of(TIMED_OUT)

    assert found.next is not None
    assert "attach" not in found.next.command
    assert "attach" in of("", "the job hangs in training on 2 GPUs").next.command


def test_a_message_that_any_program_prints_makes_no_cause_likely():
    found = of(
        "[rank2]: RuntimeError: The size of tensor a (4096) must match the size of tensor b (2048) at dimension 1"
    )

    assert found.advice
    assert "likely" not in {a.band for a in found.advice}


def test_an_exit_code_alone_is_no_end_without_an_exception():
    """Its traceback is printed elsewhere; nothing is guessed from how common things are."""
    found = of(UNPRINTED)

    assert "Rank 1 ended with exit code 1; no exception is printed." == found.happened
    assert ("unknown", ()) == (found.verdict, found.advice)
    assert found.next.command.startswith("dtdebug run ")
    assert "symptom" not in to_text(found)


def test_slurm_says_that_memory_ran_out():
    found = of("srun: error: gpu-17: task 9: Out Of Memory\n")

    assert found.happened.startswith("Slurm task 9 on gpu-17 ended with SIGKILL, killed for memory")


def test_a_likeness_of_words_is_no_reason_beside_one_that_can_be_looked_up():
    found = of(DOCKER0 + REFUSED)

    assert found.symptoms[0].why
    assert {"similar"}.isdisjoint(r.source for r in found.symptoms[0].why)


TORN = """Traceback (most recent call last):
  File "/w/train.py", line 60, in main
    stages = build(cfg)
  File "/w/pipe.py", line 31, in build
    raise ValueError(message)
ValueError: Cannot split 30 blocks over 4 pipeline stages evenly
"""


def test_a_traceback_of_nobody_knows_which_rank_is_told_where_several_are_spoken_of():
    """Its exception and place come first; nothing is asked that the traceback has answered."""
    d = diagnose(KNOWLEDGE, Snapshot(output=f"+ torchrun --nproc_per_node=8 train.py --pp 4\n{TORN}"))

    assert d.recognised
    assert d.happened == "ValueError: Cannot split 30 blocks over 4 pipeline stages evenly at /w/pipe.py:31 in build"
    assert d.advice[0].cause == "message-says-so"
    assert d.question is None or d.question.key != "activity"
    assert d.next is None or d.next.kind != "measure"
    alone = diagnose(KNOWLEDGE, Snapshot(output=TORN.replace("30 blocks over 4 pipeline stages", "it")))
    assert not alone.recognised


@pytest.mark.parametrize(
    ("line", "title"),
    [
        (
            (
                "n1:7:9 [0] NCCL WARN Mismatched NCCL version detected : rank 0 version 22203 rank 9 version 21805\n"
                "RuntimeError: NCCL Error 5: invalid usage (run with NCCL_DEBUG=WARN for details)"
            ),
            "22203 on rank 0, 21805 on rank 9",
        ),
        (
            "[rank2]: RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16",
            "Float and BFloat16",
        ),
        ("[rank1]: OSError: [Errno 28] No space left on device: '/scratch/ckpt/step_300.pt'", "is full"),
        ("[rank1]: RuntimeError: unable to write to file </torch_77_1>: No space left on device (28) /dev/shm", "shm"),
        (
            (
                "Message: The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. "
                "Container worker was using 610Gi, request is 500Gi"
            ),
            "container worker was using 610Gi",
        ),
        (
            (
                "W elastic/rendezvous/dynamic_rendezvous.py:1340] The node 'n7_31_0' has failed to send a "
                "keep-alive heartbeat to the rendezvous 'a1' due to an error of type RendezvousConnectionError."
            ),
            "rendezvous store was lost",
        ),
    ],
)
def test_the_first_cause_is_what_the_line_says(line, title):
    """With the numbers, types and names that stand there, not the class that the line belongs to."""
    assert title in diagnose(KNOWLEDGE, Snapshot(output=line)).advice[0].title


def test_three_likely_answers_and_no_list_of_eleven():
    """All of them are accepted; the rest is for those who look for it."""
    d = diagnose(KNOWLEDGE, Snapshot(output="RuntimeError: NCCL error in: x.cpp:9, unhandled system error"))

    assert d.question is not None
    asked = next(line for line in to_text(d).split("\n") if "next question" in line)
    assert len(d.question.values) <= 4 or asked.endswith(" / or another)")


WAITED = (
    "[rank0]:[E ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, "
    "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800023 milliseconds before timing out.\n"
)


@pytest.mark.parametrize(
    ("output", "first"),
    [
        (
            "slurmstepd: error: *** STEP 7.0 ON gpu017 CANCELLED AT 2026-04-02T09:10:11 DUE TO TIME LIMIT ***\n",
            "Slurm ended the job at its time limit.",
        ),
        (
            "n4:22:71 [4] NCCL INFO up\nn4:22:71 [4] include/alloc.h:125 NCCL WARN Cuda failure 2 'out of memory'\n",
            "A CUDA call of NCCL found no free GPU memory.",
        ),
        (
            f"container exited with code 137 (OOMKilled), pod worker-3\n{WAITED}",
            "The Linux kernel or the container runtime killed a process because memory ran out.",
        ),
        (
            "n4:22:71 [4] include/shm.h:28 NCCL WARN Call to posix_fallocate failed: No space left on device\n",
            "NCCL found no room for its shared-memory segments in /dev/shm.",
        ),
        (
            "DistBackendError: NCCL error in: a.cpp:7, unhandled cuda error (run)\nCuda failure 'out of memory'\n",
            "A CUDA call of NCCL found no free GPU memory.",
        ),
        (
            "raylet: /tmp/ray/session_1 is over 95% full, available space: 2.03779 GB; capacity: 69.9336 GB.\n",
            (
                "The disk with Ray's session folder is nearly full: Ray then creates no more objects that would have "
                "to be spilled."
            ),
        ),
    ],
)
def test_without_a_rank_the_first_line_is_what_the_line_says_that_tells_most(output, first):
    """The class of the symptom is the line below, and the reason is not told twice."""
    found = of(output)
    text = to_text(found)

    assert first == found.happened
    assert text.startswith(f"dtdebug: {first}\n")
    assert f"why: {first}" not in text
    assert found.seen[0].text.strip('"') in output
    assert found.seen[0].record.startswith("line ")
    assert f"symptom: {found.symptoms[0].title}" in text


def test_an_echo_says_what_it_says_and_where_and_the_tear_down_comes_last():
    """NCCL's own last line in place of the code of its error; INFO lines of an abort tell least."""
    found = of(
        "n1: Traceback (most recent call last):\n"
        'n1:   File "/w/cifar.py", line 164, in <module>\n'
        "n1:     torch.distributed.barrier()\n"
        "n1: torch.distributed.DistBackendError: NCCL error in: a.cpp:1333, remote process exited or there was a "
        "network error, NCCL version 2.18.6\n"
        "n1: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
        "n1: Last error:\n"
        "n1: socketProgress: Connection closed by remote peer 10.0.0.1<40134>\n",
        "I run on two nodes and get an NCCL error.",
    )
    torn = of(
        "g7:43:43 [0] NCCL INFO comm 0x55 rank 6 nranks 8 cudaDev 0 busId 31000 - Abort COMPLETE\n"
        "g7:44:49 [1] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer g8<44122>\n"
    )

    assert found.happened == (
        "DistBackendError: socketProgress: Connection closed by remote peer 10.0.0.1<40134> at /w/cifar.py:164 in "
        "<module>"
    )
    assert found.seen[0].text.strip('"').startswith("DistBackendError: NCCL error in: a.cpp:1333, remote process")
    assert torn.happened.startswith("The other end of a NCCL connection closed it")


def test_ranks_had_succeeded_when_launchers_part_at_the_exit_barrier():
    """torchrun enters it only then; the exception is logged and changes no exit status."""
    found = of(
        "[W1123 20:03:54.7 TCPStore.cpp:138] [c10d] recvValueWithTimeout failed on SocketImpl(fd=4): "
        "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?\n"
        "E1123 20:03:54.562000 23210 torch/distributed/elastic/agent/server/api.py:1008] "
        "Error waiting on exit barrier. Elapsed: 0.906 seconds\n"
    )

    assert found.happened.startswith("All ranks that this torchrun started ended with success")
    assert [a.cause for a in found.advice][:1] == ["launchers-part-at-the-end"]


def test_a_count_of_zero_is_of_the_exchange_and_any_other_of_the_model():
    """No rank has 0 parameters that DDP compares."""
    line = (
        "RuntimeError: DDP expects same model across all ranks, but Rank 0 has 9 params, while rank 1 has inconsistent"
    )

    assert [of(f"{line} {n} params.\n").advice[0].cause for n in (0, 12)] == [
        "exchange-brings-zeros",
        "ranks-hold-different-models",
    ]


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        ("It trains well on a single node, but hangs with two nodes.", "fix communication configuration"),
        ("It trains well on a single node, but hangs with two nodes after 500 steps.", ""),
        ("Training on 2 GPUs hangs. I set NCCL_P2P_DISABLE=1 but it still hangs.", ""),
    ],
)
def test_a_path_that_is_known_to_carry_data_is_no_cause(words, pattern):
    """Steps that were done across hosts, or a run without the path that fails too, speak against it.

    Steps that were done on the one host that works do not.
    """
    of_paths = ("fix network setting", "fix communication configuration")

    found = of("", words)

    assert [a.pattern for a in found.advice or found.guesses if a.pattern in of_paths][:1] == [pattern] * bool(pattern)


def test_what_is_ruled_out_says_with_which_fact():
    d = of("", "It trains well on a single node, but hangs with two nodes after 500 steps.")

    assert any(
        row.endswith("That goes with no step finished; here: at least one step finished.") for row in d.ruled_out
    )


def test_where_only_a_launcher_speaks_that_is_what_is_said():
    found = of(
        '  File "/opt/site-packages/accelerate/commands/launch.py", line 769, in simple_launcher\n'
        "    raise subprocess.CalledProcessError(returncode=process.returncode, cmd=cmd)\n"
        "subprocess.CalledProcessError: Command '['python3', 'train.py']' returned non-zero exit status 1.\n"
    )
    text = to_text(found)

    assert ("echo", ()) == (found.verdict, found.advice)
    assert text.startswith("dtdebug: A launcher reports that the program it started ended with an error;")
    assert "symptom" not in text  # the likeness of words is none


def test_the_traceback_without_its_head_is_read():
    found = of(
        '  File "/w/multiprocessing/spawn.py", line 126, in _main\n    self = load(parent)\n'
        "AttributeError: Can't get attribute 'train' on <module '__main__' (built-in)>\n"
        "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with exit code 1\n"
    )

    assert found.happened.startswith("Rank 0 raised AttributeError: Can't get attribute 'train'")


def test_a_stack_that_was_logged_is_no_traceback():
    logged = 'Stack (most recent call last):\n  File "/w/a.py", line 3, in main\n    log.info("x")\nKeyError: told\n'

    assert "a.py" not in of(f"{logged}[rank0]: step 1\n").happened


def test_the_deepspeed_launcher_names_the_rank_that_it_started_last():
    found = of(
        'Traceback (most recent call last):\n  File "/w/train.py", line 8, in main\n    load()\n'
        "RuntimeError: shard 3 is torn\n"
        "[launch.py:322:sigkill_handler] ['python', '-u', 'train.py', '--local_rank=7'] exits with return code = 1\n"
    )

    assert "A rank raised RuntimeError: shard 3 is torn" == found.happened[:43]
    assert () == found.culprits


def test_one_process_in_a_memory_report_is_the_program_itself():
    report = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB. Process 41 has 78.08 GiB memory in use."
    )
    other = " Including non-PyTorch memory, this process has 1.2 GiB memory in use."

    assert "ranks-share-first-gpu" not in [a.cause for a in of(f"[rank0]: {report}\n").advice]
    assert "ranks-share-first-gpu" == of(f"[rank0]: {report}{other}\n").advice[0].cause


def test_a_description_that_the_output_contradicts_is_told_and_asks_nothing_of_it():
    trace = 'Traceback (most recent call last):\n  File "/w/a.py", line 3, in <module>\n    y = x[5]\nIndexError: x'
    said = "My job hangs with no error on 16 GPUs."
    output = "".join(f"[rank3]: {row}\n" for row in trace.split("\n"))
    found = of(output, said)

    assert found.happened.startswith("Rank 3 raised IndexError")
    assert found.notes[0].startswith("You describe a hang; the output shows an exception.")
    assert found.question is None or found.question.key != "error_text_on_some_rank"
    assert () == of(output).notes
    assert () == of(output, "After upgrading from torch 2.5 to 2.6 I get this on every rank.").notes


def test_no_cause_below_one_that_the_output_names_is_called_more_likely():
    found = of("n1:1:2 [3] NCCL WARN NET/IB : Got completion from peer 10.3.0.11<44121> with status=12 opcode=0\n")

    assert ("possible", True) == (found.advice[0].band, found.advice[0].named)
    assert "likely" not in [a.band for a in found.advice]


def test_what_the_output_spells_out_is_likely():
    """With the names and figures of the very case; the same message without them is not."""
    found = of("usage: torchrun [-h]\ntorchrun: error: unrecognized arguments: --nproc-per-nodes=4\n").advice[0]

    assert ("torchrun has no option --nproc-per-nodes", "likely") == (found.title, found.band)


def test_what_a_check_sees_on_the_line_that_raised_is_the_first_cause_with_its_fix():
    """The check's own words, and the diff of the cell; not the general cause that the check is an indicator of."""
    cell = 'import torch.distributed as dist\ndist.init_process_group("gloo", timeout=3)'
    frame = Frame("cell In[2]", 2, "<module>", cell.split("\n")[1])
    raised = ExceptionInfo(type="TypeError", message="Expected timeout argument", frames=(frame,))
    found = diagnose(KNOWLEDGE, Snapshot(cell=cell, exception=raised))
    first = found.advice[0]

    assert "TypeError: Expected timeout argument at cell In[2], line 2" == found.happened
    assert ("likely", "yours", True) == (first.band, first.diff_of, found.recognised)
    assert first.title.endswith("(DT209)")
    assert "+from datetime import timedelta\n" in first.diff
    assert '+dist.init_process_group("gloo", timeout=timedelta(seconds=3))\n' in first.diff
    assert "No newline" not in first.diff


def test_a_cell_is_read_with_those_before_it_and_its_diff_is_its_own():
    """Its imports stand in an earlier cell; the import that the fix adds goes into the cell that is shown."""
    before = ("import os\nimport torch.distributed as dist", "%matplotlib inline\nrank = 0")
    cell = '%%time\ndef work(rank):\n    dist.init_process_group("gloo", rank=rank, timeout=30)\n\nwork(0)'
    frame = Frame("cell In[3]", 2, "work", cell.split("\n")[2].strip())
    raised = ExceptionInfo(type="TypeError", message="Expected timeout argument", frames=(frame,))
    alone = diagnose(KNOWLEDGE, Snapshot(cell=cell, exception=raised))
    found = diagnose(KNOWLEDGE, Snapshot(cell=cell, cells=before, exception=raised)).advice[0]

    assert [] == [a.title for a in alone.advice if "DT209" in a.title]
    assert ("likely", "yours") == (found.band, found.diff_of)
    changed = [line for line in found.diff.splitlines()[2:] if line.startswith(("+", "-"))]
    assert "+from datetime import timedelta" == changed[0]
    assert [" %%time"] == [line for line in found.diff.splitlines() if "%%" in line]
    assert 3 == len(changed)


def test_what_a_check_sees_on_another_line_is_no_first_cause():
    cell = 'import torch.distributed as dist\ndist.init_process_group("gloo", timeout=3)\nint("x")'
    frame = Frame("cell In[2]", 3, "<module>", 'int("x")')
    raised = ExceptionInfo(type="ValueError", message="invalid literal", frames=(frame,))
    found = diagnose(KNOWLEDGE, Snapshot(cell=cell, exception=raised))

    assert [] == [a.title for a in found.advice if "DT209" in a.title]


def test_a_text_does_not_ask_what_the_user_has_said():
    """The wizard may, to be sure; a text that asks for the machines below "4 nodes" has not listened."""
    late = "Timed out after 1801 seconds waiting for clients. 31/32 clients joined."
    found = of(
        f"[rank17]: torch.distributed.DistStoreError: {late}\n",
        "Training on 4 nodes x 8 H100. After exactly 30 min every time it dies.",
    )

    assert "nodes" == found.question.key
    assert "next question" not in to_text(found)


def test_a_run_that_is_somewhat_faster_has_divided_its_data():
    found = of("", "Why is my 8 GPU run only 1.3x faster than 1 GPU? ResNet50, batch 32 per gpu.")

    assert "every-rank-does-all-data" not in [a.cause for a in found.advice]
    assert any("data is not sharded" in line for line in found.ruled_out)


def test_an_ordinary_error_that_several_processes_meet_for_another_reason_says_so():
    """Only as a condition: nothing is seen of several."""
    found = of("RuntimeError: CUDA error: invalid device ordinal\n")

    assert found.ordinary.startswith(
        "An ordinary error of the program: RuntimeError: CUDA error: invalid device ordinal;"
    )
    assert found.ordinary.endswith(
        "If a launcher starts it: compare its number of processes on this host with the GPUs "
        "that `nvidia-smi -L` lists."
    )
    assert not found.advice
    assert not found.recognised


@pytest.mark.parametrize("text", ["git clone hangs at 99 %.", "My editor gets stuck on activating extensions."])
def test_a_named_tool_that_hangs_is_no_training(text):
    assert not diagnose(load(), Snapshot(situation=text)).recognised
    assert diagnose(load(), Snapshot(situation=f"{text} The training job too.")).recognised


@pytest.mark.parametrize(
    ("summary", "headline"),
    [
        (
            "Rank 1 never arrived at all_reduce of world; it is in /w x/train.py:8 in evaluate.",
            "Rank 1 never arrived at all_reduce of world; it is in evaluate.",
        ),
        (
            "Rank 1 raised KeyError at /w x/train.py:8 in evaluate; rank 0 waits.",
            "Rank 1 raised KeyError; rank 0 waits.",
        ),
        (
            "Rank 1 raised KeyError: 'lr' at train.py:81 in main.",
            "Rank 1 raised KeyError: 'lr' at train.py:81 in main.",
        ),
    ],
)
def test_a_place_that_is_shown_leaves_the_headline_and_takes_nothing_with_it(summary, headline):
    """The call that the ranks wait in stays, and so does another line of the same file."""
    site = CallSite(1, "/w x/train.py", 8, "evaluate")
    verdict = Verdict(kind="not_arrived", culprits=(1,), waiting=(0,), summary=summary, sites=(site,))
    answer = build_answer(None, None, verdict, event=summary)

    assert [("/w x/train.py", 8)] == [(spot.file, spot.line) for spot in answer.spots]
    assert headline == answer.headline


@pytest.mark.parametrize(
    ("output", "first"),
    [
        (
            "epoch 1 loss 0.9\n=>> PBS: job killed: mem 33984512kb exceeded limit 33554432kb\n",
            "=>> PBS: job killed: mem 33984512kb exceeded limit 33554432kb",
        ),
        ("bash: orted: command not found\n", "mpirun could not start its helper on another host"),
    ],
)
def test_a_meaning_with_alternatives_yields_to_a_line_that_names_something(output, first):
    """A line without a number, path or quote says less than the meaning."""
    assert of(output).happened.startswith(first)
