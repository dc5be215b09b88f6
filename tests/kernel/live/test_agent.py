"""The agent of a rank: who is one, what its record says, and that the job does not notice."""

import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from dtdebug import arm
from dtdebug.live.agent import arm as agent_arm
from dtdebug.live.agent import (
    endpoint,
    fatal_signals,
    membership,
    own_frames,
    own_state,
    pending_operation,
    recorder_status,
)
from dtdebug.live.probe import channels
from dtdebug.process.thread_frames import frames_of
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.ranks import EXITED, FINISHED, Frame
from dtdebug_taxonomy.stacks.frames import own_frame

SECONDS = 40
BOOTSTRAP = agent_arm.BOOTSTRAP
GROUP = "import torch, torch.distributed as dist\ndist.init_process_group('gloo')\n"
WAITS = "import os, time\nwhile not os.path.exists(os.environ['GO']): time.sleep(0.02)\n"
TRAINING = """
import os, sys, time
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

def loader(how):
    data = TensorDataset(torch.zeros(101, 2))
    return DataLoader(data, batch_size=4, sampler=DistributedSampler(data), num_workers=1,
                      multiprocessing_context=how, persistent_workers=True)

def train(group):
    batches = loader("fork")
    if dist.get_rank() == 0:
        kept = iter(loader("spawn"))
        next(kept)
    for step, _ in enumerate(batches):
        dist.all_reduce(torch.ones(3))
        if step == 3:
            break
    while dist.get_rank() == 1 and not os.path.exists(os.environ["GO"]):
        time.sleep(0.02)
    dist.broadcast(torch.ones(2, 5), src=1, group=group)

if __name__ == "__main__":
    dist.init_process_group("gloo")
    dist.new_group([0])
    train(dist.new_group([0, 1], group_desc="tp"))
    dist.destroy_process_group()
    print("trained")
"""
LAUNCHED = """
import os, sys, time
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

def work(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    dist.all_reduce(torch.ones(1))
    while not os.path.exists(os.environ["GO"]):
        time.sleep(0.02)

if __name__ == "__main__":
    mp.start_processes(work, args=(sys.argv[1],), nprocs=2, start_method=sys.argv[2])
"""


