"""`dtdebug triage --engine`: on clusters the same findings as here, with workers that die and parts that are lost."""

import os
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from places import TESTS

from dtdebug.errors import UsageError
from dtdebug.recorded.job_logs import workers
from dtdebug.recorded.job_logs.job_view import view
from dtdebug.recorded.job_logs.part import Part, merge
from dtdebug.recorded.job_logs.rank_from_path import LogOwner, of_paths
from dtdebug.recorded.job_logs.workers import parts, work
from dtdebug.recorded.log_files.sources import LogSource, find_logs

RANKS, CULPRIT, LOST = 6, 4, 2
LATE = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    for rank in range(RANKS):
        rows = [f"2026-01-05 10:00:{s:02d} step {s} loss 2.1" for s in range(20)]
        rows += [
            "Traceback (most recent call last):",
            '  File "/work/train.py", line 9, in <module>',
            "    step(batch)",
        ]
        rows += [f"KeyError: 'label {rank}'" if rank == CULPRIT else LATE]
        (folder / f"rank_{rank}.log").write_text("\n".join(rows) + "\n")
    return folder


def read(logs: Path, where: str, task=work) -> Part:
    sources, _ = find_logs([str(logs)])
    return merge(part for part, _ in parts(sources, of_paths([s.name for s in sources]), where, task=task))


def dies_once(marker: str, logs: Sequence[LogSource], whose: Sequence[LogOwner]) -> bytes:
    """The task on a worker that is killed in the first one."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return work(logs, whose)
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def dies_over(name: str, logs: Sequence[LogSource], whose: Sequence[LogOwner]) -> bytes:
    """The task on workers that are killed each time that they read one of the logs."""
    if any(s.name.endswith(name) for s in logs):
        os.kill(os.getpid(), signal.SIGKILL)
    return work(logs, whose)


def on_dask(logs: Path, died: Path) -> None:
    """All of it on a real cluster, in a process of its own, which ends in time or is ended."""
    import distributed
    from dask import config

    settings = {
        "distributed.scheduler.allowed-failures": 1,
        "distributed.scheduler.worker-saturation": 1.0,  # one task a worker: none is blamed for the death of another
    }
    with (
        config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", silence_logs=50
        ) as cluster,
    ):
        dask = cluster.scheduler_address.replace("tcp://", "dask://")
        here = view(read(logs, "processes"))
        whole = read(logs, dask, partial(dies_once, str(died)))
        assert died.exists()
        assert whole.unread == []
        job = view(whole)
        assert [row.rank for row in job.first] == [row.rank for row in here.first] == [CULPRIT]
        assert (job.ranks, job.files, job.size, job.cascade) == (here.ranks, here.files, here.size, here.cascade)

        part = read(logs, dask, partial(dies_over, f"rank_{LOST}.log"))
        assert len(part.unread) == 1, part.unread
        assert f"rank_{LOST}.log: its part was lost on the cluster" in part.unread[0]
        assert view(part).absent == (LOST,)
        assert view(part).first[0].rank == CULPRIT

        cluster.scale(0)
        workers._ALONE = 1.0
        part = read(logs, dask)
        assert len(part.unread) == RANKS, part.unread
        assert "its part was lost on the cluster (ConnectionError: no worker for 1 s)" in part.unread[0]
        print("* all held", flush=True)


@pytest.mark.engines
def test_a_worker_that_dies_counts_nothing_twice_and_a_lost_part_is_named(own_group, logs, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setenv("PYTHONPATH", f"{TESTS}{os.pathsep}{Path(__file__).parent}")
    call = f"cases.on_dask(cases.Path({str(logs)!r}), cases.Path({str(tmp_path / 'died')!r}))"
    assert own_group(f"import test_triage_engines as cases\n{call}", 240) == ["* all held"]


RAY = """
import os, ray
from functools import partial
from pathlib import Path
import test_triage_engines as cases
from dtdebug.recorded.job_logs.job_view import view

try:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000)
except Exception as error:
    print("* Ray does not start here:", str(error).splitlines()[0], flush=True)
    os._exit(0)
logs, died = Path(LOGS), DIED
whole = cases.read(logs, "ray://auto", partial(cases.dies_once, died))
job = view(whole)
print("*", Path(died).exists(), whole.unread, [row.rank for row in job.first], job.ranks, job.files, flush=True)
part = cases.read(logs, "ray://auto", partial(cases.dies_over, f"rank_{cases.LOST}.log"))
job = view(part)
print("*", part.unread, job.absent, [row.rank for row in job.first], flush=True)
ray.shutdown()
"""


SLOW = {
    "raylet_start_wait_time_s": "200", "agent_register_timeout_ms": "200000", "worker_register_timeout_seconds": "200",
    "health_check_timeout_ms": "100000", "AUTH_MODE": "disabled",
}  # fmt: skip
"""What Ray may take on a loaded machine; it gives itself 30 s to start."""


@pytest.mark.engines
def test_ray_does_the_task_of_a_worker_that_died_again_and_a_lost_part_is_named(own_group, logs, tmp_path, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", f"{TESTS}{os.pathsep}{Path(__file__).parent}")
    for name, value in SLOW.items():
        monkeypatch.setenv(f"RAY_{name}", value)
    code = RAY.replace("LOGS", repr(str(logs))).replace("DIED", repr(str(tmp_path / "died")))
    lines = own_group(code, 400)
    if lines[0].startswith("* Ray does not start"):
        pytest.skip(lines[0])
    whole, part = lines
    assert whole == f"* True [] [{CULPRIT}] {RANKS} {RANKS}"
    assert f"rank_{LOST}.log: its part was lost on the cluster (WorkerCrashedError" in part
    assert part.endswith(f"({LOST},) [{CULPRIT}]")


@pytest.mark.parametrize("where", ["spark://x", "dask", "dask://", "ray://", "processes://x"])
def test_an_engine_that_is_none_gets_one_clear_line(where, logs):
    with pytest.raises(UsageError, match="--engine"):
        read(logs, where)
