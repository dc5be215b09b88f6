"""Other ways to the hosts: srun and kubectl, a shared folder where they do not meet; and much data between them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import doctor_lab
import hosts_lab
import pytest

pytestmark = [
    pytest.mark.skipif(bool(hosts_lab.can_be_made()), reason=hosts_lab.can_be_made()),
    pytest.mark.skipif(bool(doctor_lab.can_filter()), reason=doctor_lab.can_filter()),
]
STARTS = """
case "$name" in h[0-9]) ;; *) echo "{refuses}" >&2; exit 1;; esac
exec ip netns exec {prefix}${{name#h}} unshare --uts sh -c 'hostname "$0"; exec "$@"' "$name" "$@"
"""
SRUN = """#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in --nodelist=*) name="${1#--nodelist=}";; -*) ;; *) break;; esac
  shift
done
"""
KUBECTL = """#!/bin/sh
[ "$1" = exec ] || exit 64
shift
while [ $# -gt 0 ]; do
  case "$1" in --) shift; break;; -*) ;; *) name="$1";; esac
  shift
done
"""
WAYS = {
    "srun": (SRUN, "srun: error: Unable to create step for job 7: Requested node configuration is not available"),
    "kubectl": (KUBECTL, "Error from server (NotFound): pods not found"),
}


@pytest.mark.parametrize("via", WAYS)
def test_srun_and_kubectl_start_doctors_that_meet(via, tmp_path):
    """Stand-ins for the commands take the options of the real ones and start real processes on three hosts."""
    head, refuses = WAYS[via]
    with doctor_lab.Lab(tmp_path, count=3) as lab:
        command = tmp_path / via
        command.write_text(head + STARTS.format(prefix=lab._prefix, refuses=refuses))
        command.chmod(0o755)
        (tmp_path / "of-hosts").write_text("h0\nh1\nh2\ngone\n")
        words = ["doctor", "--hosts", "of-hosts", "--via", via, "--wait", "3", "--format", "json", "--"]
        job = ["torchrun", "--nnodes", "3", "--master-addr", "h0", "train.py"]
        place = os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]])
        variables = os.environ | {"PATH": place, "SLURM_JOB_ID": "7"}
        done = subprocess.run(
            [sys.executable, "-m", "dtdebug", *words, *job],
            cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip
    report = json.loads(done.stdout)
    assert {row["host"] for row in report["hosts"] if row["came"]} == {"h0", "h1", "h2"}
    assert report["forecast"]["gloo"] == "connects"
    assert {"id": "host gone", "why": refuses} in report["not_examined"]
    assert len(report["matrix"]["hosts"]) == 3


def test_hosts_that_cannot_meet_are_heard_in_the_shared_folder(tmp_path):
    """One was started with another port: all hosts say so, it too, and nothing is left in the folder."""
    with doctor_lab.Lab(tmp_path, count=3) as lab:
        shared = tmp_path / "of-shared"
        shared.mkdir()
        found = lab.doctors("--folder", str(shared), "--wait", "2", launches={1: {"port": 29501}})
        assert list(shared.iterdir()) == []
    for host, (report, status) in found.items():
        assert status == 1, host
        named = [f for f in report["findings"] if f["id"] == "DR208"]
        assert [f["hosts"] for f in named] == [["h1"]], host
        assert "29501" in named[0]["text"]


@pytest.mark.flaky(reruns=1)
def test_much_data_names_the_host_where_it_is_lost(tmp_path):
    """2 % of what comes in at one host is dropped: the kernel's own count of segments sent again shows it."""
    with doctor_lab.Lab(tmp_path, count=4) as lab:
        lab.filter(2, "meta l4proto tcp numgen random mod 1000 < 20 drop")
        for _ in range(3):  # on a machine that is busy enough nothing comes through to be counted
            report, status = lab.doctors("--heavy")[0]
            lossy = [f for f in report["findings"] if f["id"] == "DR306"]
            if lossy:
                break
    assert [f["hosts"] for f in lossy] == [["h2"]]
    assert status == 0
    assert len(report["matrix"]["rates"]) == 8


RAY = """
import subprocess, threading
from concurrent.futures import ThreadPoolExecutor
POOL = ThreadPoolExecutor(8)
def init(address, **more):
    assert address == "10.219.37.1:6379"
def nodes():
    alive = [{{"NodeID": str(i), "NodeManagerAddress": f"10.219.37.{{i + 1}}", "Alive": True}} for i in (1, 0, 2)]
    return [*alive, {{"NodeID": "9", "NodeManagerAddress": "10.219.37.9", "Alive": False}}]
class Task:
    def __init__(self, function, node=None):
        self.function, self.node = function, node
    def options(self, num_cpus, max_retries, scheduling_strategy):
        return Task(self.function, scheduling_strategy.node_id)
    def remote(self, *arguments):
        if arguments:
            name = f"hostname h{{self.node}}; exec \\"$@\\""
            start = ["ip", "netns", "exec", "{prefix}" + self.node, "unshare", "--uts", "sh", "-c", name, "sh"]
            arguments = ([*start, *arguments[0]], *arguments[1:])
        return POOL.submit(self.function, *arguments)
remote = Task
def get(task, timeout):
    return task.result(timeout)
"""
STRATEGY = """
class NodeAffinitySchedulingStrategy:
    def __init__(self, node_id, soft):
        self.node_id = node_id
"""


def test_nodes_of_a_ray_cluster_are_examined_by_tasks_on_them(tmp_path):
    """A stand-in for Ray runs the tasks as real processes on three hosts; they meet at the first node's address."""
    with doctor_lab.Lab(tmp_path, count=3) as lab:
        for name, text in (("__init__", RAY), ("util/__init__", ""), ("util/scheduling_strategies", STRATEGY)):
            path = tmp_path / "of-modules" / "ray" / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.format(prefix=lab._prefix))
        lab.filter(1, f"ip saddr {lab.net}.3 drop")
        lab.filter(2, f"ip saddr {lab.net}.2 drop")
        place = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        variables = os.environ | {
            "PATH": place, "PYTHONPATH": str(tmp_path / "of-modules"), "RAY_ADDRESS": "10.219.37.1:6379",
        }  # fmt: skip
        words = ["doctor", "--via", "ray", "--wait", "4", "--format", "json", "--", sys.executable, "train.py"]
        done = subprocess.run(
            [sys.executable, "-m", "dtdebug", *words],
            cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip
    report = json.loads(done.stdout)
    assert [row["host"] for row in report["hosts"] if row["came"]] == ["h0", "h1", "h2"]
    assert [(f["id"], sorted(f["hosts"])) for f in report["findings"]] == [("DR301", ["h1", "h2"])]
    assert done.returncode == 1
