"""What a rank waits in is named at every level: operations, locks and holders, pipes, sockets, children, threads."""

import contextlib
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dtdebug.live.agent.pending_operation import called_function
from dtdebug.live.probe import ask_all_ranks, pyspy
from dtdebug.live.procfs import locks, reader, sockets
from dtdebug.live.procfs.best_explanation import with_store
from dtdebug.live.procfs.syscall_wait import by_system, contended_lock
from dtdebug_taxonomy.model.claims import Record
from dtdebug_taxonomy.model.ranks import Frame, Group, Operation, RankState
from dtdebug_taxonomy.model.waiting import Waiting, phrase
from dtdebug_taxonomy.stacks.activity import activity
from dtdebug_taxonomy.stacks.claims_of_state import claims_of
from dtdebug_taxonomy.stacks.wait_operations import by_stack, function_of_c, operation

SITE = "/venv/lib/python3.11/site-packages"
C10D = f"{SITE}/torch/distributed/distributed_c10d.py"
MINE = Frame("/home/me/train.py", 12, "main", "step()")
RECORD = Record(source="system", path="/proc/locks", words="1: -> FLOCK")
LOCKS = """\
1: POSIX  ADVISORY  READ  1412 fe:00:131 128 128
2: FLOCK  ADVISORY  WRITE 801 fd:01:4060 0 EOF
2: -> FLOCK  ADVISORY  WRITE 802 fd:01:4060 0 EOF
2: -> FLOCK  ADVISORY  WRITE 803 fd:01:4060 0 EOF
3: OFDLCK ADVISORY  WRITE -1 00:2a:77 0 EOF
not a lock: -> at all
"""
TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:7149 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 7001 1 0000000000000000 100 0
   1: 0100007F:C350 0100007F:7149 01 00000000:00000000 00:00000000 00000000  1000        0 7002 1 0000000000000000 20 4
   2: 0100007F:7149 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 7003 1 0000000000000000 20 4
   3: 0200000A:D431 0300000A:01BB 02 00000001:00000000 01:00000019 00000003  1000        0 7004 2 0000000000000000 800 0
