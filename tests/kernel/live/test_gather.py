"""Gathering: every road to a rank, and what is said of those that do not answer."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import msgspec
import pytest

from dtdebug.live.agent import arm
from dtdebug.live.probe import ask_all_ranks, channels, deadline_threads, processes, pyspy
from dtdebug.storage.run_folder import Run, RunFolder
from dtdebug_taxonomy.model.ranks import RankState
from dtdebug_taxonomy.stacks import claims_of_state

HOST = socket.gethostname()
SLEEPS = "import time\ndef waits():\n    time.sleep(60)\nprint(1, flush=True)\nwaits()"
HOLDS = "import ctypes, sys\nprint(1, flush=True)\ninput()\ndef holds():\n    ctypes.PyDLL(None).sleep(60)\nholds()"
WORKS = "print(1, flush=True)\n" + "".join(f"def f{n}():\n    sum(range(2000))\n" for n in range(20))
WORKS += f"while True:\n    {'; '.join(f'f{n}()' for n in range(20))}"
needs_py_spy = pytest.mark.skipif(pyspy._program() is None, reason="py-spy is not installed")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> RunFolder:
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("DTDEBUG_TOKEN", raising=False)
    return RunFolder.make(tmp_path)


@pytest.fixture
def start():
    """Starts Python processes and ends them afterwards, with what they have started."""
    started = []

    def run(script, *, variables=None, arguments=()):
        environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
        process = subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            env=environment | (variables or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(process)
        process.stdout.readline()
        return process

    yield run
    for process in started:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def serve():
    """Serves raw bytes, by a function of the connection, on a loopback port or a socket file."""
    sockets = []

    def run(answer, path=None):
        server = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        server.bind(str(path) if path else ("127.0.0.1", 0))
        server.listen(8)
        sockets.append(server)

        def loop():
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client, contextlib.suppress(OSError):
                    answer(client, client.recv(65536))

        threading.Thread(target=loop, daemon=True).start()
        return None if path else f"127.0.0.1:{server.getsockname()[1]}"

    yield run
    for server in sockets:
        server.close()


def reply(client, body, length=None):
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(body) if length is None else length) + body)


def as_rank(folder, rank, world):
    return arm.arming_variables(folder) | {"RANK": str(rank), "WORLD_SIZE": str(world), "OMP_NUM_THREADS": "1"}


def recorded(folder, count):
    """Waits until so many agents have written their record and opened their endpoint."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if len([record for record in folder.records() if record.facts.get("endpoint")]) >= count:
            return
        time.sleep(0.02)
    pytest.fail("the agents wrote no records")


def record(folder, pid, **more):
    facts = more.pop("facts", {})
    folder.save_record(RankState(rank=0, world_size=1, host=HOST, pid=pid, time=time.time(), facts=facts, **more))


def asked(folder, holds, *pids, timeout, **options):
    """The states, asked once more with more time where a busy machine had too little for what must hold of them."""
    for seconds in (timeout, 4 * timeout, 60.0):
        states = ask_all_ranks.gather(folder, list(pids), timeout=seconds, **options)
        if holds(states):
            break
    return states


def test_armed_ranks_say_where_they_are_and_a_rank_that_never_came_is_named(folder, start):
    for rank in range(2):
        start(SLEEPS, variables=as_rank(folder, rank, 3))
    recorded(folder, 2)
    states = asked(folder, lambda s: all(x.roads.get("endpoint") == "ok" for x in s[:2]), timeout=5.0, dumps=False)
    assert [0, 1, 2] == [state.rank for state in states]
    assert ["ok", "ok"] == [state.roads["endpoint"] for state in states[:2]]
    assert ["waits", "waits"] == [state.stack[-1].function for state in states[:2]]
    assert [True, True, None] == [state.alive for state in states]
    assert "nothing of it was there" in states[2].roads["files"]


