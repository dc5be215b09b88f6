"""What layers and loggers report where nobody raised anything, and warnings after which all went on."""

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.logs.layer_reports import layer_report, logger_report
from dtdebug_taxonomy.logs.lines import split_lines
from dtdebug_taxonomy.model.snapshot import Snapshot


@pytest.mark.parametrize(
    ("line", "layer", "message"),
    [
        ("[1759.2] [n1:52:0]   ib_md.c:713  UCX  ERROR the mode is not supported", "UCX", "the mode is not supported"),
        ("[1759.2] [n1:52:0]   mm_ep.c:9  UCX  FATAL no such region is known", "UCX", "no such region is known"),
        ("libfabric:40:17::efa:ep_ctrl:efa_open():83<warn> flag is required", "libfabric", "flag is required"),
        ("slurmstepd: error: no address of host gpu-12 is known", "Slurm", "no address of host gpu-12 is known"),
        ("srun: fatal: the environment is of another release", "Slurm", "the environment is of another release"),
        ("n1:8:9 [3] net.cc:5 NCCL WARN No card for rank 3", "NCCL WARN", "No card for rank 3"),
        ("  what():  the rank must not be negative", "C++ exception", "the rank must not be negative"),
        (
            "[1764.2] [n1:4:0] tl_shm_bcast.c:91  TL_SHM ERROR segment of node 2 is gone",
            "UCC",
            "segment of node 2 is gone",
        ),
        ("2026:11:26-10:02:( 44) |CCL_ERROR| kvs.cpp:6 init: time (9) >= 8", "oneCCL", "kvs.cpp:6 init: time (9) >= 8"),
        (
            "[2026-11-26 10:02: F net/post.cc:8] Check failed: (n) > (0) no post",
            "C++ check",
            "Check failed: (n) > (0) no post",
        ),
        (
            "2026-01-07 09:23:31.000001: F xla/service/rendezvous.cc:127] Termination timeout of 40 seconds exceeded",
            "C++ fatal",
            "Termination timeout of 40 seconds exceeded",
        ),
        ("[n1:21455] PRTE ERROR: Not found in file a.c at line 3", "PMIx", "Not found in file a.c at line 3"),
    ],
)
def test_a_layer_s_own_words_are_the_first_line(line, layer, message):
    """Behind whichever prefix its lines have; and the answer says them where it knows no more."""
    found = layer_report(split_lines(f"starting\n{line}\n"))

    assert (found.layer, found.message, found.line) == (layer, message, 2)
    assert message in diagnose(load(), Snapshot(output=f"4 ranks start\n{line}\n")).happened or layer == "PMIx"


@pytest.mark.parametrize(
    "line",
    [
        "[1759.2] [n1:52:0]  ucp_worker.c:9  UCX  WARN  the interface is slow today",
        "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-11-03T10:02:11 ***",
        "n1:8:9 [3] NCCL INFO NET/OFI Using the libfabric provider",
        "n1:8:9 [3] NCCL WARN falling back to the socket transport",
    ],
)
def test_what_is_only_disliked_is_no_report(line):
    """Warnings of layers that warn of much, ends that a scheduler makes, and what is taken instead."""
    assert layer_report(split_lines(line)) is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("(Server pid=99) ERROR:2026-10-14 02:12:20,004:HTTP error 500 of resume", "HTTP error 500 of resume"),
        ("E1009 07:44:10.118822       1 statement.go:283] Task w-3 has no place", "Task w-3 has no place"),
        ("E0000 00:00:1759822211.203311   52311 agent.cc:41] Task 2 is unhealthy now", "Task 2 is unhealthy now"),
        ("[2026-10-07 21:02:13,118 E 4412 4498] (raylet) a.cc:30: The node is gone", "The node is gone"),
        ("[NeMo E 2026-10-03 11:20:31 adapters:308] The manifest has no shards", "The manifest has no shards"),
        ("[2026-10-11T08:21:11.190] error: conn: no way to slurmdb01", "conn: no way to slurmdb01"),
        (
            '{"level":"error","ts":"2026-10-09T07:44:10Z","msg":"Reconciler error","error":"the job has no runtime"}',
            "Reconciler error: the job has no runtime",
        ),
    ],
)
def test_a_logger_calls_it_an_error(line, message):
    """Loggers of Python, Go, absl, Ray, NeMo and Slurm; the cause that a structured one parts is in it."""
    assert logger_report(split_lines(f"a rank starts\n{line}")).message == message


def test_a_logger_s_error_is_shown_and_not_called_a_known_fault():
    """What nobody knows is told as it stands, with no symptom and no cause."""
    d = diagnose(load(), Snapshot(output="(W pid=9, ip=10.0.0.7) ERROR:2026-10-14 02:12:20,004:HTTP answer 500 of b\n"))

    assert d.happened == "Logged as an error: HTTP answer 500 of b"
    assert (d.recognised, d.verdict, d.advice) == (False, "unknown", ())


def test_a_logger_s_error_that_only_a_job_of_several_processes_has_is_a_failure():
    """Its words are of ranks, collectives or nodes: a cause is still not claimed."""
    d = diagnose(load(), Snapshot(output="[2026-11-26T10:02:11.331Z] || ERROR: reading the answer from pod trial-3\n"))

    assert d.happened == "Logged as an error: reading the answer from pod trial-3"
    assert (d.recognised, d.advice) == (True, ())


@pytest.mark.parametrize("word", ["retrying in 5 s", "will skip this one", "ignoring it"])
def test_an_error_after_which_the_logger_goes_on_is_none(word):
    """Its program says so itself."""
    assert logger_report(split_lines(f"E1009 07:44:10.118822 1 a.go:3] The node is away, {word}")) is None


