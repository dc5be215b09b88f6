"""Ranks on an engine that the user has already: one worker is stuck, and both say or show where they are."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from dtdebug.live.probe import pyspy
from dtdebug.live.probe.adapters import mpi
from dtdebug.notebook import jupyter_distributed
from dtdebug_taxonomy.model.ranks import RankState

needs_py_spy = pytest.mark.skipif(pyspy._program() is None, reason="py-spy is not installed")


SHOW = """
def show(states):
    for s in states:
        print("*", s.facts.get("engine") or s.facts.get("worker", ""), s.stack[-1].function if s.stack else "-",
              s.gil_held, ";".join(f"{a}={b}" for a, b in s.roads.items()), flush=True)
"""

DASK = (
    SHOW
    + """
import ctypes, time
from distributed import Client, LocalCluster
from dtdebug.live.probe.adapters import dask

def stuck():
    time.sleep(60)

def holds():
    ctypes.PyDLL(None).sleep(60)

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        look = dask.reach(client)
        one, two = client.scheduler_info()["workers"]
        client.submit(stuck, workers=[two], pure=False)
        kept = client.submit(stuck, workers=[two], pure=False)
        time.sleep(0.5)
        show(look(10.0))
        held = client.submit(holds, workers=[one], pure=False)
        time.sleep(0.5)
        show(look(10.0)[:1])
        import os, signal
        for worker in cluster.workers.values():
            os.kill(worker.pid, signal.SIGKILL)
        os._exit(0)
"""
)


@pytest.mark.engines
@needs_py_spy
def test_dask_workers_answer_beside_a_stuck_task_and_their_nanny_where_they_can_not(own_group, tmp_path):
    pytest.importorskip("distributed")
    script = tmp_path / "job.py"  # workers are spawned: they import the script by its path
    script.write_text(DASK)
    free, stuck, held = own_group(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    assert " - False dask worker=ok" in free
    assert " stuck False dask worker=ok" in stuck
    assert " True dask worker=" in held
    assert held.endswith("dask nanny=ok;py-spy=ok")


RAY = (
    SHOW
    + """
import os, time, ray
from dtdebug.live.probe.adapters import ray as adapter

try:
    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, _system_config={"enable_metrics_collection": False}
    )
except Exception as error:
    print("* Ray does not start here:", str(error).splitlines()[0], flush=True)
    os._exit(0)

@ray.remote
def stuck():
    time.sleep(60)

@ray.remote
class Trainer:
    def fit(self):
        time.sleep(60)

trainer = Trainer.remote()
tasks = [stuck.remote(), trainer.fit.remote()]
look = adapter.reach(ray)
for _ in range(100):
    seen = {s.stack[-1].function for s in look(5.0) if s.stack}
    if {"stuck", "fit"} <= seen:
        break
    time.sleep(0.2)
show(look(10.0))
adapter._raylet = lambda node: None  # as on another node: a task looks
show(look(30.0))
ray.shutdown()
"""
)


@pytest.mark.engines
@needs_py_spy
def test_ray_workers_are_looked_at_on_this_node_and_by_a_task_on_others(own_group):
    pytest.importorskip("ray")
    lines = own_group(RAY)
    if lines[0].startswith("* Ray does not start"):  # it gives itself 30 s, which a loaded machine may not have
        pytest.skip(lines[0])
    here, there = lines[:2], lines[2:]
    assert {("ray::Trainer.fit", "fit"), ("ray::stuck", "stuck")} == {tuple(line.split()[1:3]) for line in here}
    assert {("ray::Trainer.fit", "fit"), ("ray::stuck", "stuck")} == {tuple(line.split()[1:3]) for line in there}
    assert all(line.endswith("ray task=ok;py-spy=ok") for line in there)


IPYPARALLEL = (
    SHOW
    + """
import os, time
import ipyparallel
from dtdebug.live.probe.adapters import ipyparallel as adapter

def stuck():
    import time
    time.sleep(60)

cluster = ipyparallel.Cluster(n=2, log_level=40, profile_dir=PROFILE)
client = cluster.start_and_connect_sync()
client.wait_for_engines(2, timeout=60)
early = adapter.reach(client)
client[1].apply_async(stuck)
time.sleep(0.5)
show(early(5.0))
late = adapter.reach(client)
show(late(5.0))
client[0].apply_async(stuck)
time.sleep(0.5)
show(late(5.0))
show(adapter.reach(client)(5.0))
import psutil
for each in psutil.Process().children(recursive=True):
    each.kill()