@needs_py_spy
def test_a_rank_that_keeps_the_interpreter_lock_is_told_from_one_that_waits(folder, start):
    start(SLEEPS, variables=as_rank(folder, 0, 2))
    holder = start(HOLDS, variables=as_rank(folder, 1, 2))
    recorded(folder, 2)
    holder.stdin.write(b"\n")
    holder.stdin.flush()
    time.sleep(0.3)
    waits, holds = asked(folder, lambda s: s[1].gil_held, timeout=4.0, dumps=False)
    assert (False, True) == (waits.gil_held, holds.gil_held)
    assert "holds" == holds.stack[-1].function
    assert "ok" == holds.roads["py-spy"]
    assert "no answer" in holds.roads["endpoint"]
    assert "in holds" in holds.facts["GIL"]


@needs_py_spy
def test_a_rank_that_answers_late_because_it_computes_holds_no_lock(folder, start, serve):
    """As while eight ranks import torch on two cores: who owns the lock at one moment says nothing."""
    process = start(WORKS)
    record(folder, process.pid, facts={"endpoint": serve(lambda client, request: time.sleep(3))})
    (state,) = asked(folder, lambda s: "GIL" in s[0].facts, process.pid, timeout=3.0, dumps=False)
    assert ("ok", False) == (state.roads["py-spy"], state.gil_held)
    assert "no answer" in state.roads["endpoint"]
    assert "GIL" in state.facts


@needs_py_spy
def test_a_stopped_rank_is_looked_at_and_stays_stopped(folder, start):
    process = start(SLEEPS, variables=as_rank(folder, 0, 1))
    recorded(folder, 1)
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    (state,) = asked(folder, lambda s: s[0].stack, timeout=2.0, native=True)
    assert (True, False) == (state.alive, state.gil_held)
    assert "is stopped by a signal or a debugger" == state.roads["process"]
    assert "waits" == state.stack[-1].function
    said = [claim.text for claim in claims_of_state.claims_of(state)]
    assert f": it is stopped by a signal (`kill -CONT {process.pid}` lets it go on)." in said[0]
    assert "stopped" == processes.liveness(process.pid)


def huge(client, request):
    reply(client, b"x" * 1000, length=1 << 30)
    with contextlib.suppress(OSError):
        while True:
            client.sendall(b"x" * 65536)


def drip(client, request):
    client.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    for _ in range(200):
        client.sendall(b"x")
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda client, request: reply(client, b"{]"), "something other than a rank's record"),
        (lambda client, request: reply(client, b'{"rank": "none"}'), "something other than a rank's record"),
        (lambda client, request: reply(client, b"{}", length=500), "IncompleteRead"),
        (lambda client, request: client.sendall(b"\x00\xff garbage\r\n\r\n"), "BadStatusLine"),
        (
            lambda client, request: client.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
            "answered 503 Busy",
        ),
        (huge, "more than 4 MiB"),
        (drip, "no answer in"),
        (lambda client, request: time.sleep(4), "no answer in"),
    ],
)
def test_an_endpoint_that_answers_garbage_is_bounded_and_noted(folder, start, serve, answer, why):
    process = start(SLEEPS)
    record(folder, process.pid, facts={"endpoint": serve(answer)})
    (state,) = asked(folder, lambda s: why in s[0].roads["endpoint"], timeout=1.0, dumps=False)
    assert why in state.roads["endpoint"]
    assert "no record newer than the request" in state.roads["files"]
    assert state.alive


def test_a_silent_rank_delays_no_other(folder, start, serve):
    silent = serve(lambda client, request: time.sleep(4))
    states = [RankState(rank=rank, world_size=9, host=f"elsewhere-{rank}", pid=rank + 1) for rank in range(9)]
    for state in states:
        quick = serve(lambda client, request, state=state: reply(client, msgspec.json.encode(state)))
        address = silent if state.rank == 4 else quick
        folder.save_record(msgspec.structs.replace(state, facts={"endpoint": address.replace("127.0.0.1", HOST)}))
    assert len(states) == len(list(folder.records()))
    server = socket.getaddrinfo(HOST, None, socket.AF_INET)
    if not any(entry[4][0].startswith("127.") for entry in server):
        pytest.skip("the name of this host is not on loopback, where the test listens")
    alive = [True] * 4 + [None] + [True] * 4
    found = asked(folder, lambda s: alive == [state.alive for state in s], timeout=1.0, dumps=False)
    assert alive == [state.alive for state in found]