def test_what_is_taken_instead_is_no_failure_until_somebody_complains():
    """A Python warning of a setting that was replaced, in a log that goes on; the same beside a complaint counts."""
    log = "/a/strategy.py:33: UserWarning: HYBRID_SHARD is not supported with 1D mesh. Using FULL_SHARD instead.\n"

    assert not diagnose(load(), Snapshot(output=f"{log}12/400 loss 10.1\n")).recognised
    assert diagnose(load(), Snapshot(output=log, situation="My FSDP training on 4 GPUs fails")).recognised


def test_why_nccl_calls_a_use_invalid_comes_before_the_usual_reason():
    """Its warning names the reason; without one, the usual reason stands."""
    warning = "n1:8:9 [3] group.cc:153 NCCL WARN Either all communicators or none can be captured.\n"
    raised = (
        "Traceback (most recent call last):\n"
        '  File "train.py", line 8, in <module>\n    g.replay()\n'
        "torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:33, invalid usage, NCCL 2.2\n"
    )

    assert "Either all communicators" in diagnose(load(), Snapshot(output=warning + raised)).advice[0].title
    assert "same GPU" in diagnose(load(), Snapshot(output=raised)).advice[0].title


@pytest.mark.parametrize("end", ["(errno: 111 - Connection refused), will retry", "- Connection refused"])
def test_a_refused_store_is_no_dropped_packet(end):
    """Who answers with a refusal is reached: no firewall that drops packets is suspected."""
    tried = f"[W1003 socket.cpp:7] [c10d] The server socket on [::]:29500 is not yet listening {end}\n"
    late = "[c10d] The client socket has timed out after 300000ms while trying to connect to (gpu01, 29500).\n"

    first = diagnose(load(), Snapshot(output=late)).advice[0].cause
    then = {a.cause for a in diagnose(load(), Snapshot(output=tried + late)).advice}

    assert first == "network-drops-connections"
    assert first not in then
    assert then


def test_counts_alone_name_no_symptom():
    """An exception of a library that nothing else is known of belongs to no symptom that is merely frequent."""
    log = (
        '[rank0]: Traceback (most recent call last):\n[rank0]:   File "pp.py", line 44, in <module>\n'
        '[rank0]:     schedule.check()\n[rank0]:   File "/v/site-packages/torch/distributed/pipelining/schedules.py", '
        'line 16, in check\n[rank0]:     raise AssertionError("Actions of rank 3 are missing here")\n'
        "[rank0]: AssertionError: Actions of rank 3 are missing here\n"
    )
    d = diagnose(load(), Snapshot(output=log))

    assert d.advice[0].title.endswith("Actions of rank 3 are missing here")
    assert d.advice[0].symptom == "D.1.other"


@pytest.mark.parametrize(
    "log",
    [
        "n1:8:9 [0] NCCL WARN Call to ibv_open_device failed\niter 10 loss 1.2\niter 20 loss 1.1\niter 30 loss 1\n",
        "n1:8:9 NCCL INFO NET/OFI Failed to initialize\nn1:8:9 NCCL INFO comm 0x1 rank 0 nranks 8 - Init COMPLETE\n",
        "(w pid=4) a.py:5: UserWarning: This DataLoader will create 8 worker processes in total\nTraining completed\n",
        "[n1:12] mca_base_component_repository_open: unable to open a: lib.so: missing (ignored)\nrank 0 is there\n",
        "(raylet) Some workers have not registered in time, probably it is hanging\nepoch 1 loss 2\nepoch 2 loss 1\n",
    ],
    ids=["trains on", "communication stands", "ends well", "ignored", "a wait that is over"],
)
def test_what_went_well_in_the_end_is_no_failure(tmp_path, capsys, log):
    """Training goes on, the communicator is made, or the log says that it is done: no symptom is told of it."""
    from dtdebug.cli.main import main

    path = tmp_path / "a.log"
    path.write_text(log)

    assert main(["diagnose", str(path)]) == 0
    assert "symptom" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "ERROR:  deadlock detected\nDETAIL:  Process 44 waits for ShareLock; blocked by process 41.\n",
        "[error] 12#12: worker process 31 exited on signal 11\n[notice] 12#12: start worker process 44\n",
        "Error: Process completed with exit code 137.\n",
        "terminate called after throwing 'std::bad_alloc'\n  what():  std::bad_alloc\nAborted (core dumped)\n",
    ],
    ids=["a data base", "a web server", "CI", "any program"],
)
def test_other_programs_words_are_foreign(text):
    """Deadlocks, workers and killed processes that no training knows of."""
    d = diagnose(load(), Snapshot(output=text))

    assert not d.recognised
    assert d.verdict == "unknown"


def test_what_a_check_in_a_library_refuses_is_told_as_the_message_s_own_fault():
    """A message in words of ranks, raised by a library that nobody has described: its own words are the cause."""
    log = (
        'Traceback (most recent call last):\n  File "coll.py", line 3, in <module>\n    group(actors)\n'
        '  File "/v/site-packages/alpa/collective.py", line 22, in group\n'
        '    raise RuntimeError("Ranks cannot be greater than world_size.")\n'
        "RuntimeError: Ranks cannot be greater than world_size.\n"
    )
    d = diagnose(load(), Snapshot(output=log))

    assert d.recognised
    assert "Ranks cannot be greater than world_size" in d.advice[0].title


def test_why_a_process_aborts_is_what_its_runtime_said_before():
    """Python's own line on the signal tells less than the C++ exception above it."""
    log = "4 ranks\n  what():  [/gloo/store.cc:53] the store does not support get\nFatal Python error: Aborted\n"

    assert "the store does not support get" in diagnose(load(), Snapshot(output=log)).advice[0].title
