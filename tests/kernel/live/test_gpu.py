"""What only a GPU and NCCL show: `pytest -m gpu` where there is one. Two ranks share it, each as a host of its own."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from places import TESTS

PROGRAMS = TESTS / "gpu"
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not Path("/dev/nvidia0").exists(), reason="there is no NVIDIA GPU"),
]
LAUNCH = ["torchrun", "--standalone", "--nproc-per-node", "2"]


@pytest.fixture
def folder(tmp_path):
    for program in PROGRAMS.glob("*.py"):
        shutil.copy(program, tmp_path)
    return tmp_path


@pytest.fixture
def call(folder):
    """`dtdebug` in that folder: exit status and all that it printed."""

    def run(*words, timeout=150, **variables):
        process = subprocess.Popen(
            [sys.executable, "-m", "dtdebug", *words], cwd=folder, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(folder), "COLUMNS": "200", **variables},
        )  # fmt: skip
        try:
            out, _ = process.communicate(timeout=timeout)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return process.returncode, out

    return run


@pytest.fixture
def job(call):
    """First line of the answer to a job, and all that was printed."""

    def run(*words, options=(), **settings):
        _, out = call("run", *options, "--", *LAUNCH, *words, **settings)
        lines = [line for line in out.splitlines() if line.startswith("dtdebug: ")]
        return (lines or [""])[0], out

    return run


HANGS = ("--hang-after", "12", "--stop-on-hang", "--stop-on-not-understood")


def test_what_nccl_refuses_is_said(job):
    first, out = job("same_gpu.py")
    assert "NCCL invalid usage: Duplicate GPU detected" in first
    assert "same_gpu.py:" in first
    assert "use the same GPU" in out


def test_a_rank_that_a_watchdog_ended_is_a_victim(job):
    first, _ = job("leaves.py", "15")
    assert first.startswith("dtdebug: Rank 1 never arrived at all_reduce #7 of world"), first


def test_a_hang_names_the_rank_that_is_elsewhere(job):
    first, out = job("leaves.py", options=HANGS)
    assert first.startswith("dtdebug: Slow, or hanging: rank 1 has not arrived at all_reduce #7 of world"), first
    assert "time.sleep" in out


def test_unlike_sizes_are_compared(job):
    first, _ = job("size.py")
    assert "[1048576]" in first, first
    assert "[1024]" in first


def test_a_kernel_that_never_ends_is_told_by_timing(job):
    first, _ = job("kernel.py", options=HANGS, TORCH_NCCL_ENABLE_TIMING="1")
    assert first.startswith("dtdebug: Rank 1 called all_reduce #7 of world, but its device has not begun it"), first


def test_without_timing_the_links_are_not_accused_alone(job):
    first, _ = job("kernel.py", options=HANGS)
    assert "look at what their devices do before it, and at the links" in first, first


def test_an_illegal_access_is_the_rank_s_own(job):
    first, out = job("illegal.py")
    assert first.startswith("dtdebug: Rank 0 raised torch.AcceleratorError: CUDA error: "), out  # in each card's words
    assert "rank 1 failed because of it" in first


def test_memory_that_runs_out_names_its_rank(job):
    first, _ = job("memory.py")
    assert first.startswith("dtdebug: Rank 1 raised torch.OutOfMemoryError"), first


def test_a_receive_without_a_send_accuses_no_pair(job):
    first, _ = job("pair.py", options=HANGS)
    assert "called recv" not in first
    assert "wait" in first


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
@pytest.mark.parametrize("data", ["64M", "0"])
def test_recordings_on_a_gpu_are_compared_and_replayed(job, call, kind, data):
    for name, *words in (("a",), ("b",), ("c", "moved")):
        _, out = job("train.py", kind, *words, options=("--record", name, "--data", data))
        assert re.search(r"recorded \d+ collectives of 2 ranks", out), out
    status, out = call("diff", "a", "b", "--format", "json")
    assert (status, json.loads(out)["same"]) == (0, True), out
    first = json.loads(call("diff", "a", "c", "--format", "json")[1])["first"]
    assert (first["rank"], first["what"]) == (1, "value")
    if data != "0":
        status, out = call("replay", "a", "--rank", "1", "--format", "json")
        found = json.loads(out[out.index("{") :])
        assert found["identical"] == found["inputs"] > 0, out


def test_a_watch_on_a_gpu_names_what_differs(job):
    _, out = job("train.py", "rate", options=("--watch",))
    assert "hyperparameters-differ" in out
    assert "card-shared" in out


def test_a_captured_graph_switches_off_and_the_job_goes_on(job):
    for options in (("--watch",), ("--record", "r")):
        _, out = job("graph.py", options=options)
        assert "a CUDA graph is captured" in out
        assert out.count("sum ") == 2


def test_doctor_counts_the_devices(call):
    status, out = call("doctor", "--", *LAUNCH, "train.py")
    count = len(list(Path("/dev").glob("nvidia[0-9]*")))
    assert (f"has {count} device" in out) == (count < 2), out
    assert status == (count < 2)