def test_what_a_rank_says_is_cleaned(folder):
    record(folder, 2**22 + 5, exception="\x1b[31mred\x1b[0m\u202e" + "x" * 10_000)
    (state,) = ask_all_ranks.gather(folder, timeout=0.3)
    assert state.exception.startswith("redx")
    assert 2000 >= len(state.exception)


def test_a_rank_that_has_ended_is_not_waited_for(folder, start):
    process = start("print(1, flush=True)")
    process.wait()
    record(folder, process.pid)
    (state,) = ask_all_ranks.gather(folder, timeout=20.0)
    assert (False, "has ended") == (state.alive, state.roads["process"])


def test_a_process_that_began_after_the_record_is_another_one(start):
    process = start(SLEEPS)
    assert "ended" == processes.liveness(process.pid, seen=time.time() - 3600)
    assert "running" == processes.liveness(process.pid, seen=time.time())


def test_a_record_of_an_earlier_attempt_gives_way_to_the_living_process(folder, start):
    process = start(SLEEPS)
    record(folder, 2**22 + 5, exception="earlier")
    record(folder, process.pid)
    (state,) = ask_all_ranks.gather(folder, timeout=0.5, dumps=False)
    assert (process.pid, True) == (state.pid, state.alive)


def test_one_rank_can_not_invent_a_large_world():
    states = [RankState(rank=rank, world_size=size) for rank, size in enumerate((3, 3, 10**9, 60_000))]
    assert [] == ask_all_ranks._missing(states)
    assert [] == ask_all_ranks._missing([RankState(rank=0, world_size=10**9)])


def test_an_interrupt_returns_what_has_come(folder, monkeypatch):
    def interrupted(futures, deadline):
        raise KeyboardInterrupt

    record(folder, 2**22 + 5)
    monkeypatch.setattr(ask_all_ranks, "until", interrupted)
    stop = threading.Event()
    (state,) = ask_all_ranks.gather(folder, stop=stop)

    assert 0 == state.rank
    assert stop.is_set()


def test_a_folder_that_can_not_be_written_is_noted(folder, start, monkeypatch):
    def refused(self):
        raise PermissionError(13, "Permission denied")

    process = start(SLEEPS)
    record(folder, process.pid)
    monkeypatch.setattr(RunFolder, "request", refused)
    (state,) = ask_all_ranks.gather(folder, timeout=0.5)
    assert "can't be asked: [Errno 13] Permission denied" == state.roads["files"]


def test_the_worker_servers_trace_takes_the_place_of_a_dump_that_does_not_come(folder, start, serve):
    process = start(SLEEPS)
    path = folder.ranks / "server.sock"
    trace = {"version": "2.10", "pg_status": {"0": {}}, "entries": []}
    requests = []

    def answer(client, request):
        requests.append(request.split(b" ")[1])
        reply(client, b"pong" if b"ping" in request else json.dumps(trace).encode())

    serve(answer, path)
    (folder.flight / "rank_0").write_bytes(b"older")
    record(folder, process.pid, initialized=True, facts={"worker_server": str(path)})
    (state,) = asked(folder, lambda s: s[0].roads.get("trace") == "ok", timeout=1.5)
    assert ("ok", "ok") == (state.roads["worker server"], state.roads["trace"])
    assert [b"/handler/ping", b"/handler/fr_trace_json"] == requests[-2:]
    assert trace == json.loads((folder.flight / "rank_0.json").read_bytes())
    assert not (folder.flight / "rank_0").exists()


