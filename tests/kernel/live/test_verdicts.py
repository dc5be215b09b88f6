"""Real jobs of gloo ranks: what was measured is what is said however they end, and slow ones are left alone."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.ranks

LIMIT = 150
"""Seconds that no job may take."""
JOB = """
import datetime, os, queue, socket, sys, time
import torch, torch.distributed as dist

fault, rank = sys.argv[1], int(os.environ["RANK"])


class SlowDisk:
    def write(self, data):
        time.sleep(0.4)
        return len(data)

    def flush(self):
        pass


def compute(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        torch.randn(100, 100).mm(torch.randn(100, 100))


def wait_for_nothing():
    queue.Queue().get()


seconds = float(os.environ.get("TIMEOUT", "100"))
if fault == "early" and rank == 1:
    compute(9)
    here, there = socket.socketpair()
    here.settimeout(45)
    here.recv(1)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=seconds))
total = torch.ones(4)
for step in range(4):
    dist.all_reduce(total)
if fault == "sleep" and rank == 1:
    time.sleep(100)
while fault == "leaves":
    dist.all_reduce(total)
    if rank + 1 > 1:
        break
if fault == "idle":
    wait_for_nothing()
if fault == "left" and rank == 1:
    sys.exit(0)
if fault == "gathers":
    from torch.distributed.tensor import Shard, distribute_tensor
    mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
    weights = distribute_tensor(torch.ones(8, 2), mesh, [Shard(0)])
    if rank == 0:
        print(weights.full_tensor().sum())
    sys.exit(0)
if fault == "slow":
    if rank == 0:
        torch.save([torch.ones(1 << 12) for _ in range(3)], SlowDisk())
    dist.barrier()
    if rank == 1:
        import slow_to_import
    dist.barrier()
    compute(8)
dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Starts a job under the command; what it runs ends with the test."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("DTDEBUG_RUN", raising=False)
    script, jobs = tmp_path / "train.py", []
    script.write_text(JOB)

    def begin(fault, *options, **variables):
        command = [sys.executable, "-m", "dtdebug", "run", "--hang-after", "3", *options]
        command += [
            "--folder",
            str(tmp_path / "run"),
            "--format",
            "json",
            "--output",
            str(tmp_path / "said.json"),
            "--",
        ]
        command += [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        job = subprocess.Popen(
            [*command, str(script), fault], env={**os.environ, **variables}, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        jobs.append(job)
        return job

    yield begin
    for job in jobs:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()


def said(folder, kind=None):
    """The form for programs, as soon as it is of that kind."""
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        try:
            found = json.loads((folder / "said.json").read_bytes())
        except (OSError, ValueError):
            found = None
        if found is not None and kind in (None, found["verdict"]["kind"]):
            return found
        time.sleep(0.2)
    raise AssertionError(f"no verdict {kind} within {LIMIT} s")


def without_seconds(case):
    """Case that does not say how long anybody waits."""
    if isinstance(case, dict):
        return {name: without_seconds(part) for name, part in case.items() if name != "seconds"}
    if isinstance(case, list):
        return [without_seconds(part) for part in case]
    return re.sub(r" for \d+ s\b", "", case) if isinstance(case, str) else case


def ranks(folder):
    """Rank -> process."""
    rows = [json.loads(path.read_bytes()) for path in (folder / "run" / "ranks").glob("*.json")]
    return {row["rank"]: row["pid"] for row in rows}


@pytest.mark.parametrize("way", ["SIGINT", "SIGTERM", "a rank is killed", "time-out"])
def test_a_hang_that_was_measured_is_the_verdict_however_the_job_ends(start, tmp_path, way):
    """Kind, ranks and place before the end are those after it, and the symptom is a hang."""
    job = start("sleep", TIMEOUT="25" if way == "time-out" else "100")
    before = said(tmp_path, "not_arrived")
    if way == "a rank is killed":
        os.kill(ranks(tmp_path)[0], signal.SIGKILL)
    elif way != "time-out":
        job.send_signal(getattr(signal, way))
    assert job.wait(timeout=LIMIT)
    after = said(tmp_path)
    if way == "time-out":  # an open verdict is looked at again while the rank waits on
        before, after = map(without_seconds, (before, after))

    assert ("not_arrived", [1], [0]) == tuple(before["verdict"][key] for key in ("kind", "culprits", "waiting"))
    assert before["verdict"] | {"open": way != "time-out", "summary": after["verdict"]["summary"]} == after["verdict"]
    assert before["verdict"]["summary"].startswith("Slow, or hanging: rank 1 ")
    assert after["verdict"]["summary"].startswith("Slow, or hanging: " if after["verdict"]["open"] else "Rank 1 ")
    assert before["claims"] == after["claims"]
    assert (2, 2) == (after["coverage"]["ranks"], after["coverage"]["expected"])
    assert {"D.2.1"} == {found["diagnosis"]["symptoms"][0]["code"] for found in (before, after)}


def test_a_job_that_is_ended_before_the_verdict_tells_the_test_that_parted_its_ranks(start, tmp_path):
    """As by timeout(1) or a scheduler, which end the launcher and the ranks at once: nobody can be asked then."""
    job, until = start("leaves", "--hang-after", "100"), time.monotonic() + LIMIT
    while len(list((tmp_path / "run" / "flight").glob("*"))) < 1 and time.monotonic() < until:
        time.sleep(0.2)  # it asks for dumps when nothing has moved for a while
    time.sleep(5)  # records are written again every two seconds, without what only a question brings
    os.killpg(job.pid, signal.SIGTERM)
    job.wait(timeout=LIMIT)

    headline = said(tmp_path)["answer"]["headline"]
    assert headline == "Only rank 1 passes `rank + 1 > 1` (train.py:41)."


def test_a_job_that_is_slow_is_not_ended(start, tmp_path):
    """A checkpoint on a slow disk, a slow import, and computing on all ranks, each longer than the limit."""
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "slow_to_import.py").write_text("import time\ntime.sleep(8)\n")
    job = start("slow", "--stop-on-hang", PYTHONPATH=str(package))

    assert 0 == job.wait(timeout=LIMIT)
    found = said(tmp_path)
    assert ("none", []) == (found["verdict"]["kind"], found["verdict"]["culprits"])
    assert (2, 2) == (found["coverage"]["ranks"], found["coverage"]["expected"])


def test_what_nothing_explains_is_not_understood_and_ended_only_if_asked_for_by_name(start, tmp_path):
    """Both ranks wait for a queue that nobody fills: where each is, is all there is to say."""
    job = start("idle", "--stop-on-not-understood")

    assert 124 == job.wait(timeout=LIMIT)
    found = said(tmp_path)
    assert ("not_understood", [], [0, 1]) == tuple(found["verdict"][key] for key in ("kind", "culprits", "waiting"))
    assert any(" in wait_for_nothing" in claim["text"] for claim in found["claims"])
    assert found["next"] == ""  # nobody can look into a job that was ended


def test_a_rank_that_hangs_before_any_group_exists_is_seen_though_it_computed_at_the_first_look(start, tmp_path):
    """The other waits in the set-up; no counter exists yet, and what was busy then may hang ever since."""
    job, until = start("early", "--stop-on-hang"), time.monotonic() + LIMIT
    while "computing" in (found := said(tmp_path, "not_arrived"))["verdict"]["summary"] and time.monotonic() < until:
        time.sleep(0.2)

    assert ("not_arrived", [1], [0]) == tuple(found["verdict"][key] for key in ("kind", "culprits", "waiting"))
    assert found["verdict"]["summary"].startswith("Slow, or hanging: rank 1 ")
    assert job.poll() is None  # what it waits for may still come
    assert all("uses the CPU" not in claim["text"] for claim in found["claims"])


@pytest.mark.parametrize(("fault", "wait"), [("left", "barrier"), ("gathers", "all_gather")])
def test_a_rank_that_finished_while_others_need_it_has_left(start, tmp_path, fault, wait):
    """It has not died; the place is where it ended its program."""
    job = start(fault)

    assert 1 == job.wait(timeout=LIMIT)
    found = said(tmp_path)
    assert ("left", [1], [0]) == tuple(found["verdict"][key] for key in ("kind", "culprits", "waiting"))
    assert found["verdict"]["summary"].startswith("Rank 1 ended its program by sys.exit(0) at ")
    assert "sys.exit(0)" == JOB.splitlines()[found["verdict"]["where"]["line"] - 1].strip()
    waits = [claim for claim in found["claims"] if claim["what"] == "waits"]
    assert not waits or wait in waits[0]["op"]
    assert {"left", "raised"} <= {claim["what"] for claim in found["claims"]}