os._exit(0)
"""
)


@pytest.mark.engines
@needs_py_spy
def test_a_stuck_engine_of_ipyparallel_is_looked_at_from_outside(own_group, tmp_path):
    pytest.importorskip("ipyparallel")
    lines = own_group(f"PROFILE = {str(tmp_path)!r}\n" + IPYPARALLEL)
    busy = "stuck False ipyparallel=is busy;py-spy=ok"
    assert ["* 0 - False ipyparallel=ok", f"* 1 {busy}"] * 2 == lines[:4]
    assert f"* 0 {busy}" == lines[4]
    unknown = "- False ipyparallel=is busy and its process is not known"
    assert [f"* 0 {unknown}", f"* 1 {unknown}"] == lines[6:]


WAITS = "import time\ndef waits():\n    time.sleep(60)\nprint(1, flush=True)\nwaits()"


@needs_py_spy
def test_ranks_of_an_mpi_job_are_found_by_the_environment_of_their_launcher():
    started = []
    try:
        for job, rank in (("job-1", 0), ("job-1", 1), ("job-2", 0)):
            environment = {"PMIX_NAMESPACE": job, "PMIX_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2"}
            started.append(
                subprocess.Popen(
                    [sys.executable, "-c", WAITS],
                    env=os.environ | environment,
                    stdout=subprocess.PIPE,
                    start_new_session=True,
                )
            )
            started[-1].stdout.readline()
        states = mpi.reach(like=started[0].pid)(10.0)
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert [(0, 2, started[0].pid), (1, 2, started[1].pid)] == [(s.rank, s.world_size, s.pid) for s in states]
    assert ["waits", "waits"] == [state.stack[-1].function for state in states]


def test_of_a_communicator_only_its_size_is_asked():
    class Comm:
        def Get_size(self):
            return 4

    assert [] == mpi.reach(Comm())(1.0)


def test_the_hosts_of_a_job_are_read_as_its_scheduler_names_them(tmp_path):
    file = tmp_path / "nodes"
    file.write_text("n1\nn1\nn2 slots=4\n\n")
    assert ["n1", "n2"] == mpi.hosts({"PBS_NODEFILE": str(file)})
    assert ["n1", "n2", "n3", "m007", "m008", "login"] == mpi.hosts({"SLURM_JOB_NODELIST": "n[1-2,3],m[007-008],login"})
    assert ["a1-ib", "a2-ib", "b"] == mpi.hosts({"SLURM_NODELIST": "a[1-2]-ib,b"})
    assert ["x", "y"] == mpi.hosts({"LSB_HOSTS": "x x y", "PE_HOSTFILE": str(tmp_path / "none")})
    assert [] == mpi.hosts({})
    assert mpi._MOST_HOSTS >= len(mpi.hosts({"SLURM_NODELIST": "n[1-999999999]"}))
    assert [] == mpi.hosts({"SLURM_NODELIST": "n[x-y]"})


@pytest.mark.kernel
@needs_py_spy
def test_a_child_kernel_that_does_not_answer_is_looked_at_from_outside(tmp_path):
    manager = pytest.importorskip("jupyter_client").KernelManager(
        kernel_name="python3", connection_file=str(tmp_path / "kernel-rank-0.json")
    )
    manager.start_kernel(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    client = manager.blocking_client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=60)
        client.execute(
            "import ctypes\nprint('begins', flush=True)\nimport time; time.sleep(1)\nctypes.PyDLL(None).sleep(60)"
        )
        while client.get_iopub_msg(timeout=30)["msg_type"] != "stream":
            pass
        time.sleep(0.3)
        look = jupyter_distributed.reach([manager.connection_file, tmp_path / "kernel-rank-1.json"])
        first, second = look(20.0)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert (0, "ok", socket.gethostname()) == (first.rank, first.roads["py-spy"], first.host)
    assert "does not answer" == first.roads["control channel"]
    assert "<module>" == first.stack[-1].function
    assert RankState(rank=1, roads={"control channel": "no kernel with that connection file runs here"}) == second