def test_without_py_spy_the_announced_file_is_read(folder, start, monkeypatch):
    script = (
        "import faulthandler, signal, sys\nfaulthandler.register(signal.SIGUSR1, open(sys.argv[1], 'w'))\n" + SLEEPS
    )
    process = start(script, arguments=[str(folder.stacks / "file")])
    announced = folder.stacks / f"{process.pid}.txt"
    (folder.stacks / "file").rename(announced)
    record(folder, process.pid, facts={"faulthandler": str(announced)})
    monkeypatch.setattr(pyspy, "_program", lambda: None)
    (state,) = asked(folder, lambda s: s[0].stack, timeout=2.0, dumps=False)
    assert "py-spy is not installed: pip install py-spy" in state.roads["py-spy"]
    assert "ok" == state.roads["faulthandler"]
    assert ["<module>", "waits"] == [frame.function for frame in state.stack]


def test_a_process_that_does_not_catch_the_signal_is_never_sent_it(folder, start, monkeypatch):
    process = start(SLEEPS)
    record(folder, process.pid, facts={"faulthandler": str(folder.stacks / f"{process.pid}.txt")})
    monkeypatch.setattr(pyspy, "_program", lambda: None)
    (state,) = ask_all_ranks.gather(folder, timeout=1.0, dumps=False)
    assert "does not catch SIGUSR1" in state.roads["faulthandler"]
    assert process.poll() is None
    for pid in (-1, 0, 2**22 + 5):
        with pytest.raises(pyspy.OutsideError):
            channels.traceback(pid, folder.output, time.monotonic() + 1)


def test_faulthandlers_text_becomes_the_main_threads_stack():
    text = (
        "Current thread 0x00007f (most recent call first):\n"
        '  File "/a/other.py", line 1 in other\n\n'
        "Thread 0x00007e [main] (most recent call first):\n"
        '  File "/a/b c.py", line 12 in inner\n'
        '  File "/a/b c.py", line 3 in <module>\n'
    )
    assert [("<module>", 3), ("inner", 12)] == [(f.function, f.line) for f in channels.parse_traceback(text)]
    assert () == channels.parse_traceback("no traceback at all")


LAUNCHER = """
import os, subprocess, sys
helper = (
    "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'input()']); print(1, flush=True); p.wait()"
)
children = []
for rank in range(2):
    environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "MY_SECRET": "x"}
    children.append(subprocess.Popen([sys.executable, "-c", helper], env=environment, stdout=subprocess.PIPE))
    children[-1].stdout.readline()
print(1, flush=True)
input()
"""


def test_a_process_that_py_spy_left_stopped_goes_on(start):
    process = start(SLEEPS)
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    pyspy._let_go_on(process.pid)
    os.waitid(os.P_PID, process.pid, os.WCONTINUED)
    assert "running" == processes.liveness(process.pid)


@needs_py_spy
def test_ranks_without_an_agent_are_found_below_their_launcher(start):
    launcher = start(LAUNCHER)
    found = processes.find_ranks(launcher.pid)
    assert [(0, 2, 0), (1, 2, 1)] == [(each.rank, each.world_size, each.local_rank) for each in found]
    assert [launcher.pid] * 2 == [each.parent for each in found]
    states = asked(None, lambda s: all(x.stack for x in s), launcher.pid, timeout=5.0)
    assert [(0, True, "ok"), (1, True, "ok")] == [(s.rank, s.alive, s.roads["py-spy"]) for s in states]
    assert all(state.stack for state in states)
    assert "MY_SECRET" not in states[0].environment