"""


def library(path, function, line=9):
    return Frame(f"{SITE}/{path}", line, function)


@pytest.mark.parametrize(
    ("stack", "native", "kind", "op"),
    [
        ((MINE, Frame(C10D, 9, "all_reduce")), (), "collective", "all_reduce"),
        (
            (MINE, Frame(C10D, 8, "all_gather_object"), Frame(C10D, 9, "all_gather")),
            (),
            "collective",
            "all_gather_object",
        ),
        (
            (MINE, library("torch/_tensor.py", "backward"), library("torch/autograd/graph.py", "_engine_run_backward")),
            ("THPEngine_run_backward", "c10d::Reducer::finalize_backward", "pthread_cond_wait"),
            "collective",
            "all_reduce",
        ),
        ((MINE,), ("c10d::ProcessGroupGloo::RecvWork::wait", "pthread_cond_timedwait"), "collective", "recv"),
        ((MINE,), ("c10d::PrefixStore::get", "c10d::TCPStore::doGet", "poll"), "store", "get"),
        (
            (MINE, Frame(C10D, 9, "init_process_group")),
            ("c10d::TCPStore::wait", "poll"),
            "rendezvous",
            "init_process_group",
        ),
        (
            (MINE, Frame(C10D, 9, "new_group")),
            ("gloo::rendezvous::Context::connectFullMesh",),
            "rendezvous",
            "new_group",
        ),
        (
            (MINE, library("torch/distributed/pipelining/schedules.py", "_wait_batch_p2p")),
            (),
            "collective",
            "batch_isend_irecv",
        ),
        ((MINE, library("filelock/_api.py", "acquire")), (), "lock", "acquire"),
        ((MINE, library("torch/utils/file_baton.py", "wait")), (), "lock", "wait"),
        (
            (
                MINE,
                library("torch/utils/data/dataloader.py", "_next_data"),
                Frame("/usr/lib/python3.11/queue.py", 1, "get"),
            ),
            (),
            "loader",
            "",
        ),
        ((MINE, Frame("/usr/lib/python3.11/subprocess.py", 1, "communicate")), (), "subprocess", ""),
        ((MINE, Frame("/usr/lib/python3.11/threading.py", 1, "join")), (), "thread", "join"),
        (
            (
                MINE,
                Frame("/usr/lib/python3.11/asyncio/base_events.py", 1, "run_forever"),
                Frame("/usr/lib/python3.11/selectors.py", 1, "select"),
            ),
            (),
            "events",
            "run_forever",
        ),
        ((MINE, library("torch/distributed/rpc/api.py", "rpc_sync")), (), "rpc", "rpc_sync"),
        ((MINE, library("torch/futures/__init__.py", "wait")), (), "thread", "wait"),
        ((MINE,), ("c10d::PrefixStore::get", "c10d::TCPStore::doGet", "c10d::TCPStore::doWait"), "store", "get"),
        ((Frame("/home/me/a.py", 3, "f", "time.sleep(5)"),), (), "sleep", ""),
        ((MINE,), ("lock_PyThread_acquire_lock", "pthread_cond_wait"), "thread", "threading.Lock.acquire"),
        ((Frame("/home/me/a.py", 3, "f", "x = x * 2"),), (), None, None),
    ],
)
def test_frames_name_what_a_thread_waits_in(stack, native, kind, op):
    found = by_stack(stack, native)
    assert (kind, op) == ((found.kind, found.op) if found else (None, None))


def test_a_wait_at_the_port_of_the_store_is_one_for_its_key():
    there = Waiting(kind="socket", path="10.0.0.1:29500", record=RECORD)
    asks = (Frame("/home/me/a.py", 3, "f", 'name = store.get("best").decode()'),)

    found = with_store(there, asks, "29500")

    assert found is not None
    assert ("store", "get") == (found.kind, found.op)
    assert "for the job's store in get, which returns once a rank has set the key" == phrase(found)
    assert with_store(there, asks, "29501") is there
    assert with_store(there, asks, "") is there


def test_a_c_function_that_ctypes_calls_is_named():
    called = ("PyObject_Call", "_ctypes_callproc", "ffi_call", "ffi_call_unix64", "solve")
    assert "solve" == function_of_c(called)


def test_a_stack_that_has_left_torch_distributed_is_in_no_operation():
    inside = library("torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py", "wait_for_unshard")
    assert Operation(op="all_gather_into_tensor") == operation((MINE, inside))
    forward = Frame("/home/me/model.py", 5, "forward")
    assert operation((MINE, inside, forward)) is None
    assert operation((MINE, inside, library("torch/nn/modules/linear.py", "forward"))) is None


def test_locks_and_their_holders_are_read():
    found = locks.parse_locks(LOCKS)
    assert [801, 802, 803] == [lock.pid for lock in found if lock.kind == "FLOCK"]
    wanted = locks.awaited_lock(found, 803)
    assert (0xFD, 1, 4060) == wanted.file
    assert 801 == locks.held_by(found, wanted.file, 803)
    assert locks.awaited_lock(found, 801) is None
    assert locks.held_by(found, (0, 0x2A, 77), 1) is None
    assert 5 == len(found)


def test_the_other_ends_of_connections_are_read():
    order = sys.byteorder == "little"
    found = sockets.parse_tcp(TCP, frozenset((7002, 7004)))
    assert {7002, 7004} == set(found)
    assert "SYN_SENT" == found[7004].state
    if order:
        assert "127.0.0.1:29001" == found[7002].remote
        assert "10.0.0.3:443" == found[7004].remote
    assert 7003 == sockets.owner_of(TCP, found[7002])
    assert sockets.owner_of(TCP, found[7004]) is None
    words = "".join(
        f"{struct.unpack('=I', socket.inet_pton(socket.AF_INET6, 'fe80::1')[i : i + 4])[0]:08X}" for i in (0, 4, 8, 12)
    )
    assert "[fe80::1]:80" == sockets.address(f"{words}:0050")


def test_what_can_not_be_a_system_call_is_none():
    assert ("", ()) == reader.parse_syscall("running")
    assert ("", ()) == reader.parse_syscall("")
    assert ("", ()) == reader.parse_syscall("7 zz 0x1 0x1 0x1 0x1 0x1 0x1 0x1")
    name, arguments = reader.parse_syscall("99999 0x9 0x2 0x0 0x7f76 0x0 0x0 0x7ffe 0x7f76")
    assert ("99999", 9) == (name, arguments[0])


def test_claims_cite_the_record_and_the_rank_that_is_waited_for():
    state = RankState(
        rank=1,
        pid=7,
        stack=(MINE,),
        waiting=Waiting(kind="lock", path="/x.lock", pid=12, rank=0, command="python a.py", record=RECORD, since=1.0),
        time=31.0,
        system={"state": "S"},
    )
    first, system = claims_of(state)
    assert "Rank 1 waits for the lock of /x.lock, which rank 0 (process 12: python a.py) is holding" in first.text
    assert first.text.endswith("at /home/me/train.py:12 in main for 30 s.")
    assert ((0,), RECORD) == (first.of, first.record)
    assert ("Rank 1: state S.", "/proc/7") == (system.text, system.record.path)
    waits = RankState(
        rank=2, pending=Operation(op="all_reduce", seq=4, group="0"), groups=(Group(name="0"),), stack=(MINE,)
    )
    assert ["Rank 2 waits in all_reduce #4 of world, at /home/me/train.py:12 in main."] == [
        c.text for c in claims_of(waits)
    ]
    held = RankState(rank=3, stack=(MINE,), waiting=Waiting(kind="gil", op="_sre_match", record=RECORD))
    assert ["Rank 3 is at /home/me/train.py:12 in main: it is holding the GIL in _sre_match."] == [
        c.text for c in claims_of(held)
    ]
    assert () == claims_of(RankState(pid=1, stack=(MINE,)))


@pytest.mark.parametrize(
    ("inner", "what"),
    [
        (library("torch/serialization.py", "_save"), "saving_checkpoint"),
        (library("torch/distributed/checkpoint/state_dict_saver.py", "save"), "saving_checkpoint"),
        (Frame("<frozen importlib._bootstrap>", 1, "_find_and_load"), "importing"),
        (library("torch/_inductor/compile_fx.py", "compile_fx_inner"), "compiling"),
        (library("torch/utils/cpp_extension.py", "_jit_compile"), "compiling"),
        (library("torch/_dynamo/eval_frame.py", "compile_wrapper"), ""),
        (library("huggingface_hub/file_download.py", "http_get"), "downloading"),
        (library("datasets/arrow_dataset.py", "_map_single"), "preparing_data"),
        (Frame("/home/me/train.py", 4, "evaluate_model"), "evaluating"),
    ],
)
def test_slow_work_is_recognised(inner, what):
    assert what == activity(RankState(stack=(Frame("/home/me/main.py", 2, "run"), inner)))


def test_the_called_function_is_found_in_calls_of_many_lines():
    seen = []

    class Chain:
        def note(self, *_):
            seen.append(called_function(sys._getframe(1)))
            return self

        wait = total = backward = note

    value = Chain()
    value.wait()
    (
        value.total(1)
        .backward(
            value.wait(),
        )
    )  # fmt: skip
    assert ["wait", "total", "wait", "backward"] == seen


# Real processes from here on.

linux = pytest.mark.skipif(not Path("/proc/self/wchan").exists(), reason="needs Linux's /proc")
spies = pytest.mark.skipif(not pyspy.can_spy(), reason="py-spy is not installed")


@pytest.fixture
def start(tmp_path):
    """Starts programs in a folder, each in a group of its own, and ends them."""
    started = []

    def run(*command, **variables):
        environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "MASTER_PORT")}
        with (tmp_path / "printed").open("ab") as printed:
            process = subprocess.Popen(
                command,
                cwd=tmp_path,
                env={**environment, "OMP_NUM_THREADS": "1", "DTDEBUG_STATE": str(tmp_path / "state"), **variables},
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                start_new_session=True,
            )
        started.append(process)
        return process

    yield run
    for process in started:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pid in reader.processes():  # torchrun gives each rank a session of its own
        with contextlib.suppress(OSError):
            if reader.absolute(pid, "x") == str(tmp_path / "x"):
                os.kill(pid, signal.SIGKILL)


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come to it in time"
        time.sleep(0.05)
    return found


@linux
def test_the_operating_system_names_the_file_the_holder_and_the_child(start, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    takes = "import fcntl, time; f = open('it.lock', 'w'); fcntl.flock(f, 2); open('held', 'w'); time.sleep(60)"
    holder = start(sys.executable, "-c", takes)
    until((tmp_path / "held").exists)
    waiter = start(sys.executable, "-c", takes)
    opens = start(sys.executable, "-c", "open('fifo').read()")
    runs = start(sys.executable, "-c", "import subprocess; subprocess.run(['sleep', '60'])")

    def seen(process):
        return until(lambda: by_system(process.pid, reader.thread(process.pid, process.pid), lambda _: 5))

    lock = until(lambda: found if (found := seen(waiter)).kind == "lock" else None)
    assert (str(tmp_path / "it.lock"), holder.pid, 5) == (lock.path, lock.pid, lock.rank)
    assert "/proc/locks" == lock.record.path
    fifo = until(lambda: found if (found := seen(opens)).kind == "pipe" else None)
    assert ("" if reader.thread(opens.pid, opens.pid).denied else str(tmp_path / "fifo")) == fifo.path
    asks = f"import time; f = open({str(tmp_path / 'it.lock')!r}); open('asked', 'w'); time.sleep(60)"
    tries = start(sys.executable, "-c", asks)
    until((tmp_path / "asked").exists)
    again = contended_lock(tries.pid, lambda _: None)
    assert (str(tmp_path / "it.lock"), holder.pid) == (again.path, again.pid)
    child = until(lambda: found if (found := seen(runs)).kind == "subprocess" else None)
    assert "sleep 60" == child.command


JOB = r"""
import datetime, fcntl, os, re, sys, threading, time
import torch, torch.distributed as dist