def ranks(test):
    """Marks a test that starts ranks."""
    return pytest.mark.ranks(pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")(test))


class Job:
    """Processes with an armed environment, ended with the test."""

    def __init__(self, folder):
        self.folder = folder
        self.go = folder.path / "go"
        self.started = []

    def start(self, *command, **variables):
        """Starts a Python program with these arguments."""
        own = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "PYTHONPATH")}
        given = {
            **own,
            **agent_arm.arming_variables(self.folder),
            "GO": str(self.go),
            "OMP_NUM_THREADS": "1",
            **variables,
        }
        process = subprocess.Popen(
            [sys.executable, *command],
            env=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def rank(self, script, **variables):
        """Starts the only rank of a job."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        one = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        return self.start("-c", script, **one, **variables)

    def records(self):
        """The records by rank."""
        return {record.rank: record for record in self.folder.records()}

    def until(self, holds):
        """Waits until something holds of the records; what it returned."""
        deadline = time.monotonic() + SECONDS
        while not (found := holds(self.records())):
            assert time.monotonic() < deadline, self.records()
            dead = [p for p in self.started if p.poll()]
            assert not dead, dead[0].communicate()
            time.sleep(0.05)
        return found

    def end(self):
        """Ends what is left of it."""
        for process in self.started:
            with contextlib.suppress(psutil.Error):
                top = psutil.Process(process.pid)
                for each in (*top.children(recursive=True), top):  # torchrun gives each rank a session of its own
                    each.kill()
            process.communicate(timeout=SECONDS)


@pytest.fixture
def job(tmp_path, monkeypatch):
    """An armed job."""
    for name in (endpoint.TOKEN, endpoint.BIND, membership.MARK, "DTDEBUG_RUN", "TORCH_FR_DUMP_TEMP_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    made = Job(RunFolder.make(tmp_path / ("long" * 30) / "runs"))  # longer than the address of a socket can be
    yield made
    made.end()
    assert [] == [*tmp_path.glob("dtdebug-*")]  # killed, no rank leaves anything among the temporary files


def soon():
    """A deadline for one question."""
    return time.monotonic() + 20


@ranks
def test_a_rank_that_waits_says_for_what_and_its_job_prints_what_it_always_did(job, tmp_path):
    """Under torchrun: operation, root, place, step, data; neither launcher nor data-loader workers pose as ranks."""
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    launcher = job.start("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script))
    counted = (4, 4), (1, 0)

    def waits(found):
        return 0 in found and 1 in found and tuple((g.enqueued, g.completed) for g in found[0].groups[::2]) == counted

    job.until(waits)
    request = job.folder.request()
    state = job.until(lambda found: [s for s in found.values() if s.facts.get("asked") == str(request)][1:] and found)
    token = endpoint.token(job.folder.path)
    asked = channels.endpoint(state[0].facts["endpoint"], token, soon())
    with pytest.raises(channels.RoadError, match="401"):
        channels.endpoint(state[0].facts["endpoint"], token + "x", soon())
    with pytest.raises(channels.RoadError, match="401"):
        channels.endpoint(state[0].facts["endpoint"], "", soon())
    trace = json.loads(channels.trace(Path(state[0].facts["worker_server"]), soon()))
    dumps = job.until(lambda _: [f for f in job.folder.flight.iterdir() if not f.name.startswith(".")][1:] and True)
    job.go.touch()
    out, err = launcher.communicate(timeout=SECONDS)

    for seen in (state[0], asked):
        assert ("broadcast", "2", 1, 1) == (seen.pending.op, seen.pending.group, seen.pending.seq, seen.pending.peer)
        assert ((2, 5),) == seen.pending.input_sizes
        assert 3 == seen.step
        assert ("main", "train") == ("main", [f.function for f in seen.stack if f.file == str(script)][-1])
        assert "dist.broadcast(torch.ones(2, 5), src=1, group=group)" in [f.code for f in seen.stack]
    assert state[1].pending is None
    assert "time.sleep(0.02)" == state[1].stack[-1].code
    assert [("0", "default_pg", (0, 1)), ("1", "", (0,)), ("2", "tp", (0, 1))] == [
        (g.name, g.desc, g.ranks) for g in state[0].groups
    ]
    assert {"gloo"} == {g.backend for g in state[0].groups}
    assert {"dataset length": "101", "samples": "51", "batches": "13", "batch size": "4", "loader workers": "1"} == {
        name: state[0].facts[name] for name in ("dataset length", "samples", "batches", "batch size", "loader workers")
    }
    assert "gloo:broadcast" == trace["entries"][-1]["profiling_name"]
    assert dumps
    assert (0, ["trained", "trained"], "") == (launcher.returncode, out.split(), err)
    assert [False, False] == [s.alive for s in job.records().values()]
    assert 2 == len(list(job.folder.records()))
    assert [5, 1] == [g.enqueued + (g.name == "0") for g in job.records()[0].groups][::2]
    assert not list(job.folder.ranks.glob("*.sock"))


@ranks
@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_children_that_set_up_their_group_themselves_are_ranks_and_their_parent_is_none(job, tmp_path, how):
    """Started by torch.multiprocessing, as notebook_launcher and mp.spawn do, without RANK in the environment."""
    script = tmp_path / "launched.py"
    script.write_text(LAUNCHED)
    process = job.start(str(script), str(tmp_path / "store"), how)
    job.until(lambda found: {0, 1} <= {rank for rank in found if found[rank].initialized})
    job.go.touch()
    _, err = process.communicate(timeout=SECONDS)

    assert (0, "") == (process.returncode, err)
    assert {process.pid} == {state.parent for state in job.folder.records()}
    assert [2, 2] == [state.world_size for state in job.folder.records()]


@ranks
def test_a_rank_that_never_gets_into_its_group_is_known_by_the_attempt(job):
    """Its number stands in the arguments of init_process_group alone."""
    call = "dist.init_process_group('gloo', init_method='tcp://127.0.0.1:1', rank=1, world_size=2)"
    job.start("-c", f"import torch, torch.distributed as dist\n{call}")
    state = job.until(lambda found: found.get(1))

    assert (2, False) == (state.world_size, state.initialized)
    assert "init_process_group" in [frame.function for frame in state.stack]


@ranks
def test_a_held_interpreter_lock_leaves_the_roads_that_do_without(job):
    """The worker server and faulthandler answer, the endpoint does not."""
    holds = "import ctypes\ndef holds():\n    lock = ctypes.create_string_buffer(64)\n"
    holds += "    [ctypes.PyDLL(None).pthread_mutex_lock(lock) for _ in 'ab']\nholds()"  # no signal ends that
    process = job.rank(GROUP + WAITS + holds)
    facts = job.until(lambda found: 0 in found and found[0].initialized and found[0].facts)
    job.go.touch()
    token, traced = endpoint.token(job.folder.path), Path(facts["faulthandler"])
    deadline = soon()
    while time.monotonic() < deadline:
        try:
            channels.endpoint(facts["endpoint"], token, time.monotonic() + 1)
        except channels.RoadError:
            break
    channels.ping(Path(facts["worker_server"]), soon())
    while "in holds" not in traced.read_text() and time.monotonic() < deadline:
        process.send_signal(signal.SIGUSR1)
        time.sleep(0.1)

    with pytest.raises(channels.RoadError, match="no answer"):
        channels.endpoint(facts["endpoint"], token, time.monotonic() + 1)
    assert "in holds" in traced.read_text()
    assert process.poll() is None


@ranks
@pytest.mark.parametrize("hook", ["", "import sys; sys.excepthook = lambda *_: print('another hook')"])
def test_the_record_says_what_ended_the_main_thread_and_where(job, hook):
    """After the traceback has been printed as always, also where another hook was put in the place of ours."""
    thread = "import threading\nt = threading.Thread(target=lambda: {}['x'], name='feed')\nt.start()\nt.join()"
    failing = "class Broken(Exception): pass\ndef step():\n    raise Broken('a\\nb')\nstep()"
    process = job.rank(f"{GROUP}{hook}\n{thread}\n{failing}")
    out, err = process.communicate(timeout=SECONDS)
    (state,) = job.folder.records()

    assert 1 == process.returncode
    assert "another hook" in out if hook else "[rank0]: Broken: a" in err
    assert ("Broken: a", 1, False) == (state.exception, state.exit_code, state.alive)
    assert ["<module>", "step"] == [frame.function for frame in state.stack]
    assert [("feed", "KeyError: 'x'", "<lambda>")] == [
        (b.thread, b.exception, b.stack[-1].function) for b in state.broken
    ]
    assert (job.folder.flight / "rank_0").exists()


def test_an_exception_that_the_main_thread_still_handles_is_read_from_another_thread():
    """Nothing prints it while a `finally` waits for the other ranks."""
    with ThreadPoolExecutor(1) as pool:
        try:
            raise KeyError("trunk")
        except KeyError:
            found = pool.submit(own_state._handling).result()
        assert pool.submit(own_state._handling).result() is None

    assert ("KeyError: 'trunk'", Path(__file__).name) == (found.exception, Path(found.stack[-1].file).name)


ENDS = """
import atexit, os, sys, time
while not os.listdir(os.path.join(os.environ["DTDEBUG_RUN"], "ranks")): time.sleep(0.05)
LOST = "raise RuntimeError('[/x/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:2')"
class Empty(Exception): pass
def left():
    sys.exit(0)
def coded():
    os._exit(7)
def quits():
    exit(4)
def raises():
    raise SystemExit(5)
def parses():
    import argparse
    argparse.ArgumentParser().parse_args(["--lr"])
def said():
    sys.exit("budget used up")
def handled():
    try:
        raise Empty("no vocabulary")
    except Empty:
        sys.exit(2)
def cleans():
    try:
        raise Empty("no vocabulary")
    finally:
        exec(compile(LOST, "/x/site-packages/torch/distributed/distributed_c10d.py", "exec"))
%s()
"""


@pytest.mark.parametrize(
    ("how", "code", "said", "call", "last"),
    [
        ("left", 0, "", "sys.exit(0)", "sys.exit(0)"),
        ("coded", 7, "", "os._exit(7)", "os._exit(7)"),
        ("quits", 4, "", "exit(4)", "exit(4)"),
        pytest.param(
            "raises",
            5,
            "",
            "raise SystemExit(5)",
            "raise SystemExit(5)",
            marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="nothing tells of it there"),
        ),
        (
            "parses",
            2,
            "SystemExit: train.py: error: unrecognized arguments: --lr",
            None,
            'argparse.ArgumentParser().parse_args(["--lr"])',
        ),
        ("said", 1, "SystemExit: budget used up", None, 'sys.exit("budget used up")'),
        ("handled", 2, "Empty: no vocabulary", None, 'raise Empty("no vocabulary")'),
        ("cleans", 1, "Empty: no vocabulary", None, 'raise Empty("no vocabulary")'),
    ],
)
def test_the_record_says_where_the_program_ended_itself(job, tmp_path, how, code, said, call, last):
    """No hook of Python hears of `sys.exit` and `os._exit`; of a chain the first failure counts, not the lost peer."""
    script = tmp_path / "train.py"
    script.write_text(ENDS % how)
    process = job.start(str(script), RANK="0", WORLD_SIZE="1")
    process.communicate(timeout=SECONDS)
    (state,) = job.folder.records()

    assert (code, False) == (process.returncode, state.alive)
    assert (code, said, call) == (state.exit_code, state.exception, state.facts.get(EXITED))
    assert last == script.read_text().splitlines()[own_frame(state.stack).line - 1].strip()
    assert (FINISHED in state.facts) == (code == 0)


@ranks
def test_sigterm_leaves_the_stack_and_ends_the_process_as_ever(job):
    """That is how launchers end the ranks that are left."""
    process = job.rank(f"{GROUP}import time\ndef waits():\n    time.sleep(60)\nwaits()")
    job.until(lambda found: 0 in found and "waits" in [frame.function for frame in found[0].stack])
    process.terminate()
    process.communicate(timeout=SECONDS)

    assert -signal.SIGTERM == process.returncode
    assert "in waits" in job.folder.stack(process.pid).read_text()


@ranks
def test_a_folder_that_goes_away_is_none_of_the_jobs_business(job):
    """The agent falls silent; nothing is printed, nothing is late, nothing comes back."""
    gone = "import shutil\nshutil.rmtree(os.environ['DTDEBUG_RUN'])\ntime.sleep(1.5)\ndist.destroy_process_group()"
    process = job.rank(GROUP + WAITS + gone)
    job.until(lambda found: 0 in found and found[0].initialized)
    job.go.touch()

    assert ("", "") == process.communicate(timeout=SECONDS)
    assert 0 == process.returncode
    assert not job.folder.path.exists()


@ranks
def test_the_address_stands_in_the_jobs_store_and_the_token_does_not(job):
    """Whoever reads the store learns where to ask, and needs the folder or the environment to be answered."""
    script = "s = dist.distributed_c10d._get_default_store()\nwhile not s.check(['dtdebug/0']): pass"
    process = job.rank(f"{GROUP}{script}\nprint(s.get('dtdebug/0').decode())")
    out, err = process.communicate(timeout=SECONDS)
    (state,) = job.folder.records()

    assert (state.facts["endpoint"], "") == (out.strip(), err)


@ranks
def test_a_script_arms_itself_and_its_children(job, tmp_path):
    """Without a launcher of ours: all ranks of a launch find one folder, and a child knows of it."""
    script = "import dtdebug, os, subprocess, sys\nprint(dtdebug.arm())\nsys.stdout.flush()\n" + GROUP + WAITS
    script += "subprocess.run([sys.executable, '-c', 'import os, sys; print(os.environ[\"DTDEBUG_RUN\"]); sys.exit()'])"
    process = job.rank(script, DTDEBUG_RUN="", PYTHONPATH="", DTDEBUG_TOKEN="")
    folder = RunFolder(Path(process.stdout.readline().strip()))
    deadline = time.monotonic() + SECONDS
    while not any(state.initialized for state in folder.records()) and time.monotonic() < deadline:
        time.sleep(0.05)
    job.go.touch()
    out, err = process.communicate(timeout=SECONDS)
    (state,) = folder.records()

    assert tmp_path / "state" / "runs" == folder.path.parent
    assert (str(folder.path), "") == (out.strip(), err)
    assert process.pid == state.pid
    assert 0o700 == folder.path.stat().st_mode & 0o777


def test_the_resource_tracker_is_no_rank_whatever_its_environment_says(job):
    """It outlives what was spawned, with the variables of who spawned it."""
    name = "multiprocessing.resource_tracker"
    out, _ = job.start("-c", f"print('{name}')", RANK="0", WORLD_SIZE="1").communicate(timeout=SECONDS)

    assert name == out.strip()
    assert [] == list(job.folder.records())


def test_a_process_that_is_no_rank_imports_nothing_of_ours(job):
    """No thread, no module, no record; the search path is as it would have been."""
    ours = "[m for m in sys.modules if 'dtdebug' in m or m == 'threading']"
    script = f"import sys, json; print({ours}, {BOOTSTRAP!r} in sys.path)"
    out, err = job.start("-c", script).communicate(timeout=SECONDS)

    assert ("[] False", "") == (out.strip(), err)
    assert [] == list(job.folder.records())


@pytest.mark.parametrize("variables", [{}, {"RANK": "0", "WORLD_SIZE": "1"}])
def test_the_next_sitecustomize_is_the_one_that_counts(job, tmp_path, variables):
    """It runs, it is what `import sitecustomize` gives, and its errors are reported as ever."""
    (tmp_path / "sitecustomize.py").write_text(
        "print('theirs'); mine = 1\nimport os\nif os.environ.get('FAILS'): 1 / 0"
    )
    path = os.pathsep.join([BOOTSTRAP, str(tmp_path)])
    script = "import sitecustomize; print(sitecustomize.mine, sitecustomize.__file__)"
    done = job.start("-c", script, PYTHONPATH=path, **variables)
    failing = job.start("-c", "print(1)", PYTHONPATH=path, FAILS="1", **variables)

    assert (f"theirs\n1 {tmp_path / 'sitecustomize.py'}\n", "") == done.communicate(timeout=SECONDS)
    out, err = failing.communicate(timeout=SECONDS)
    assert "theirs\n1\n" == out
    assert "ZeroDivisionError" in err
    assert bool(variables) == bool(list(job.folder.records()))


@pytest.mark.parametrize("variables", [{}, {"RANK": "0", "WORLD_SIZE": "1"}])
def test_a_python_without_dtdebug_runs_as_ever(job, monkeypatch, variables):
    """The job's interpreter may be another one than ours."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    python = str(Path(sys.base_prefix) / "bin" / Path(sys.executable).resolve().name)
    script = "import importlib.util as u; print(u.find_spec('dtdebug'))"
    process = job.start("-c", f"import os; os.execv({python!r}, [{python!r}, '-c', {script!r}])", **variables)

    assert ("None\n", "") == process.communicate(timeout=SECONDS)


@pytest.mark.parametrize("folder", ["/nonexistent/run", "/dev/null"])
def test_a_folder_that_never_was_is_no_matter(job, folder):
    """Neither for a rank nor for who asks to be armed."""
    process = job.start(
        "-c", "import dtdebug; print(dtdebug.arm('/dev/null/x'))", DTDEBUG_RUN=folder, RANK="0", WORLD_SIZE="1"
    )

    assert ("None\n", "") == process.communicate(timeout=SECONDS)


def test_arming_twice_gives_the_same_folder_and_disarming_ends_it(job, monkeypatch):
    """In this process, which is no rank."""
    for name in ("PYTHONPATH", "TORCH_FR_DUMP_TEMP_FILE"):
        monkeypatch.setenv(name, "")
    for name in ("DTDEBUG_RUN", endpoint.TOKEN):
        monkeypatch.setenv(name, "")
    try:
        first = arm(job.folder)
        second = arm()
    finally:
        agent_arm.disarm()

    assert job.folder.path == first == second
    assert "dtdebug-agent" not in [thread.name for thread in own_frames.threading.enumerate()]


def test_the_environment_arms_children_and_leaves_the_users_choices(job, monkeypatch):
    """The token is 0600 beside the records; a dump file that the user named stays."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/mine", BOOTSTRAP]))
    plain = agent_arm.arming_variables(job.folder)
    monkeypatch.setenv("TORCH_FR_DUMP_TEMP_FILE", "/my/dumps_")
    chosen = agent_arm.arming_variables(job.folder)

    assert os.pathsep.join([BOOTSTRAP, "/mine"]) == plain["PYTHONPATH"]
    assert str(job.folder.flight / "rank_") == plain["TORCH_FR_DUMP_TEMP_FILE"]
    assert "TORCH_FR_DUMP_TEMP_FILE" not in chosen
    assert plain["DTDEBUG_TOKEN"] == chosen["DTDEBUG_TOKEN"] == (job.folder.path / "token").read_text()
    assert len(plain["DTDEBUG_TOKEN"]) >= 32
    assert 0o600 == (job.folder.path / "token").stat().st_mode & 0o777


@pytest.mark.parametrize(
    ("named", "variables"),
    [
        (True, {"RANK": "3"}),
        (True, {"SLURM_PROCID": "3"}),
        (True, {"RANK": "3", membership.MARK: f"{os.getpid()}:3,,,,,,,"}),
        (False, {"RANK": "3", membership.MARK: "1:3,,,,,,,"}),
        (True, {"RANK": "2", membership.MARK: "1:3,,,,,,,"}),
        (False, {}),
        (False, {"RANK": "x"}),
    ],
)
def test_a_helper_of_a_rank_does_not_pose_as_it(named, variables):
    """It has inherited the rank's variables with the rank's mark; a rank of an inner job has other ones."""
    assert named == membership.is_named(variables)


def test_a_launcher_in_a_slurm_task_is_no_rank(monkeypatch):
    """It has the variables of the task, and is known by its name."""
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "/env/bin/torchrun", raising=False)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)

    assert not membership.is_named({"SLURM_PROCID": "0"})
    assert membership.is_named({"SLURM_PROCID": "0", "RANK": "1"})


def test_looking_at_variables_keeps_nothing_alive():
    """What a function drops after it was looked at is freed; `locals()` that it holds stay as they are."""

    class Batch:
        pass

    def trains():
        step, batch = 7, Batch()
        seen = weakref.ref(batch)
        found = own_frames.step([sys._getframe()])
        del batch
        gc.collect()
        return step, found, seen()

    def holds():
        i = 5
        mine = locals()
        own_frames.from_locals(sys._getframe(), len)
        return i, mine["i"]

    assert (7, 7, None) == trains()
    assert (5, 5) == holds()


def test_a_step_is_a_number_in_the_users_own_code():
    """Innermost first; a flag is no step."""

    def outer():
        step = 12
        return inner(), step

    def inner():
        step = True
        return own_frames.step(own_frames.main_thread()), step

    assert (12, True) == outer()[0]


class Unhelpful:
    """A data set whose length is the user's code."""

    def __len__(self):
        raise AssertionError


def test_lengths_are_read_without_the_users_code():
    """Python's own types only; a list in a list is one."""
    assert 2 == own_frames.length([1, 2])
    assert own_frames.length(Unhelpful()) is None
    assert own_frames.length(5) is None


def test_an_operation_that_nobody_waits_for_is_not_pending():
    """An open entry of the recorder counts only where C code is called that waits."""
    entry = recorder_status.Entry(process_group=("0", ""), collective_seq_id=9, profiling_name="nccl:all_reduce")

    class Work:
        def wait(self):
            return pending_operation.pending([sys._getframe(1)], [entry])

    waits = Work().wait()
    computes = pending_operation.pending([sys._getframe()], [entry])

    assert ("all_reduce", "0", 9) == (waits.op, waits.group, waits.seq)
    assert computes is None


def test_where_an_exception_was_raised_is_told_by_its_traceback():
    """Innermost last, with the line of code."""
    try:
        Unhelpful().__len__()
    except AssertionError as error:
        found = own_frames.raised_at(error.__traceback__)

    assert Frame(__file__, found[-1].line, "__len__", "raise AssertionError") == found[-1]
    assert () == own_frames.raised_at(None)


@pytest.fixture
def served():
    """An endpoint with two answers."""

    def fails():
        raise TimeoutError

    made = endpoint.Endpoint({"/state": lambda: b"{}", "/flight": fails}, "s3cret")
    yield made
    made.shut()


@pytest.mark.parametrize(
    ("status", "request_line", "headers"),
    [
        (b"200", b"GET /state", b"Host: 127.0.0.1:5\r\nAuthorization: Bearer s3cret"),
        (b"200", b"GET /state", b"host: [::1]:5\r\nauthorization: Bearer s3cret"),
        (b"503", b"GET /flight", b"Host: rank\r\nAuthorization: Bearer s3cret"),
        (b"404", b"GET /other", b"Host: rank\r\nAuthorization: Bearer s3cret"),
        (b"404", b"POST /state", b"Host: rank\r\nAuthorization: Bearer s3cret"),
        (b"401", b"GET /state", b"Host: rank\r\nAuthorization: Bearer s3cre"),
        (b"401", b"GET /state", b"Host: rank"),
        (b"421", b"GET /state", b"Host: evil.example\r\nAuthorization: Bearer s3cret"),
        (b"421", b"GET /state", b"Authorization: Bearer s3cret"),
        (b"", b"GET /" + b"x" * 20_000, b"Host: rank"),
        (b"421", b"", b""),
    ],
)
def test_the_endpoint_answers_who_shows_the_token_and_came_by_no_web_page(served, status, request_line, headers):
    """Bounded, and the next client is served whatever the last one sent."""
    host, _, port = served.address.rpartition(":")
    answers = []
    for head in (
        request_line + b" HTTP/1.1\r\n" + headers,
        b"GET /state HTTP/1.1\r\nHost: rank\r\nAuthorization: Bearer s3cret",
    ):
        with socket.create_connection((host, int(port)), timeout=20) as client, contextlib.suppress(ConnectionError):
            client.sendall(head + b"\r\n\r\n")
            answers.append(client.recv(4096))

    assert "127.0.0.1" == host
    assert b"200" == answers[-1].split()[1]
    assert status == (answers[0].split() if len(answers) > 1 else [b"", b""])[1:2][0] if answers[0] else status == b""


def test_the_user_chooses_the_interface(monkeypatch):
    """Any address of this machine; all of them are shown as its name."""
    monkeypatch.setenv(endpoint.BIND, "0.0.0.0")
    made = endpoint.Endpoint({}, "s3cret")
    made.shut()

    assert socket.gethostname() == made.address.rpartition(":")[0]


def test_last_words_leave_a_signal_that_somebody_handles(tmp_path):
    """And can be taken back."""
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        handled = signal.getsignal(signal.SIGUSR1)
        take_back = fatal_signals.offer(tmp_path / "1.txt")
        os.kill(os.getpid(), signal.SIGUSR1)
        take_back()
        assert handled is signal.getsignal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert "" == (tmp_path / "1.txt").read_text().strip()
    assert fatal_signals.offer(tmp_path / "none" / "1.txt") is None


def test_stacks_are_not_offered_where_each_write_takes_long(tmp_path, monkeypatch):
    """One that took long is none: a busy machine."""
    took = iter((0.1, 0.1, 0.0, 0.1, 0.1, 0.1))
    now = [0.0]

    def write(file, data):
        now[0] += next(took)

    monkeypatch.setattr(fatal_signals.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(fatal_signals.os, "write", write)
    take_back = fatal_signals.offer(tmp_path / "1.txt")
    take_back()

    assert fatal_signals.offer(tmp_path / "2.txt") is None


GARBAGE = """
import gc, sys, threading, time
from dtdebug.process.thread_frames import frames_of, from_locals

class Cycle:
    def __init__(self):
        self.me = self

    def __del__(self):
        for number in range(50):
            str(number)

def descend(depth):
    return descend(depth - 1) if depth else Cycle()

def work():
    while True:
        for depth in range(1, 200):
            descend(depth)

gc.set_threshold(20)
sys.setswitchinterval(1e-5)
worker = threading.Thread(target=work, daemon=True)
worker.start()
end = time.monotonic() + 2
while time.monotonic() < end:
    for frame in frames_of(worker.ident)[:5]:
        from_locals(frame, len)
print(gc.isenabled())
"""


def test_garbage_with_finalizers_lets_no_thread_run_while_its_frames_are_read():
    """CPython 3.11 crashed at once: a finalizer ran other threads in the middle of the walk."""
    end = subprocess.run([sys.executable, "-c", GARBAGE], capture_output=True, text=True, timeout=SECONDS, check=False)

    assert (end.returncode, end.stdout) == (0, "True\n"), end.stderr[-500:]


def test_the_frames_of_another_thread_are_read_in_one_piece():
    """Innermost first, as many as are asked for; none of a thread that has ended."""
    ready, go = threading.Event(), threading.Event()

    def inner():
        ready.set()
        go.wait(10)

    thread = threading.Thread(target=lambda: inner(), name="walked")  # noqa: PLW0108 - a frame more
    thread.start()
    ready.wait(10)
    names = [frame.f_code.co_name for frame in frames_of(thread.ident)]
    few = frames_of(thread.ident, 2)
    go.set()
    thread.join(10)

    assert names[names.index("inner") :][:2] == ["inner", "<lambda>"]
    assert len(few) == 2
    assert [] == frames_of(thread.ident) == frames_of(None)