SPAWNER = """
import multiprocessing, time, sys
def _wrap(i, gate):
    gate.wait()
    time.sleep(60)
def _worker_loop(gate):
    gate.wait()
    time.sleep(60)
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    gate = context.Barrier(4)
    for rank in (5, 6):
        context.Process(target=_wrap, args=(rank, gate)).start()
    exec(compile("def loop(gate):\\n    _worker_loop(gate)", "data/worker.py", "exec"))
    context.Process(target=_worker_loop, args=(gate,)).start()
    gate.wait()
    print(1, flush=True)
    time.sleep(60)
"""


@needs_py_spy
def test_ranks_that_were_spawned_are_known_by_their_stack_and_loader_workers_are_left_out(tmp_path, start):
    script = tmp_path / "data_job.py"
    script.write_text(SPAWNER)
    job = start(
        "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')",
        arguments=[str(script)],
    )
    states = asked(None, lambda s: [5, 6] == [state.rank for state in s], job.pid, timeout=5.0)
    assert [5, 6] == [state.rank for state in states]


def seen(pid, parent, *command, name="python3", **variables):
    return processes._Process(pid=pid, parent=parent, name=name, command=command, variables=variables)


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        (  # torchrun under srun, with loader workers
            [
                seen(1, 0, "python3", "/usr/bin/torchrun", "a.py", SLURM_PROCID="0"),
                seen(2, 1, "python3", "a.py", RANK="0", SLURM_PROCID="0"),
                seen(3, 1, "python3", "a.py", RANK="1", SLURM_PROCID="0"),
                seen(4, 3, "python3", "a.py", RANK="1", SLURM_PROCID="0"),
            ],
            [(2, 0), (3, 1)],
        ),
        (  # a launcher that nobody knows by name
            [
                seen(1, 0, "python3", "start.py", SLURM_PROCID="7"),
                seen(2, 1, "python3", "a.py", RANK="0", SLURM_PROCID="7"),
                seen(3, 1, "python3", "a.py", RANK="1", SLURM_PROCID="7"),
            ],
            [(2, 0), (3, 1)],
        ),
        (  # mpirun, a shell between, a spawned loader worker that was given RANK
            [
                seen(1, 0, "mpirun", "bash", name="mpirun"),
                seen(2, 1, "bash", "-c", "python3 a.py", name="bash", OMPI_COMM_WORLD_RANK="3"),
                seen(3, 2, "python3", "a.py", OMPI_COMM_WORLD_RANK="3"),
                seen(
                    4,
                    3,
                    "python3",
                    "-c",
                    "from multiprocessing.spawn import spawn_main",
                    RANK="3",
                    OMPI_COMM_WORLD_RANK="3",
                ),
                seen(
                    5, 3, "python3", "-c", "from multiprocessing.resource_tracker import main", OMPI_COMM_WORLD_RANK="3"
                ),
            ],
            [(3, 3)],
        ),
        (  # spawned by multiprocessing below a program that is no rank
            [
                seen(1, 0, "python3", "a.py"),
                seen(2, 1, "python3", "-c", "from multiprocessing.resource_tracker import main"),
                seen(3, 1, "python3", "-c", "from multiprocessing.spawn import spawn_main", "--multiprocessing-fork"),
            ],
            [(3, None)],
        ),
        ([seen(1, 0, "python3", "a.py", PMI_RANK="2", name="pt_main_thread")], [(1, 2)]),
        (  # Lightning starts the program anew for all ranks of the host but the first
            [
                seen(1, 0, "python3", "a.py"),
                seen(2, 1, "python3", "a.py", LOCAL_RANK="1", NODE_RANK="0", WORLD_SIZE="3"),
                seen(3, 1, "python3", "a.py", LOCAL_RANK="2", NODE_RANK="0", WORLD_SIZE="3"),
                seen(4, 3, "python3", "a.py", LOCAL_RANK="2", NODE_RANK="0", WORLD_SIZE="3"),
            ],
            [(1, 0), (2, 1), (3, 2)],
        ),
        (  # a cluster of ipyparallel: its schedulers are forked
            [
                seen(1, 0, "python3", "-m", "ipyparallel.controller"),
                seen(2, 1, "python3", "-m", "ipyparallel.controller"),
                seen(3, 0, "python3", "-m", "ipyparallel.engine", RANK="0"),
            ],
            [(3, 0)],
        ),
        ([seen(1, 0, "python3", "a.py", RANK="a")], []),
        ([seen(1, 0, "nsys", "profile", name="nsys", RANK="0"), seen(2, 1, name="kworker", RANK="0")], []),
    ],
)
def test_ranks_are_told_from_their_launchers_and_helpers(family, expected):
    assert expected == [(found.pid, found.rank) for found in processes.ranks_among(family)]