rank = int(os.environ["RANK"])

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return open("fifo").read()  # the worker's line

def reduce():
    dist.all_reduce(torch.ones(2))

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=120))
reduce()
pair = dist.new_group([0, 1])
from torch.nn.parallel import DistributedDataParallel as DDP
model = DDP(torch.nn.Linear(2, 2), process_group=pair) if rank < 2 else None
reduce()
open(f"ready{rank}", "w").close()
if rank == 0:
    (model(torch.ones(1, 2))
        .sum()
        .backward())  # waits in C++
elif rank == 1:
    file = open("it.lock", "w")
    time.sleep(1)
    fcntl.flock(file, fcntl.LOCK_EX)  # waits for the lock
elif rank == 2:
    file = open("it.lock", "w")
    fcntl.flock(file, fcntl.LOCK_EX)
    for batch in torch.utils.data.DataLoader(Data(), num_workers=1):  # waits for the worker
        pass
elif rank == 3:
    into = torch.empty(2)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.irecv, into, 2)]):
        work.wait()  # waits for a message
elif rank == 4:
    thread = threading.Thread(target=reduce, name="helper")
    thread.start()
    thread.join()  # waits for the thread
else:
    re.match(r"(a+)+$", "a" * 64 + "b")  # holds the GIL
reduce()
"""


@linux
@spies
@pytest.mark.ranks
@pytest.mark.parametrize("armed", [False, True], ids=["not armed", "armed"])
def test_every_rank_of_a_real_job_says_what_it_waits_in(start, tmp_path, monkeypatch, armed):
    pytest.importorskip("torch")
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "job.py").write_text(JOB)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "6", "job.py"]
    arming = [sys.executable, "-m", "dtdebug", "run", "--folder", "run", "--"] if armed else []
    job = start(*arming, *torchrun)
    until(lambda: len(list(tmp_path.glob("ready?"))) == 6, 240)
    wanted = {0: "collective", 1: "lock", 2: "loader", 3: "collective", 4: "thread", 5: "gil"}

    def look():
        folder = ask_all_ranks.RunFolder(tmp_path / "run") if armed else None
        states = {s.rank: s for s in ask_all_ranks.gather(folder, () if armed else (job.pid,), 10.0, dumps=False)}
        kinds = {rank: s.waiting.kind for rank, s in states.items() if s.waiting is not None}
        return states if wanted == kinds else None

    states = until(look, 240)
    source = JOB.splitlines()

    def line(words):
        return next(i for i, text in enumerate(source, 1) if words in text)

    waiting = {rank: states[rank].waiting for rank in wanted}
    assert "all_reduce" == states[0].pending.op
    assert (2, str(tmp_path / "it.lock")) == (waiting[1].rank, waiting[1].path)
    assert states[2].pid == waiting[1].pid
    assert (line("the worker's line"), "__getitem__") == (waiting[2].line, waiting[2].function)
    assert states[3].pending.op in {"recv", "irecv"}
    assert (line("dist.all_reduce"), "reduce") == (waiting[4].line, waiting[4].function)
    assert "waits in all_reduce" in waiting[4].words
    assert "_sre" in waiting[5].op or not waiting[5].op  # an interpreter without symbols, as Debian's, names none
    texts = [claims_of(states[rank])[0].text for rank in range(6)]
    places = [int(re.search(r"job\.py:(\d+) in <module>", text)[1]) for text in texts]
    marks = (
        "waits for the lock",
        "waits for the worker",
        "waits for a message",
        "waits for the thread",
        "holds the GIL",
    )
    assert [line(mark) for mark in marks] == places[1:]


POOL = """\
import concurrent.futures, time

def tokenise(part):
    open("ready", "w").close()
    time.sleep(60)  # the child's line

if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        pool.submit(tokenise, 1).result()
"""


@linux
@spies
def test_a_rank_that_waits_for_a_pool_of_processes_is_told_with_the_childs_line(start, tmp_path):
    (tmp_path / "job.py").write_text(POOL)
    job = start(sys.executable, "job.py", RANK="0", WORLD_SIZE="2")
    until((tmp_path / "ready").exists)

    def look():
        state = next((s for s in ask_all_ranks.gather(None, (job.pid,), 10.0, dumps=False) if s.rank == 0), None)
        return state.waiting if state is not None and state.waiting is not None and state.waiting.line else None

    waiting = until(look)

    line = 1 + next(i for i, text in enumerate(POOL.splitlines()) if "the child's line" in text)
    assert ("child", line, "tokenise") == (waiting.kind, waiting.line, waiting.function)
    assert waiting.pid not in {None, job.pid}