def test_a_process_that_is_gone_has_no_ranks():
    assert [] == processes.find_ranks(2**22 + 5)
    assert [] == ask_all_ranks.gather(None, [2**22 + 5], timeout=1.0)[1:]


@pytest.mark.parametrize(
    ("own", "theirs", "scope", "said"),
    [
        ({"CapEff": "0"}, {"Uid": "4242 4242"}, "", "belongs to user id 4242"),
        ({"CapEff": "0"}, {"Uid": str(os.geteuid())}, "1", "yama ptrace_scope is 1"),
        ({"CapEff": "ffffffffff"}, {}, "3", "yama ptrace_scope is 3"),
        ({"CapEff": "0"}, {"Uid": str(os.geteuid())}, "", "CAP_SYS_PTRACE is missing"),
        ({"CapEff": "ffffffffff", "Seccomp": "2"}, {}, "", "a seccomp filter forbids it"),
        ({"CapEff": "ffffffffff", "Seccomp": "0"}, {}, "", "another user namespace"),
    ],
)
def test_a_refused_look_names_the_permission_that_is_missing(monkeypatch, own, theirs, scope, said):
    monkeypatch.setattr(pyspy, "status_of", lambda process: own if process == "self" else theirs)
    monkeypatch.setattr(pyspy, "_text", lambda path: scope)
    text = pyspy.refusal(77, "Permission Denied: Try running again with elevated permissions\nError: ...")
    assert text.startswith("no permission: ")
    assert said in text
    assert "\n" not in text


def test_another_error_of_py_spy_is_told_in_its_own_words():
    assert "py-spy: Error: no Python here" == pyspy.refusal(1, "Error: no Python here\n\nCaused by: ...")
    assert "py-spy said nothing" == pyspy.refusal(1, "")


def test_what_is_late_is_left_behind():
    release = threading.Event()
    began = time.monotonic()
    tasks = [lambda: 1, release.wait, lambda: 1 / 0]
    assert [1, None, None] == deadline_threads.until(deadline_threads.begin(tasks, began + 5), began + 0.2)
    release.set()


JOB = """
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
value = torch.ones(4)
dist.all_reduce(value)
if dist.get_rank() == 1:
    print("ready", flush=True)
    time.sleep(60)
dist.all_reduce(value)
"""


@pytest.mark.ranks
def test_a_rank_in_a_collective_says_so_and_leaves_its_dump(folder, start, tmp_path):
    pytest.importorskip("torch")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    script = tmp_path / "job.py"
    script.write_text(JOB)
    runs = "import runpy, sys\nprint(1, flush=True)\nrunpy.run_path(sys.argv[1])"
    jobs = [start(runs, variables=as_rank(folder, rank, 2) | place, arguments=[str(script)]) for rank in range(2)]
    assert b"ready\n" == jobs[1].stdout.readline()
    folder.save_run(Run(pid=jobs[0].pid, host=HOST))
    first, second = ask_all_ranks.gather(folder, timeout=20.0)
    assert ("all_reduce", 2) == (first.pending.op, first.pending.seq)
    assert None is second.pending
    assert str(script) == second.stack[-1].file
    assert {"rank_0", "rank_1"} <= {path.name for path in folder.flight.iterdir()}
    assert ["ok", "ok"] == [first.roads["dump"], second.roads["dump"]]
